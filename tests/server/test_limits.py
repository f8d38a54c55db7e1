"""Limits hold: connections, their rate, idle time, memory of requests, and readers that do not read."""

import contextlib
import re
import resource
import select
import socket
import struct
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.fetch import FetchRequest
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.testing import RunningBroker
from ottla.testing.process import open_sockets, resident_bytes
from ottla.testing.requests import FETCH_VERSION, create_topic, fetch_request, produce
from ottla.testing.waiting import wait_until
from ottla.testing.wire import WireConnection

MB = 1 << 20


def _connect(running: RunningBroker) -> WireConnection:
    return WireConnection(running.host, running.port)


def _works(connection: WireConnection) -> bool:
    try:
        return connection.call(ApiVersionsRequest(), 2, ApiVersionsResponse).error_code == ErrorCode.NONE
    except ConnectionError:
        return False


def _use_one_after_the_other(*connections: WireConnection) -> None:
    """Each until a few milliseconds are over: more exactly the broker does not know when one was used."""
    for connection in connections:
        begun = time.monotonic()
        while time.monotonic() < begun + 0.005:
            assert _works(connection)


def _answers(connection: WireConnection, seconds: float) -> bool:
    """Whether something comes within that time."""
    return bool(select.select([connection.socket], [], [], seconds)[0])


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_thousands_of_connections_that_say_nothing(
    ottla_broker: RunningBroker, bystander: Callable[[], None], many_descriptors: None
) -> None:
    count = min(4000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 200)
    before_bytes, before_sockets = resident_bytes(ottla_broker.pid), open_sockets(ottla_broker.pid)
    with contextlib.ExitStack() as stack:
        for number in range(count):
            stack.enter_context(_connect(ottla_broker))
            if number % 25 == 0:
                bystander()  # also lets the broker accept: at most 50 connections may wait for that
        wait_until(lambda: open_sockets(ottla_broker.pid) >= before_sockets + count, "all are accepted")

        def is_quick() -> bool:
            begun = time.monotonic()
            bystander()
            return time.monotonic() - begun < 1.0

        wait_until(is_quick, "another client is not held up")
        assert resident_bytes(ottla_broker.pid) - before_bytes < count * 16_384
    wait_until(lambda: open_sockets(ottla_broker.pid) <= before_sockets, "all are gone")


@pytest.mark.ottla(max_connections=5)
def test_most_connections_at_a_time(ottla_fresh_broker: RunningBroker) -> None:
    with contextlib.ExitStack() as stack:
        allowed = [stack.enter_context(_connect(ottla_fresh_broker)) for _ in range(5)]
        assert all(_works(connection) for connection in allowed)
        waiting = stack.enter_context(_connect(ottla_fresh_broker))
        waiting.send(waiting.frame(ApiVersionsRequest(), 2))
        assert not _answers(waiting, 0.5), "it waits until a place becomes free"
        assert all(_works(connection) for connection in allowed)
        allowed[0].close()
        waiting.read_answer(ApiVersionsRequest.API_KEY, 2)
        assert all(_works(connection) for connection in allowed[1:])


TWO_LISTENERS = {
    "listeners": "CLIENTS://127.0.0.1:0,BROKERS://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
}


@pytest.mark.ottla({**TWO_LISTENERS, "max.connections": 4, "listener.name.clients.max.connections": 3})
def test_brokers_find_a_place_and_the_least_recently_used_client_loses_its_own(
    ottla_fresh_broker: RunningBroker,
) -> None:
    clients, brokers = ottla_fresh_broker.listeners["CLIENTS"], ottla_fresh_broker.listeners["BROKERS"]
    with contextlib.ExitStack() as stack:
        used = [stack.enter_context(WireConnection(*clients)) for _ in range(3)]
        _use_one_after_the_other(used[1], used[0], used[2])
        fourth = stack.enter_context(WireConnection(*clients))
        fourth.send(fourth.frame(ApiVersionsRequest(), 2))
        assert not _answers(fourth, 0.5), "the listener is full"
        inside = [stack.enter_context(WireConnection(*brokers)) for _ in range(2)]
        assert all(_works(connection) for connection in inside)
        assert used[1].closed_by_peer(), "the one that was not used for longest"
        assert _works(used[0])
        assert _works(used[2])


