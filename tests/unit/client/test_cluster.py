"""Routing and retries, against brokers that a test scripts."""

import asyncio
import contextlib
import socket
from collections.abc import Callable

import pytest
from tests.unit.client.conftest import ScriptedBroker, scripted_broker

from ottla.client import groups, offsets
from ottla.client.cluster import Address, Cluster, parse_bootstrap
from ottla.client.errors import ClientError, Unreachable
from ottla.client.offsets import FoundOffset
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition
from ottla.protocol.frames import RequestHeader
from ottla.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from ottla.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.protocol.schema import TopLevel


def test_bootstrap_addresses() -> None:
    assert parse_bootstrap("a:1, b ,[::1]:9,PLAINTEXT://c:2,[::2]") == [
        Address("a", 1),
        Address("b", 9092),
        Address("::1", 9),
        Address("c", 2),
        Address("::2", 9092),
    ]
    assert str(Address("::1", 9)) == "[::1]:9"


@pytest.mark.parametrize("text", ["", " , ", "host:", "host:port", ":9092", "host:99999"])
def test_bootstrap_that_is_none(text: str) -> None:
    with pytest.raises(ClientError, match="host:port"):
        parse_bootstrap(text)


def test_the_first_bootstrap_address_that_answers_is_used() -> None:
    async def scenario() -> str | None:
        async with (
            scripted_broker(lambda *_: MetadataResponse(cluster_id="here")) as broker,
            Cluster(f"127.0.0.1:1,127.0.0.1:{broker.port}") as cluster,
        ):
            return (await cluster.metadata([])).cluster_id

    assert asyncio.run(scenario()) == "here"


def test_every_address_that_failed_is_named() -> None:
    async def scenario() -> None:
        async with Cluster("127.0.0.1:1,127.0.0.1:2") as cluster:
            await cluster.metadata([])

    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1: .*127\.0\.0\.1:2: "):
        asyncio.run(scenario())


class GroupBroker:
    """Answers for a coordinator that a test may move; tells which broker a deletion reached."""

    def __init__(self) -> None:
        self.coordinator = (1, 0)
        self.deletions: list[int] = []
        self.codes: dict[int, list[int]] = {}

    def answer_as(self, node: int) -> Callable[[RequestHeader, TopLevel], TopLevel]:
        def answer(_header: RequestHeader, request: TopLevel) -> TopLevel:
            if isinstance(request, FindCoordinatorRequest):
                number, port = self.coordinator
                found = Coordinator(key="g", node_id=number, host="127.0.0.1", port=port)
                return FindCoordinatorResponse(coordinators=[found])
            assert isinstance(request, DeleteGroupsRequest)
            self.deletions.append(node)
            code = self.codes[node].pop(0)
            if code == ErrorCode.NOT_COORDINATOR:
                self.coordinator = (2, self.other_port)
            return DeleteGroupsResponse(results=[DeletableGroupResult(group_id="g", error_code=code)])

        return answer

    other_port = 0


def test_a_coordinator_that_moves_is_looked_for_again() -> None:
    async def scenario() -> list[int]:
        script = GroupBroker()
        script.codes = {1: [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR], 2: [ErrorCode.NONE]}
        async with scripted_broker(script.answer_as(1)) as one, scripted_broker(script.answer_as(2)) as two:
            script.coordinator, script.other_port = (1, one.port), two.port
            async with Cluster(f"127.0.0.1:{one.port}") as cluster:
                await groups.delete_group(cluster, "g")
        return script.deletions

    assert asyncio.run(scenario()) == [1, 1, 2]


def test_an_error_that_stays_is_raised_at_once() -> None:
    async def scenario() -> list[int]:
        script = GroupBroker()
        script.codes = {1: [ErrorCode.NON_EMPTY_GROUP]}
        async with scripted_broker(script.answer_as(1)) as one:
            script.coordinator = (1, one.port)
            async with Cluster(f"127.0.0.1:{one.port}") as cluster:
                with pytest.raises(ApiError) as raised:
                    await groups.delete_group(cluster, "g")
                assert raised.value.code is ErrorCode.NON_EMPTY_GROUP
        return script.deletions

    assert asyncio.run(scenario()) == [1]


