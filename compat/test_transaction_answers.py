"""The same requests to Apache Kafka and to Ottla: every answer about a transaction is the same, code by code."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from compat.peer.kafka import running

from ottla.client.connection import Connection
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ottla.testing import broker

pytestmark = pytest.mark.usefixtures("kafka_libs")

PASSING = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""Of a whole answer, not of one partition in it."""
Answer = tuple[Any, ...]
Address = tuple[str, int]


class Producer:
    """A producer in name only: it sends exactly the requests that it is told to send."""

    def __init__(self, connection: Connection, name: str) -> None:
        self.connection = connection
        self.name = self.topic = name
        self.producer_id = 0
        self.first_id = 0

    async def call(self, request: Any, answer: type[Any], version: int | None = None) -> Any:
        least = request.MIN_VERSION if version is None else version
        return await self.connection.call(request, answer, min_version=least, max_version=version)

    async def prepare(self) -> None:
        topics = [CreatableTopic(name=self.topic, num_partitions=2, replication_factor=1)]
        await self.call(CreateTopicsRequest(topics=topics), CreateTopicsResponse)
        # Kafka tells of a topic before its partitions can be written to; they are asked themselves.
        there = DescribeProducersRequest(topics=[TopicRequest(name=self.topic, partition_indexes=[0, 1])])
        await settled(
            lambda: self.call(there, DescribeProducersResponse),
            lambda found: max(partition.error_code for partition in found.topics[0].partitions),
        )
        find = FindCoordinatorRequest(key_type=1, coordinator_keys=[self.name])
        await settled(lambda: self.call(find, FindCoordinatorResponse), lambda found: found.coordinators[0].error_code)
        self.producer_id = self.first_id = (await settled(self.raw_init)).producer_id

    async def raw_init(
        self, version: int = 5, producer_id: int = -1, epoch: int = -1, timeout_ms: int = 60_000
    ) -> InitProducerIdResponse:
        request = InitProducerIdRequest(
            transactional_id=self.name,
            transaction_timeout_ms=timeout_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        answer: InitProducerIdResponse = await self.call(request, InitProducerIdResponse, version)
        return answer

    async def init(self, version: int = 5, **details: int) -> Answer:
        return self._identity(await settled(lambda: self.raw_init(version, **details)))

    async def add(
        self, version: int, *numbers: int, epoch: int = 0, topic: str | None = None, verify: bool = False
    ) -> Answer:
        topics = [AddPartitionsToTxnTopic(name=topic or self.topic, partitions=list(numbers))]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=topics,
            transactions=[
                AddPartitionsToTxnTransaction(
                    transactional_id=self.name, producer_id=self.producer_id, producer_epoch=epoch,
                    verify_only=verify, topics=topics,
                )
            ],
        )  # fmt: skip
        response = await self.call(request, AddPartitionsToTxnResponse, version)
        results = response.results_by_topic_v3_and_below
        if version >= 4:
            results = response.results_by_transaction[0].topic_results
        found = [partition for result in results for partition in result.results_by_partition]
        return tuple(sorted((at.partition_index, ErrorCode(at.partition_error_code).name) for at in found))

    async def end(self, version: int, *, commit: bool, epoch: int = 0) -> Answer:
        request = EndTxnRequest(
            transactional_id=self.name, producer_id=self.producer_id, producer_epoch=epoch, committed=commit
        )
        return self._identity(await settled(lambda: self.call(request, EndTxnResponse, version)))

    async def state(self) -> Answer:
        """Once its markers are written, which the two brokers do at a different pace."""
        while True:
            request = DescribeTransactionsRequest(transactional_ids=[self.name])
            [found] = (await self.call(request, DescribeTransactionsResponse)).transaction_states
            if not found.transaction_state.startswith("Prepare"):
                break
            await asyncio.sleep(0.02)
        partitions = sum(len(topic.partitions) for topic in found.topics)
        times = (found.transaction_timeout_ms, found.transaction_start_time_ms > 0)
        return found.transaction_state, found.producer_id - self.first_id, found.producer_epoch, *times, partitions

    def _identity(self, response: Any) -> Answer:
        """Ids differ between two brokers; what changes in them does not."""
        moved = response.producer_id - self.first_id if response.producer_id >= 0 else "none"
        return ErrorCode(response.error_code).name, moved, response.producer_epoch


async def settled(ask: Callable[[], Awaitable[Any]], code: Callable[[Any], int] | None = None) -> Any:
    while True:
        answer = await ask()
        if (answer.error_code if code is None else code(answer)) not in PASSING:
            return answer
        await asyncio.sleep(0.02)


async def initialising(new: Callable[[], Awaitable[Producer]]) -> list[Answer]:
    producer = await new()
    answers: list[Answer] = [("new", await producer.state())]
    for version in range(6):
        answers.append((version, await producer.init(version)))
        answers += [(version, ms, await producer.init(version, timeout_ms=ms)) for ms in (0, -1, 900_001)]
        epoch = int((await producer.state())[2])
        for given in (epoch, epoch, epoch + 1, epoch - 1, 99) if version >= 3 else ():
            own = await producer.init(version, producer_id=producer.producer_id, epoch=given)
            other = await producer.init(version, producer_id=producer.producer_id + 5555, epoch=given)
            answers.append((version, given - epoch, own, other))
    return answers