def test_a_limit_that_is_lowered_closes_those_that_were_not_used_for_longest(
    ottla_fresh_broker: RunningBroker,
) -> None:
    with contextlib.ExitStack() as stack:
        several = [stack.enter_context(_connect(ottla_fresh_broker)) for _ in range(6)]
        _use_one_after_the_other(*reversed(several))
        _set_broker(several[0], "max.connections", "2")
        assert all(connection.closed_by_peer() for connection in several[2:])
        assert _works(several[0])
        assert _works(several[1])


@pytest.mark.ottla(max_connections=300)
def test_thousands_that_want_in_while_the_broker_is_full(
    ottla_fresh_broker: RunningBroker, many_descriptors: None
) -> None:
    """They wait outside, cost the broker nothing, and whoever is inside goes on."""
    with contextlib.ExitStack() as stack:
        inside = [stack.enter_context(_connect(ottla_fresh_broker)) for _ in range(300)]
        assert all(_works(connection) for connection in inside)
        before = resident_bytes(ottla_fresh_broker.pid)
        sockets = open_sockets(ottla_fresh_broker.pid)
        crowd = []
        for number in range(3000):
            outside = stack.enter_context(socket.socket())
            outside.setblocking(False)
            outside.connect_ex((ottla_fresh_broker.host, ottla_fresh_broker.port))
            crowd.append(outside)
            if number % 100 == 0:
                assert _works(inside[number % 300])
        assert open_sockets(ottla_fresh_broker.pid) <= sockets + 1, "one is held, the others are not even accepted"
        assert resident_bytes(ottla_fresh_broker.pid) - before < 5 * MB
        for outside in crowd:
            outside.close()
        inside[7].close()

        def one_more() -> bool:
            with _connect(ottla_fresh_broker) as connection:
                return _works(connection)

        wait_until(one_more, "a place becomes free")
        assert all(_works(connection) for connection in (*inside[:7], *inside[8:]))


@pytest.mark.ottla({"max.connections.per.ip": 3, "max.connections.per.ip.overrides": "127.0.0.2:1"})
def test_most_connections_from_one_address(ottla_fresh_broker: RunningBroker) -> None:
    with contextlib.ExitStack() as stack:
        allowed = [stack.enter_context(_connect(ottla_fresh_broker)) for _ in range(3)]
        assert all(_works(connection) for connection in allowed)
        with _connect(ottla_fresh_broker) as refused:
            assert refused.closed_by_peer()

        def from_other() -> socket.socket:
            address = (ottla_fresh_broker.host, ottla_fresh_broker.port)
            return stack.enter_context(socket.create_connection(address, 20, ("127.0.0.2", 0)))

        first, second = from_other(), from_other()
        assert second.recv(1) == b"", "the override allows one"
        first.sendall(struct.pack(">ihhih", 10, 18, 0, 1, -1))
        assert first.recv(4)


def test_the_limit_can_be_lowered_while_the_broker_runs(ottla_fresh_broker: RunningBroker) -> None:
    with _connect(ottla_fresh_broker) as connection:
        _set_broker(connection, "max.connections.per.ip", "2")
        with _connect(ottla_fresh_broker) as second, _connect(ottla_fresh_broker) as third:
            assert _works(second)
            assert third.closed_by_peer()


def _set_broker(connection: WireConnection, name: str, value: str) -> None:
    config = AlterableConfig(name=name, config_operation=0, value=value)
    resource_changed = AlterConfigsResource(resource_type=4, resource_name="", configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[resource_changed])
    answer = connection.call(request, 1, IncrementalAlterConfigsResponse)
    assert answer.responses[0].error_code == ErrorCode.NONE, answer.responses[0].error_message


