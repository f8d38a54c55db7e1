"""Metrics move when what they measure happens, here what is rare: a failed disk, a damaged log, a lost session."""

import asyncio
import errno
import itertools
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import pytest
from tests.metrics_moved import MOVED_BY, moved
from tests.unit.broker.handlers.conftest import Harness
from tests.unit.broker.handlers.test_session import frame
from tests.unit.broker.server.by_hand import ByHand, WantWrite

from ottla.broker.coordination.sending import InterBroker
from ottla.broker.coordination.transaction_partitions import ClusterTransactionPartitions
from ottla.broker.handlers.fetching.sessions import FetchSessions
from ottla.broker.life import OpeningProgress, SystemClock
from ottla.broker.metrics import arrivals, clients, coordinators, host, logs, network, topics
from ottla.broker.metrics.keeping import Rates
from ottla.broker.metrics.showing import Shown
from ottla.broker.metrics.zookeeper import ServerFigures, parse, servers_in, show_session
from ottla.broker.node import Node
from ottla.broker.process import open_store
from ottla.broker.replication.fetch_requests import Followed
from ottla.broker.replication.traffic import Traffic
from ottla.broker.security.sasl.login import Login
from ottla.broker.server.dispatch import Dispatcher
from ottla.broker.server.limits import ConnectionLimits
from ottla.broker.server.listener import Server
from ottla.broker.session import ANONYMOUS, Session
from ottla.broker.storage.compaction.cleaner import LogCleaner
from ottla.cluster.zookeeper.client import SessionCounts
from ottla.config.load import settings_from
from ottla.config.topic import TopicSettings
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition, new_topic_id
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.messages.fetch import FetchRequest
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.protocol.records import NewRecord, encode_batch
from ottla.telemetry.catalogue import METRICS
from ottla.telemetry.declared import zookeeper
from ottla.telemetry.declared.zookeeper import MNTR
from ottla.telemetry.otlp import Point
from ottla.telemetry.prometheus import render
from ottla.telemetry.pushed import NO_INSTANCE, ClientMetrics
from ottla.telemetry.registry import Telemetry

OF_A_CLUSTER = {metric for metric in vars(zookeeper).values() if metric in METRICS.values()} | {
    METRICS["kafka_server_auditlog_dropped_total"]
}
"""Measured where there is a ZooKeeper, or an authorizer."""


def here(test: str) -> str:
    return f"tests/unit/broker/handlers/test_metrics_moves.py::{test}"


def told(telemetry: Telemetry) -> str:
    return render(telemetry.tables())


def test_a_disk_fails_and_a_log_cannot_be_cleaned(harness: Harness) -> None:
    telemetry = Telemetry()
    opening = OpeningProgress(SystemClock())
    logs.show(telemetry, harness.logs, opening)
    cleaner = LogCleaner(harness.logs, lambda: harness.broker.settings, SystemClock())
    logs.show_cleaner(telemetry, cleaner, harness.logs, lambda: 0)
    before = told(telemetry)
    opening("/data", 3, 10)
    tp = TopicPartition("damaged", 0)
    log = harness.logs.create(tp, new_topic_id(bytes), TopicSettings())
    log.append_as_leader(encode_batch([NewRecord(None, b"x", 1)]), 0, 1)
    cleaner._give_up(log, "damaged")
    seen = moved(before, told(telemetry))
    harness.logs.dirs[0].fail(OSError(errno.EIO, "worn out"))
    seen |= moved(before, told(telemetry))
    assert seen >= set(MOVED_BY[here("test_a_disk_fails_and_a_log_cannot_be_cleaned")])


def test_the_session_with_zookeeper() -> None:
    counts, telemetry = SessionCounts(), Telemetry()
    show_session(telemetry, counts)
    before = told(telemetry)
    counts.note(connected=True, lost=False)
    counts.note(connected=False, lost=False)
    counts.note(connected=False, lost=True)
    counts.auth_failures += 1
    counts.latency.record(2_000)
    counts.note(connected=True, lost=False)
    assert moved(before, told(telemetry)) >= set(MOVED_BY[here("test_the_session_with_zookeeper")])


