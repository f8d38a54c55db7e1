"""kafka-groups, and groups of the consumer protocol in the other tools, against a real broker."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.cli.main import main
from ottla.client.connection import Connection
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.testing import RunningBroker, broker
from ottla.testing.running import brokers_wanted
from ottla.testing.waiting import wait_until

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    settings = {
        "group.consumer.min.heartbeat.interval.ms": 50,
        "group.consumer.heartbeat.interval.ms": 200,
        "group.initial.rebalance.delay.ms": 0,
        "offsets.topic.num.partitions": 1,
    }
    with broker(settings) as started:
        admin = AdminClient({"bootstrap.servers": started.bootstrap})
        admin.create_topics([NewTopic("news", 2)])["news"].result(30)
        yield started


@contextmanager
def member(running: RunningBroker, protocol: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {"bootstrap.servers": running.bootstrap, "group.id": f"of-{protocol}", "group.protocol": protocol}
    )
    consumer.subscribe(["news"])

    def has_partitions() -> bool:
        consumer.poll(0.1)
        return bool(consumer.assignment())

    wait_until(has_partitions, "the member has its partitions", seconds=30)
    try:
        yield consumer
    finally:
        consumer.close()


@pytest.fixture
def tool(running: RunningBroker, capsys: Captured) -> Callable[..., str]:
    def call(name: str, *arguments: str, code: int = 0) -> str:
        assert main([name, "--bootstrap-server", running.bootstrap, *arguments]) == code
        return capsys.readouterr().out

    return call


def test_groups_of_both_types_are_listed(running: RunningBroker, tool: Callable[..., str]) -> None:
    with member(running, "classic"), member(running, "consumer"):
        lines = [line.split() for line in tool("groups", "--list").splitlines()]
        assert lines[0] == ["GROUP", "TYPE", "PROTOCOL"]
        assert ["of-classic", "Classic", "consumer"] in lines
        assert ["of-consumer", "Consumer", "consumer"] in lines
        only = json.loads(tool("groups", "--list", "--group-type", "consumer", "--json"))
        assert only == [{"group": "of-consumer", "type": "Consumer", "protocol": "consumer"}]
        assert len(json.loads(tool("groups", "--list", "--consumer", "--json"))) == 2
        assert json.loads(tool("groups", "--list", "--protocol", "connect", "--json")) == []
        assert json.loads(tool("groups", "--list", "--share", "--json")) == []
    tool("groups", "--list", "--group-type", "square", code=1)


def test_a_consumer_group_is_described(running: RunningBroker, tool: Callable[..., str]) -> None:
    with member(running, "consumer"):
        state = tool("consumer-groups", "--describe", "--group", "of-consumer", "--state", "--verbose").split()
        assert state[-6] in {f"({number})" for number in range(1, brokers_wanted() + 1)}  # the coordinator's id
        assert state[-5] == "uniform"
        members = tool("consumer-groups", "--describe", "--group", "of-consumer", "--members", "--verbose")
        assert "CURRENT-EPOCH" in members
        assert members.split().count("news:0,1") == 2  # what it has, and what it shall have
    described = json.loads(tool("consumer-groups", "--describe", "--group", "of-consumer", "--state", "--json"))
    assert "Empty" in json.dumps(described)


@pytest.mark.one_broker("looks for the one copy of a file")
def test_its_records_are_dumped(running: RunningBroker, capsys: Captured) -> None:
    with member(running, "consumer"):
        pass
    (segment,) = Path(running.data_dir).rglob("__consumer_offsets-0/*.log")
    assert main(["dump-log", "--offsets-decoder", "--files", str(segment)]) == 0
    shown = capsys.readouterr().out
    assert '{"type":"3","data":{"groupId":"of-consumer"}} payload: {"version":"0","data":{"epoch":' in shown
    assert '"subscribedTopicNames":["news"]' in shown
    assert '"assignedPartitions":[{"topicId":"' in shown
    assert '{"type":"8"' in shown
    assert "Unknown record type" not in shown


def test_patterns_can_be_tried(tool: Callable[..., str]) -> None:
    assert "valid" in tool("consumer-groups", "--validate-regex", "news-.*")
    tool("consumer-groups", "--validate-regex", "(?=look)", code=1)


@pytest.mark.one_broker("speaks to a coordinator without looking for it")
def test_a_group_has_settings_of_its_own(running: RunningBroker, tool: Callable[..., str]) -> None:
    of_group = ("--entity-type", "groups", "--entity-name", "a/b c")
    tool("configs", "--alter", *of_group, "--add-config", "consumer.heartbeat.interval.ms=700")
    running.stop()
    running.start()
    shown = tool("configs", "--describe", *of_group)
    assert "consumer.heartbeat.interval.ms=700" in shown
    assert "DYNAMIC_GROUP_CONFIG" in shown
    assert heartbeat_interval_ms(running, "a/b c") == 700
    assert heartbeat_interval_ms(running, "other") == 200
    tool("configs", "--alter", *of_group, "--add-config", "consumer.heartbeat.interval.ms=15001", code=1)
    tool("configs", "--alter", *of_group, "--delete-config", "consumer.heartbeat.interval.ms")
    assert heartbeat_interval_ms(running, "a/b c") == 200


def heartbeat_interval_ms(running: RunningBroker, group: str) -> int:
    """What a member is told that joins and leaves again."""

    async def ask() -> int:
        connection = await Connection.open(running.host, running.port)
        try:
            find = FindCoordinatorRequest(coordinator_keys=[group])
            await connection.call(find, FindCoordinatorResponse)
            request = ConsumerGroupHeartbeatRequest(
                group_id=group, member_id="m", rebalance_timeout_ms=1000, subscribed_topic_names=["news"]
            )
            joined = await connection.call(request, ConsumerGroupHeartbeatResponse)
            while joined.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:  # the broker has just started
                joined = await connection.call(request, ConsumerGroupHeartbeatResponse)
            assert joined.error_code == ErrorCode.NONE
            request.member_epoch = -1
            await connection.call(request, ConsumerGroupHeartbeatResponse)
            return joined.heartbeat_interval_ms
        finally:
            await connection.close()

    return asyncio.run(ask())