async def adding(new: Callable[[], Awaitable[Producer]]) -> list[Answer]:
    answers: list[Answer] = []
    for version in range(6):
        producer = await new()
        answers.append((version, "known", await producer.add(version, 0, 1), await producer.add(version, 0)))
        answers.append(
            (version, "unknown", await producer.add(version, 7, 0), await producer.add(version, 0, topic="no"))
        )
        answers.append((version, "internal", await producer.add(version, 0, topic="__transaction_state")))
        answers.append((version, "epoch", await producer.add(version, 0, epoch=9), await producer.state()))
        if version >= 4:
            answers.append((version, "verify", await producer.add(version, 0, 1, verify=True)))
            ended = await producer.end(5, commit=True), await producer.state()
            answers.append((version, "verify", ended, await producer.add(version, 0, epoch=1, verify=True)))
        producer.producer_id += 7777
        answers.append((version, "id", await producer.add(version, 0)))
    return answers


async def ending(new: Callable[[], Awaitable[Producer]]) -> list[Answer]:
    answers: list[Answer] = []
    for version in (1, 2, 4, 5):
        for first in (None, True, False):
            for second in (True, False):
                for epoch in (0, 1, -1):
                    producer = await new()
                    if first is not None:
                        await producer.add(3, 0, 1)
                        answers.append(
                            (version, first, await producer.end(version, commit=first), await producer.state())
                        )
                    again = await producer.end(version, commit=second, epoch=epoch)
                    answers.append((version, first, second, epoch, again, await producer.state()))
    return answers


async def fencing(new: Callable[[], Awaitable[Producer]]) -> list[Answer]:
    answers: list[Answer] = []
    for version in (2, 4, 5):
        for knows_itself in (False, True) if version >= 3 else (False,):
            producer = await new()
            await producer.add(3, 0)
            own = {"producer_id": producer.producer_id, "epoch": 0} if knows_itself else {}
            answers.append((version, knows_itself, await producer.init(version, **own), await producer.state()))
            for commit in (True, False):
                for end_version in (1, 4, 5):
                    zombie = await producer.end(end_version, commit=commit)
                    answers.append((version, knows_itself, "zombie", commit, end_version, zombie))
            answers.append((version, knows_itself, "zombie", await producer.add(3, 0), await producer.state()))
    return answers


async def telling(new: Callable[[], Awaitable[Producer]]) -> list[Answer]:
    producer = await new()
    nobody = DescribeTransactionsRequest(transactional_ids=["nobody", ""])
    answers: list[Answer] = [
        (found.error_code, found.transaction_state, found.producer_id, found.transaction_start_time_ms)
        for found in (await producer.call(nobody, DescribeTransactionsResponse)).transaction_states
    ]
    start = producer.name[:5]
    for pattern in ("(", "", start, start + ".*", "[a-z0-9-]+"):
        wanted = ListTransactionsRequest(
            transactional_id_pattern=pattern, producer_id_filters=[producer.producer_id], state_filters=["Empty", "x"]
        )
        listed = await producer.call(wanted, ListTransactionsResponse, 2)
        answers.append((pattern, listed.error_code, listed.unknown_state_filters, len(listed.transaction_states)))
    for group, epoch in (("g", 0), ("", 0), ("g", 9)):
        for version in (1, 2, 4):
            request = AddOffsetsToTxnRequest(
                transactional_id=producer.name, producer_id=producer.producer_id, producer_epoch=epoch, group_id=group
            )
            ask = lambda request=request, version=version: producer.call(request, AddOffsetsToTxnResponse, version)  # noqa: E731
            answers.append((group, epoch, version, (await settled(ask)).error_code, await producer.state()))
    return answers


async def marking(new: Callable[[], Awaitable[Producer]]) -> list[Answer]:
    answers: list[Answer] = []
    for version in (1, 2):
        producer = await new()
        for epoch, transaction_version in ((3, 0), (2, 0), (3, 0), (3, 2), (4, 2)):
            marker = WritableTxnMarker(
                producer_id=producer.producer_id,
                producer_epoch=epoch,
                transaction_version=transaction_version,
                topics=[WritableTxnMarkerTopic(name=producer.topic, partition_indexes=[0, 5])],
            )
            request = WriteTxnMarkersRequest(markers=[marker])
            response = await producer.call(request, WriteTxnMarkersResponse, version)
            found = [at for topic in response.markers[0].topics for at in topic.partitions]
            codes = sorted((at.partition_index, ErrorCode(at.error_code).name) for at in found)
            answers.append((version, epoch, transaction_version, codes))
    return answers


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Address, Address]]:
    directory: Path = tmp_path_factory.mktemp("kafka")
    with running(directory) as kafka, broker({"offsets.topic.num.partitions": 50}) as ottla:
        yield ("127.0.0.1", kafka.port), (ottla.host, ottla.port)


@pytest.mark.parametrize("scenario", [initialising, adding, ending, fencing, telling, marking])
def test_both_answer_the_same(
    brokers: tuple[Address, Address],
    unique: Callable[[str], str],
    scenario: Callable[[Callable[[], Awaitable[Producer]]], Awaitable[list[Answer]]],
) -> None:
    async def ask(address: Address) -> list[Answer]:
        connection = await Connection.open(*address, client_id="asker")

        async def new() -> Producer:
            producer = Producer(connection, unique("asked"))
            await producer.prepare()
            return producer

        try:
            return await scenario(new)
        finally:
            await connection.close()

    kafka, ottla = brokers
    expected = asyncio.run(asyncio.wait_for(ask(kafka), 120))
    assert len(expected) > 5
    assert asyncio.run(asyncio.wait_for(ask(ottla), 120)) == expected
