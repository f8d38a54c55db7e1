"""What a broker counts of its requests and connections."""

import asyncio
from collections.abc import Iterator

import pytest
from tests.unit.broker.handlers.conftest import Harness
from tests.unit.broker.handlers.test_session import frame

from ottla.broker.server.dispatch import Dispatcher
from ottla.broker.server.listener import Server
from ottla.broker.session import Session
from ottla.config.listeners import ListenerAddress
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.schema import TopLevel
from ottla.telemetry.catalogue import (
    BYTES_IN,
    BYTES_OUT,
    CONNECTIONS,
    CONNECTIONS_CLOSED,
    CONNECTIONS_CREATED,
    ERRORS,
    REQUESTS,
)
from ottla.telemetry.metric import Metric

SESSION = Session("PLAINTEXT", "h")


@pytest.fixture
def dispatcher(harness: Harness) -> Iterator[Dispatcher]:
    loop = asyncio.new_event_loop()
    yield Dispatcher(harness.broker, loop)
    loop.close()


def ask(dispatcher: Dispatcher, request: TopLevel, version: int) -> None:
    answer = dispatcher.dispatch(frame(request, version, "me"), SESSION)
    dispatcher.pack(answer, answer.outcome)  # type: ignore[arg-type]  # nothing here waits


def read(dispatcher: Dispatcher, metric: Metric) -> dict[tuple[str, ...], float]:
    return {sample.labels: sample.value for sample in dispatcher.telemetry.snapshot() if sample.metric is metric}


def test_requests_are_counted_by_api_and_version(dispatcher: Dispatcher) -> None:
    for version in (4, 4, 5):
        ask(dispatcher, ListGroupsRequest(), version)
    ask(dispatcher, ApiVersionsRequest("a", "1"), 3)
    assert read(dispatcher, REQUESTS) == {("ListGroups", "4"): 2, ("ListGroups", "5"): 1, ("ApiVersions", "3"): 1}


def test_errors_are_counted_by_api_and_code(dispatcher: Dispatcher) -> None:
    ask(dispatcher, ApiVersionsRequest("", ""), 3)
    ask(dispatcher, DescribeGroupsRequest(groups=["a", "b"]), 5)
    assert read(dispatcher, ERRORS) == {
        ("ApiVersions", "INVALID_REQUEST"): 1,
        ("DescribeGroups", "COORDINATOR_NOT_AVAILABLE"): 2,
    }


def test_errors_of_packed_responses_are_counted_too(dispatcher: Dispatcher) -> None:
    data = [PartitionProduceData(index=index, records=bytearray(70)) for index in range(2)]
    topic = TopicProduceData(name="none", partition_data=data)
    ask(dispatcher, ProduceRequest(acks=1, timeout_ms=10, topic_data=[topic]), 9)
    wanted = FetchTopic(topic="none", partitions=[FetchPartition(partition=0, partition_max_bytes=1)])
    ask(dispatcher, FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1, session_epoch=-1, topics=[wanted]), 12)
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.name
    assert read(dispatcher, ERRORS) == {("Produce", missing): 2, ("Fetch", missing): 1}


def test_connections_and_their_bytes_are_counted(harness: Harness) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        dispatcher = Dispatcher(harness.broker, loop)
        server = Server(harness.config, dispatcher, loop)
        server.bind((ListenerAddress("INSIDE", "127.0.0.1", 0, "PLAINTEXT"),))
        server.start()
        request = bytes(frame(ListGroupsRequest(), 4, "me"))
        sent = len(request).to_bytes(4, "big") + request
        streams = [await asyncio.open_connection("127.0.0.1", server.listeners[0].port) for _ in range(2)]
        received = 0
        for reader, writer in streams:
            writer.write(sent)
            size = int.from_bytes(await reader.readexactly(4), "big")
            received += 4 + len(await reader.readexactly(size))

        def check(connections: int, closed: int) -> None:
            told = [
                (CONNECTIONS, connections), (CONNECTIONS_CREATED, 2), (CONNECTIONS_CLOSED, closed),
                (BYTES_IN, 2 * len(sent)), (BYTES_OUT, received),
            ]  # fmt: skip
            assert [read(dispatcher, metric) for metric, _ in told] == [{("INSIDE",): value} for _, value in told]

        check(2, 0)
        for reader, writer in streams:
            writer.write_eof()
            assert await reader.read() == b"", "the broker closes its side"
        check(0, 2)
        for _, writer in streams:
            writer.transport.abort()
        await server.stop(0)

    asyncio.run(run())