def test_trying_again_ends_when_the_time_is_over() -> None:
    async def scenario() -> int:
        script = GroupBroker()
        script.codes = {1: [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 1000}
        async with scripted_broker(script.answer_as(1)) as one:
            script.coordinator = (1, one.port)
            async with Cluster(f"127.0.0.1:{one.port}", total_timeout_s=0.2) as cluster:
                with pytest.raises(ApiError) as raised:
                    await groups.delete_group(cluster, "g")
                assert raised.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return len(script.deletions)

    assert 2 <= asyncio.run(scenario()) <= 5


def test_a_broker_that_came_back_elsewhere_is_found_again() -> None:
    async def scenario() -> list[str]:
        async with scripted_broker(lambda *_: None) as one:
            ports = iter([1, 1])  # where nobody listens

            def answer(_header: RequestHeader, request: TopLevel) -> TopLevel:
                if isinstance(request, MetadataRequest):
                    port = next(ports, one.port)
                    return MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host="127.0.0.1", port=port)])
                return ListGroupsResponse(groups=[ListedGroup(group_id="found")])

            one.answer = answer
            async with Cluster(f"127.0.0.1:{one.port}") as cluster:
                return [group.group_id for group in await groups.list_groups(cluster)]

    assert asyncio.run(scenario()) == ["found"]


def test_each_partition_is_asked_of_its_leader_and_only_the_unsettled_again() -> None:
    asked: list[tuple[int, list[int]]] = []
    first_time = [True]
    ports: dict[int, int] = {}

    def answer_as(node: int) -> Callable[[RequestHeader, TopLevel], TopLevel]:
        def answer(_header: RequestHeader, request: TopLevel) -> TopLevel:
            if isinstance(request, MetadataRequest):
                return MetadataResponse(
                    brokers=[
                        MetadataResponseBroker(node_id=number, host="127.0.0.1", port=port)
                        for number, port in ports.items()
                    ],
                    topics=[
                        MetadataResponseTopic(
                            name="t",
                            partitions=[
                                MetadataResponsePartition(partition_index=0, leader_id=1),
                                MetadataResponsePartition(partition_index=1, leader_id=2),
                                MetadataResponsePartition(partition_index=2, leader_id=2),
                            ],
                        )
                    ],
                )
            assert isinstance(request, ListOffsetsRequest)
            numbers = [partition.partition_index for partition in request.topics[0].partitions]
            asked.append((node, numbers))
            moving = node == 2 and first_time[0]
            first_time[0] = first_time[0] and node != 2
            results = [
                ListOffsetsPartitionResponse(
                    partition_index=number,
                    error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER if moving and number == 1 else 0,
                    offset=100 + number,
                )
                for number in numbers
            ]
            return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=results)])

        return answer

    async def scenario() -> dict[TopicPartition, FoundOffset | ErrorCode]:
        async with scripted_broker(answer_as(1)) as one, scripted_broker(answer_as(2)) as two:
            ports.update({1: one.port, 2: two.port})
            async with Cluster(f"127.0.0.1:{one.port}") as cluster:
                wanted = {TopicPartition("t", number): offsets.LATEST for number in range(4)}
                return await offsets.list_offsets(cluster, wanted)

    found = asyncio.run(scenario())
    assert sorted(asked) == [(1, [0]), (2, [1]), (2, [1, 2])]
    assert {tp.partition: result.offset for tp, result in found.items() if isinstance(result, FoundOffset)} == {
        0: 100,
        1: 101,
        2: 102,
    }
    assert found[TopicPartition("t", 3)] is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_patience_waits_for_a_broker_that_is_not_there_yet() -> None:
    async def scenario() -> str | None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
        async with contextlib.AsyncExitStack() as server, Cluster(f"127.0.0.1:{port}", patience_s=20.0) as cluster:
            asking = asyncio.create_task(cluster.retrying(lambda: cluster.metadata([])))
            refused = await asyncio.wait([asking], timeout=0.2)
            assert not refused[0], "it has given up already"
            broker = ScriptedBroker(lambda *_: MetadataResponse(cluster_id="here"))
            # It ends behind the cluster: from Python 3.12 on a server waits for its connections.
            await server.enter_async_context(await asyncio.start_server(broker.serve, "127.0.0.1", port))
            return (await asking).cluster_id

    assert asyncio.run(scenario()) == "here"


def test_without_patience_a_wrong_address_fails_at_once() -> None:
    async def scenario() -> None:
        async with Cluster("127.0.0.1:1") as cluster:
            await cluster.retrying(lambda: cluster.metadata([]))

    with pytest.raises(Unreachable, match="connection refused"):
        asyncio.run(scenario())
