"""Limits hold: connections, their rate, idle time, memory of requests, and readers that do not read."""

import contextlib
import resource
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from ottla.model.errors import ErrorCode
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
        begun = time.monotonic()
        bystander()
        assert time.monotonic() - begun < 1.0
        assert resident_bytes(ottla_broker.pid) - before_bytes < count * 16_384
    wait_until(lambda: open_sockets(ottla_broker.pid) <= before_sockets, "all are gone")


@pytest.mark.ottla(max_connections=5)
def test_most_connections_at_a_time(ottla_fresh_broker: RunningBroker) -> None:
    with contextlib.ExitStack() as stack:
        allowed = [stack.enter_context(_connect(ottla_fresh_broker)) for _ in range(5)]
        assert all(_works(connection) for connection in allowed)
        with _connect(ottla_fresh_broker) as refused:
            assert refused.closed_by_peer()
        allowed[0].close()

        def one_more() -> bool:
            with _connect(ottla_fresh_broker) as connection:
                return _works(connection)

        wait_until(one_more, "a place becomes free")
        assert all(_works(connection) for connection in allowed[1:])


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


@pytest.mark.ottla(max_connection_creation_rate=10)
def test_connections_come_no_faster_than_allowed(ottla_fresh_broker: RunningBroker) -> None:
    begun = time.monotonic()
    for _ in range(30):
        with _connect(ottla_fresh_broker) as connection:
            assert _works(connection)
    # The first ten may come in a burst; the other twenty take a tenth of a second each.
    assert 1.7 < time.monotonic() - begun < 10


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
            active.socket.settimeout(20)
        assert idle.closed_by_peer(0.1)
        assert half.closed_by_peer(0.1)
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