@pytest.mark.ottla({"max.connection.creation.rate": 10, "quota.window.num": 2, "metrics.listener": "127.0.0.1:0"})
def test_connections_come_no_faster_than_allowed(ottla_fresh_broker: RunningBroker) -> None:
    begun = time.monotonic()
    for _ in range(30):
        with _connect(ottla_fresh_broker) as connection:
            assert _works(connection)
    # The first ten may come in a burst; the other twenty take a tenth of a second each.
    assert time.monotonic() - begun > 1.2
    told = _metrics(ottla_fresh_broker)
    assert told["ottla_listener_blocked_seconds_total"] > 0.5
    assert told["kafka_server_socket_server_metrics_connection_accept_throttle_time"] > 0
    assert told["kafka_server_socket_server_metrics_broker_connection_accept_rate"] > 0


def _metrics(running: RunningBroker) -> dict[str, float]:
    """The last series of each name."""
    url = re.findall(r"HTTP listener started on (\S+)", running.log_text())[-1]
    with urllib.request.urlopen(f"{url}/metrics", timeout=30) as answer:
        lines = re.findall(r"^(\w+)(?:\{.*\})? (\S+)$", answer.read().decode(), re.MULTILINE)
    return {name: float(value) for name, value in lines}


@pytest.mark.ottla({"quota.window.num": 2})
def test_an_address_that_connects_too_often_is_kept_waiting_and_not_served(ottla_fresh_broker: RunningBroker) -> None:
    with _connect(ottla_fresh_broker) as admin:
        entity = [RequestEntityData(entity_type="ip", entity_name="127.0.0.3")]
        entry = RequestEntryData(entity=entity, ops=[OpData(key="connection_creation_rate", value=2.0)])
        answer = admin.call(AlterClientQuotasRequest(entries=[entry]), 1, AlterClientQuotasResponse)
        assert answer.entries[0].error_code == ErrorCode.NONE
        address = (ottla_fresh_broker.host, ottla_fresh_broker.port)
        with contextlib.ExitStack() as stack:
            begun = time.monotonic()
            several = [stack.enter_context(socket.create_connection(address, 20, ("127.0.0.3", 0))) for _ in range(4)]
            for connection in several:
                connection.sendall(struct.pack(">ihhih", 10, 18, 0, 1, -1))
            assert several[0].recv(4)
            assert several[1].recv(4)
            with contextlib.suppress(ConnectionResetError):
                assert several[3].recv(4) == b"", "accepted, never answered"
            assert time.monotonic() - begun > 0.2, "and closed after the time it had to wait"
            assert _works(admin)
            with _connect(ottla_fresh_broker) as other:
                assert _works(other), "other addresses come and go"


def test_a_crowd_from_an_address_with_a_quota_takes_few_descriptors(
    ottla_fresh_broker: RunningBroker, many_descriptors: None
) -> None:
    with _connect(ottla_fresh_broker) as admin, contextlib.ExitStack() as stack:
        entity = [RequestEntityData(entity_type="ip", entity_name="127.0.0.5")]
        entry = RequestEntryData(entity=entity, ops=[OpData(key="connection_creation_rate", value=1.0)])
        answer = admin.call(AlterClientQuotasRequest(entries=[entry]), 1, AlterClientQuotasResponse)
        assert answer.entries[0].error_code == ErrorCode.NONE
        before, most = open_sockets(ottla_fresh_broker.pid), 0
        for number in range(2000):
            crowd = stack.enter_context(socket.socket())
            crowd.setblocking(False)
            crowd.bind(("127.0.0.5", 0))
            crowd.connect_ex((ottla_fresh_broker.host, ottla_fresh_broker.port))
            if number % 40 == 0:
                assert _works(admin)  # also lets the broker accept
                most = max(most, open_sockets(ottla_fresh_broker.pid) - before)
        assert 0 < most < 700, most
        with _connect(ottla_fresh_broker) as other:
            assert _works(other)
        wait_until(lambda: open_sockets(ottla_fresh_broker.pid) - before <= 20, "ten are served, the others are gone")