def test_what_a_zookeeper_server_says() -> None:
    assert parse("zk_avg_latency\t0.5\nzk_znode_count\t9\n") == {"zk_avg_latency": "0.5", "zk_znode_count": "9"}
    assert parse("mntr is not executed because it is not in the whitelist.\n") == {}
    assert servers_in("a:1,b,[::1]:3/chroot/x") == [("a", 1), ("b", 2181), ("::1", 3)]


def test_connections_that_are_behind() -> None:
    by_hand, telemetry = ByHand(), Telemetry()
    server = SimpleNamespace(
        connections=[by_hand.connection], memory=SimpleNamespace(held=5), expired_connections=0, watch=None
    )
    network.show(telemetry, lambda: cast("Any", server), FetchSessions(lambda: 1, lambda: 1))
    before = told(telemetry)
    by_hand.channel.send_wishes.extend([WantWrite])
    by_hand.arrive(b"request-1")
    by_hand.loop.run()
    assert moved(before, told(telemetry)) >= set(MOVED_BY[here("test_connections_that_are_behind")])


def test_connections_that_come_and_are_kept_waiting() -> None:
    telemetry = Telemetry()
    settings = settings_from(
        {"max.connection.creation.rate": "1", "listener.name.l.max.connection.creation.rate": "2",
         "listeners": "L://127.0.0.1:0", "listener.security.protocol.map": "L:PLAINTEXT"}
    )  # fmt: skip
    limits = ConnectionLimits(lambda: settings, lambda: {"192.0.2.1": 1})
    listener = SimpleNamespace(address=SimpleNamespace(name="L"), blocked_seconds=0.0)
    server = SimpleNamespace(
        limits=limits, listeners=[listener], connections=[], loop=SimpleNamespace(time=lambda: 1.0)
    )
    arrivals.show(telemetry, lambda: cast("Any", server))
    before = told(telemetry)
    for _ in range(30):
        limits.arrived("L", 1_000)
        limits.address_waits_ms("L", "192.0.2.1", 1_000)
    session = Session("L", "192.0.2.1")
    session.runs("apache-kafka-java", "4.3.1")
    server.connections = [SimpleNamespace(session=session)]
    listener.blocked_seconds = 2.5
    assert moved(before, told(telemetry)) >= set(MOVED_BY[here("test_connections_that_come_and_are_kept_waiting")])
    assert 'client_software_name="apache-kafka-java",client_software_version="4.3.1"} 1' in told(telemetry)


def test_a_fetch_session_that_gives_way() -> None:
    telemetry, ids = Telemetry(), itertools.count(1)
    sessions = FetchSessions(lambda: 1, lambda: next(ids))
    network.show(telemetry, lambda: None, sessions)
    before = told(telemetry)
    for now in (0.0, 1_000.0):
        assert sessions.session_for(FetchRequest(session_epoch=0), uses_topic_ids=True, now=now) is not None
    assert moved(before, told(telemetry)) >= set(MOVED_BY[here("test_a_fetch_session_that_gives_way")])


def test_coordinators_count(harness: Harness) -> None:
    telemetry = Telemetry()
    coordinators.show_groups(telemetry, harness.broker.groups)
    partitions = ClusterTransactionPartitions(
        harness.broker.transactions,
        InterBroker(1, harness.store, harness.broker.peers, lambda: harness.broker.settings),
    )
    coordinators.show_transactions(telemetry, harness.broker.transactions, partitions)
    before = told(telemetry)
    for counts in (harness.broker.groups.counts, harness.broker.transactions.counts):
        counts.loaded(12.5)
        counts.expirations += 1
    partitions._note({TopicPartition("t", 0): ErrorCode.INVALID_TXN_STATE}, 0.1)
    assert moved(before, told(telemetry)) >= set(MOVED_BY[here("test_coordinators_count")])


def test_reads_that_are_refused() -> None:
    traffic, telemetry = Traffic(), Telemetry()
    topics.show(telemetry, traffic)
    before = told(telemetry)
    traffic.of("t").read_refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    traffic.of("t").read_refused(ErrorCode.OFFSET_OUT_OF_RANGE)
    assert moved(before, told(telemetry)) >= set(MOVED_BY[here("test_reads_that_are_refused")])
    assert traffic.of("t").failed_reads == 1
    traffic.forget("t")
    assert traffic.total().failed_reads == 1, "what went through a topic that is gone stays in the sum"


def test_the_host(tmp_path: Path) -> None:
    (tmp_path / "self/fd").mkdir(parents=True)
    (tmp_path / "net").mkdir()
    (tmp_path / "stat").write_text("cpu 1 2 3\nbtime 1700000000\n")
    (tmp_path / "self/stat").write_text(f"42 (a name) {' '.join(['S', *map(str, range(18)), '500', '9'])}\n")
    (tmp_path / "self/io").write_text("rchar: 1\nread_bytes: 4096\nwrite_bytes: 8192\n")
    (tmp_path / "diskstats").write_text(
        "8 0 sda 1 0 16 0 1 0 32 0 0 500 0\n8 1 sda1 1 0 16 0 1 0 32 0 0 500 0\n7 0 loop0 1 0 2 0 1 0 2 0 0 1 0\n"
    )
    telemetry = Telemetry()
    host.show(telemetry, list, tmp_path)
    text = told(telemetry)
    assert moved("", text) >= set(MOVED_BY[here("test_the_host")])
    assert f"process_start_time_seconds {1700000000 + 500 / os.sysconf('SC_CLK_TCK')}" in text
    assert "kafka_server_kafkaserver_linux_disk_read_bytes 4096" in text
    assert 'ottla_host_disk_read_bytes_total{device="sda"} 8192' in text
    assert 'ottla_host_disk_busy_seconds_total{device="sda"} 0.5' in text
    assert "sda1" not in text
    assert "loop0" not in text


def test_a_session_that_was_not_renewed(harness: Harness) -> None:
    loop = asyncio.new_event_loop()
    dispatcher, telemetry = Dispatcher(harness.broker, loop), Telemetry()
    server = Server(harness.config, dispatcher, loop)
    network.show(telemetry, lambda: server, FetchSessions(lambda: 1, lambda: 1))
    before = told(telemetry)
    session = Session("INSIDE", "h", 1, login=Login(cast("Any", list), 100))
    session.authenticated(ANONYMOUS, expires_at=loop.time() - 1)
    with pytest.raises(MalformedMessage, match="has ended"):
        dispatcher.dispatch(frame(ListGroupsRequest(), 4, "me"), session)
    loop.close()
    assert moved(before, told(telemetry)) >= set(MOVED_BY[here("test_a_session_that_was_not_renewed")])


def test_clients_that_push() -> None:
    telemetry = Telemetry()
    metrics = ClientMetrics(lambda: 1, lambda: 1000, uuid4)
    metrics.use({"all": {"metrics": "*"}})
    clients.show(telemetry, metrics, lambda: 0.01)
    before = told(telemetry)
    instance, wanted = metrics.subscribe(NO_INSTANCE, {}, 0)
    with pytest.raises(ApiError):
        metrics.check(instance, {}, wanted.id + 1, 0, 1, 1)
    metrics.subscribe(instance, {}, 2)
    with pytest.raises(ApiError):
        metrics.subscribe(instance, {}, 3)
    metrics.check(instance, {}, wanted.id, 0, 1, 4)
    metrics.take(instance, [Point("a", "", (), 1.0), Point("b", "", (), 1.0)])
    metrics.times.note(2.5, 0.01)
    metrics.failed += 1
    assert moved(before, told(telemetry)) >= set(MOVED_BY[here("test_clients_that_push")])