@pytest.mark.ottla(connections_max_idle_ms=600)
def test_idle_connections_are_closed_and_busy_ones_are_not(ottla_fresh_broker: RunningBroker) -> None:
    with (
        _connect(ottla_fresh_broker) as idle,
        _connect(ottla_fresh_broker) as half,
        _connect(ottla_fresh_broker) as active,
        _connect(ottla_fresh_broker) as waiting,
    ):
        assert create_topic(active, "t") == ErrorCode.NONE
        half.send(b"\x00\x00")
        waiting.send(waiting.frame(fetch_request("t", 0, 0, max_wait_ms=2_500), FETCH_VERSION))
        ends = time.monotonic() + 2.0
        while time.monotonic() < ends:
            assert _works(active)
            active.socket.settimeout(0.1)
            with contextlib.suppress(TimeoutError):
                assert active.socket.recv(1) == b"unexpected"
            active.socket.settimeout(60)
        assert idle.closed_by_peer(60)
        assert half.closed_by_peer(60)
        waiting.read_answer(FetchRequest.API_KEY, FETCH_VERSION)


def test_a_reader_that_does_not_read_costs_no_memory(
    ottla_broker: RunningBroker, bystander: Callable[[], None], unique: Callable[[str], str]
) -> None:
    topic = unique("unread")
    with _connect(ottla_broker) as writer:
        assert create_topic(writer, topic) == ErrorCode.NONE
        for _ in range(30):
            assert produce(writer, topic, 0, [bytes(1_000_000)]).error_code == ErrorCode.NONE
    before = resident_bytes(ottla_broker.pid)
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            reader = stack.enter_context(WireConnection(ottla_broker.host, ottla_broker.port, receive_buffer=4096))
            for _ in range(20):
                reader.send(reader.frame(fetch_request(topic, 0, 0, max_bytes=50 * MB), FETCH_VERSION))
        _send_until_blocked(stack.enter_context(_connect(ottla_broker)), MetadataRequest(topics=None), 12)
        bystander()
        assert resident_bytes(ottla_broker.pid) - before < 20 * MB, "12 GB were asked for and not read"


def _send_until_blocked(connection: WireConnection, request: MetadataRequest, version: int) -> None:
    """Requests without reading a single answer, until the broker does not take them any more."""
    frame = connection.frame(request, version) * 100
    connection.socket.settimeout(0.5)
    with contextlib.suppress(TimeoutError):
        for _ in range(100_000):
            connection.send(frame)
        raise AssertionError("the broker takes requests without end from a peer that reads no answers")


@pytest.mark.ottla({"socket.request.max.bytes": 2 * MB, "queued.max.request.bytes": 4 * MB})
def test_memory_of_requests_is_bounded_and_nobody_is_forgotten(ottla_fresh_broker: RunningBroker) -> None:
    running = ottla_fresh_broker
    with _connect(running) as connection:
        assert create_topic(connection, "large") == ErrorCode.NONE
        produce(connection, "large", 0, [bytes(1_000_000)])
    before = resident_bytes(running.pid)
    most = before
    results: list[int] = []

    def write() -> None:
        with _connect(running) as connection:
            for _ in range(4):
                results.append(produce(connection, "large", 0, [bytes(1_000_000)]).error_code)

    writers = [threading.Thread(target=write) for _ in range(24)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        most = max(most, resident_bytes(running.pid))
        writers[0].join(0.005)
        writers = [writer for writer in writers if writer.is_alive()] or writers
    assert results == [ErrorCode.NONE] * 96
    assert most - before < 24 * MB


@pytest.mark.ottla({"socket.request.max.bytes": 2 * MB, "queued.max.request.bytes": 4 * MB})
def test_half_sent_requests_that_fill_the_bound_do_not_shut_out_the_others(ottla_fresh_broker: RunningBroker) -> None:
    running = ottla_fresh_broker
    with contextlib.ExitStack() as stack:
        good = stack.enter_context(_connect(running))
        assert create_topic(good, "t") == ErrorCode.NONE
        before = resident_bytes(running.pid)
        for _ in range(9):
            hog = stack.enter_context(_connect(running))
            hog.socket.settimeout(0.2)
            with contextlib.suppress(TimeoutError, ConnectionError):
                hog.send(struct.pack(">i", 2 * MB) + bytes(2 * MB - 100))
        assert resident_bytes(running.pid) - before < 12 * MB, "18 MB were sent in requests that never end"
        assert produce(good, "t", 0, [b"small"]).error_code == ErrorCode.NONE
        assert produce(good, "t", 0, [bytes(900_000)]).error_code == ErrorCode.NONE