def test_the_last_client_that_goes_is_forgotten_when_somebody_looks() -> None:
    telemetry, now = Telemetry(), [0.0]
    metrics = ClientMetrics(lambda: 100, lambda: 1000, uuid4)
    metrics.use({"all": {"metrics": "*", "interval.ms": "1000"}})
    clients.show(telemetry, metrics, lambda: now[0])
    instance, wanted = metrics.subscribe(NO_INSTANCE, {"client_id": "me"}, 0)
    metrics.check(instance, {"client_id": "me"}, wanted.id, 0, 1, 1)
    metrics.take(instance, [Point("sent", "", (), 1.0)])
    now[0] = 2.0
    assert "kafka_server_clientmetrics_instancecount 1" in told(telemetry)
    assert 'client_id="me"' in render(telemetry.pushed())
    now[0] = 60.0
    assert render(telemetry.pushed()) == ""
    assert "kafka_server_clientmetrics_instancecount 0" in told(telemetry)


def test_rates_move_with_their_counters() -> None:
    telemetry, now, counted = Telemetry(), [0.0], [0]
    rates = [metric for metric in METRICS.values() if metric.rate_of]
    for metric in rates:
        labels = tuple("x" for _ in metric.labels)
        telemetry.observe(METRICS[metric.rate_of], lambda labels=labels: [(labels, counted[0])])  # type: ignore[misc]
    keeper = Rates(telemetry, lambda: now[0])
    keeper.show()
    keeper.tick()
    now[0], counted[0] = 10.0, 50
    found = {sample.metric.name: sample.value for sample in telemetry.snapshot() if sample.metric.rate_of}
    assert found == {metric.name: 5.0 for metric in rates}
    assert found.keys() >= set(MOVED_BY[here("test_rates_move_with_their_counters")])


def test_what_servers_of_zookeeper_say_is_told() -> None:
    figures, telemetry = ServerFigures("zk1:2181"), Telemetry()
    figures.show(telemetry)
    before = told(telemetry)
    figures._said["zk1:2181"] = parse("".join(f"{name}\t{number}\n" for number, name in enumerate(MNTR, 1)))
    assert moved(before, told(telemetry)) >= set(MOVED_BY[here("test_what_servers_of_zookeeper_say_is_told")])


def test_a_whole_broker(tmp_path: Path) -> None:
    """What only a cluster in trouble does is done to a broker's parts by hand."""

    async def run() -> set[str]:
        settings = settings_from({"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0"})
        node = Node(settings, await open_store(settings))
        shown = Shown(node)
        await node.start()
        try:
            await node.controller.ensure_topic("news")
            before = told(node.telemetry)
            assert set(METRICS.values()) - set(node.telemetry.observed) <= OF_A_CLUSTER, "all are measured"
            partition = node.partitions.get(("news", 0))
            partition.replicas, partition.isr = (1, 2), (1,)
            followed = Followed(partition)
            followed.lag, followed.failures = 7, 1
            fetcher = node.fetchers.home_of(partition)
            fetcher._resting[followed.key] = (followed, asyncio.get_running_loop().call_later(60, print))
            node.leading.counts.unclean += 1
            node.leading.counts.errors += 1
            node.isr.failures += 1
            node.logs.dirs[0].failure = "worn out"
            node.partitions._by_name.pop(("news", 0))
            seen = moved(before, told(node.telemetry))
            node.partitions._by_name["news", 0] = partition
            seen |= moved(before, told(node.telemetry))
            node.logs.dirs[0].failure = None
            partition.replicas, partition.isr = (1,), (1,)
            return seen
        finally:
            await node.stop()
            await shown.stop()

    assert asyncio.run(run()) >= set(MOVED_BY[here("test_a_whole_broker")])


def test_fetches_are_counted_by_who_fetches_too(harness: Harness) -> None:
    loop = asyncio.new_event_loop()
    dispatcher = Dispatcher(harness.broker, loop)
    for replica_id in (-1, -1, 2):
        request = FetchRequest(replica_id=replica_id, session_epoch=-1, max_bytes=1)
        dispatcher.dispatch(frame(request, 12, "me"), Session("INSIDE", "h", 1))
    loop.close()
    text = told(harness.broker.telemetry)
    for name, count in (("Fetch", 3), ("FetchConsumer", 2), ("FetchFollower", 1)):
        assert f'kafka_network_requestmetrics_requests_total{{request="{name}",version="12"}} {count}\n' in text
