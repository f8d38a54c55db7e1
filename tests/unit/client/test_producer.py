"""The producer against brokers that a test scripts: what is sent when, and what every kind of answer leads to."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest
from tests.unit.client.conftest import ScriptedBroker, scripted_broker

from ottla.client.cluster import Cluster
from ottla.client.errors import DeliveryTimeout, ProducerFenced, RecordsRefused, TransactionLost
from ottla.client.producer import Producer, ProducerLimits, TransactionPart
from ottla.client.transacting import NO_PRODUCER, ProducerId
from ottla.model.errors import ErrorCode
from ottla.model.names import TopicPartition
from ottla.protocol.compression import Codec
from ottla.protocol.frames import RequestHeader
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from ottla.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from ottla.protocol.records import read_header
from ottla.protocol.schema import TopLevel

ME = ProducerId(7, 3)
PARTITIONS = 4


class Batch(NamedTuple):
    partition: int
    record_count: int = 1
    payload: bytes = b"12345"
    topic: str = "t"
    base_timestamp: int = 0
    max_timestamp: int = 0
    codec: Codec = Codec.NONE


class Sent(NamedTuple):
    partition: int
    sequence: int
    record_count: int


Verdict = Callable[[Sent], ErrorCode | None]
"""What to say of a batch; None leaves the whole request unanswered."""


class Leader:
    """A broker that leads all partitions, and answers produce requests as the test says."""

    def __init__(self, verdict: Verdict) -> None:
        self.broker: ScriptedBroker
        self.verdict = verdict
        self.versions: list[int] = []
        self.requests: list[list[Sent]] = []
        self.added: list[list[int]] = []
        self.metadata_count = 0

    def __call__(self, header: RequestHeader, request: TopLevel) -> TopLevel | None:
        match request:
            case MetadataRequest():
                self.metadata_count += 1
                return self._metadata()
            case ProduceRequest():
                return self._produce(header, request)
            case AddPartitionsToTxnRequest():
                return self._add(request)
            case _:
                me = Coordinator(key="x", node_id=1, host="127.0.0.1", port=self.broker.port)
                return FindCoordinatorResponse(coordinators=[me])

    def _metadata(self) -> MetadataResponse:
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.broker.port)],
            topics=[
                MetadataResponseTopic(
                    name="t",
                    partitions=[
                        MetadataResponsePartition(partition_index=number, leader_id=1) for number in range(PARTITIONS)
                    ],
                )
            ],
        )

    def _produce(self, header: RequestHeader, request: ProduceRequest) -> ProduceResponse | None:
        self.versions.append(header.version)
        data = [data for topic in request.topic_data for data in topic.partition_data]
        headers = [read_header(one.records or b"") for one in data]
        sent = [
            Sent(one.index, header.base_sequence, header.record_count)
            for one, header in zip(data, headers, strict=True)
        ]
        self.requests.append(sent)
        verdicts = [self.verdict(batch) for batch in sent]
        if None in verdicts:
            return None
        answers = [
            PartitionProduceResponse(index=batch.partition, error_code=code or 0, error_message="because")
            for batch, code in zip(sent, verdicts, strict=True)
        ]
        return ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=answers)])

    def _add(self, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
        numbers = request.v3_and_below_topics[0].partitions
        self.added.append(list(numbers))
        results = [AddPartitionsToTxnPartitionResult(partition_index=number) for number in numbers]
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[AddPartitionsToTxnTopicResult(name="t", results_by_partition=results)]
        )

    @property
    def batches(self) -> list[Sent]:
        return [batch for request in self.requests for batch in request]


def accept(_: Sent) -> ErrorCode:
    return ErrorCode.NONE


@asynccontextmanager
async def producing(
    leader: Leader,
    limits: ProducerLimits | None = None,
    *,
    producer: ProducerId = ME,
    transaction: TransactionPart | None = None,
) -> AsyncIterator[Producer]:
    async with scripted_broker(leader) as broker:
        leader.broker = broker
        async with (
            Cluster(f"127.0.0.1:{broker.port}") as cluster,
            Producer(cluster, limits, producer=producer, transaction=transaction) as opened,
        ):
            yield opened


def run(work: Coroutine[object, object, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 30))


def test_batches_of_several_partitions_share_requests_and_sequences_count_on() -> None:
    leader = Leader(accept)

    async def scenario() -> None:
        async with producing(leader) as producer:
            for turn in range(3):
                for partition in range(PARTITIONS):
                    await producer.send(Batch(partition, turn + 1))
            await producer.flush()
            assert producer.record_counts == {TopicPartition("t", number): 6 for number in range(PARTITIONS)}

    run(scenario())
    assert len(leader.requests) <= 4
    for number in range(PARTITIONS):
        assert [batch.sequence for batch in leader.batches if batch.partition == number] == [0, 1, 3]
    for request in leader.requests:
        assert len({batch.partition for batch in request}) == len(request), "one batch of a partition in a request"


def test_no_more_than_five_requests_are_under_way() -> None:
    leader = Leader(lambda _: None)

    async def scenario() -> None:
        async with producing(leader) as producer:
            for _ in range(9):
                await producer.send(Batch(0))
            await leader.broker.has_seen(1 + 5)  # metadata and five produce requests
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(leader.broker.has_seen(7), 0.2)

    run(scenario())
    assert [batch.sequence for batch in leader.batches] == [0, 1, 2, 3, 4]


def test_requests_hold_no_more_bytes_than_allowed_and_starve_no_partition() -> None:
    leader = Leader(accept)

    async def scenario() -> None:
        async with producing(leader, ProducerLimits(request_bytes_max=150)) as producer:
            for _ in range(4):
                for partition in range(PARTITIONS):
                    await producer.send(Batch(partition))
            await producer.flush()

    run(scenario())
    assert {len(request) for request in leader.requests} == {2}  # 61 bytes of header and 5 of payload, twice
    assert {batch.partition for batch in leader.batches[:PARTITIONS]} == set(range(PARTITIONS))


def test_send_waits_while_the_buffer_is_full() -> None:
    answer = asyncio.Event()
    leader = Leader(lambda _: ErrorCode.NONE if answer.is_set() else None)

    async def scenario() -> None:
        async with producing(leader, ProducerLimits(buffer_bytes_max=150, request_timeout_s=0.3)) as producer:
            await producer.send(Batch(0))
            await producer.send(Batch(0))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(producer.send(Batch(0)), 0.1)
            answer.set()
            await producer.send(Batch(0))  # the unanswered requests time out and are sent again
            await producer.flush()

    run(scenario())


def test_what_was_refused_for_a_moment_is_sent_again_in_order_and_unchanged() -> None:
    refused, expected = {1}, 0

    def verdict(batch: Sent) -> ErrorCode:
        nonlocal expected
        if batch.sequence in refused:
            refused.discard(batch.sequence)
            return ErrorCode.NOT_ENOUGH_REPLICAS
        if batch.sequence != expected:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        expected += 1
        return ErrorCode.NONE

    leader = Leader(verdict)

    async def scenario() -> None:
        async with producing(leader) as producer:
            for _ in range(8):
                await producer.send(Batch(0))
            await producer.flush()

    run(scenario())
    assert expected == 8


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])
def test_who_is_not_the_leader_makes_the_producer_ask_for_it(code: ErrorCode) -> None:
    answers = [code]
    leader = Leader(lambda _: answers.pop() if answers else ErrorCode.NONE)

    async def scenario() -> None:
        async with producing(leader) as producer:
            await producer.send(Batch(0))
            await producer.flush()

    run(scenario())
    assert leader.metadata_count == 2
    assert [batch.sequence for batch in leader.batches] == [0, 0]


def test_a_batch_that_the_broker_has_already_counts_as_delivered() -> None:
    leader = Leader(lambda _: ErrorCode.DUPLICATE_SEQUENCE_NUMBER)

    async def scenario() -> None:
        async with producing(leader) as producer:
            await producer.send(Batch(0))
            await producer.flush()

    run(scenario())
    assert len(leader.requests) == 1


def test_a_lost_connection_is_made_anew_and_the_same_batches_are_sent() -> None:
    silent = True

    def verdict(_: Sent) -> ErrorCode | None:
        return None if silent else ErrorCode.NONE

    leader = Leader(verdict)

    async def scenario() -> None:
        nonlocal silent
        async with producing(leader) as producer:
            for _ in range(3):
                await producer.send(Batch(0))
            await leader.broker.has_seen(4)
            silent = False
            leader.broker.hang_up()
            await producer.flush()

    run(scenario())
    assert [batch.sequence for batch in leader.batches] == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize(
    ("code", "error", "words"),
    [
        (ErrorCode.INVALID_PRODUCER_EPOCH, ProducerFenced, "another producer has taken"),
        (ErrorCode.PRODUCER_FENCED, ProducerFenced, "another producer has taken"),
        (ErrorCode.INVALID_TXN_STATE, TransactionLost, "no longer open"),
        (ErrorCode.TRANSACTION_ABORTABLE, TransactionLost, "no longer open"),
        (ErrorCode.MESSAGE_TOO_LARGE, RecordsRefused, "t-0 .*because; lower batch.size"),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, RecordsRefused, "t-0 refuses the records: because"),
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, RecordsRefused, "because"),  # of the first batch: records are lost
    ],
)
def test_refusals_for_good_end_the_producer(code: ErrorCode, error: type[Exception], words: str) -> None:
    leader = Leader(lambda _: code)

    async def scenario() -> None:
        async with producing(leader) as producer:
            await producer.send(Batch(0))
            with pytest.raises(error, match=words):
                await producer.flush()
            with pytest.raises(error):
                await producer.send(Batch(1))

    run(scenario())
    assert len(leader.requests) == 1


def test_what_cannot_be_delivered_in_time_fails_with_the_last_reason() -> None:
    leader = Leader(lambda _: ErrorCode.NOT_ENOUGH_REPLICAS)

    async def scenario() -> None:
        async with producing(leader, ProducerLimits(delivery_timeout_s=0.2)) as producer:
            await producer.send(Batch(2))
            with pytest.raises(DeliveryTimeout, match=r"t-2 could not be delivered within 0.2 s: because"):
                await producer.flush()

    run(scenario())
    assert len(leader.requests) > 1


def test_a_partition_that_is_not_there_fails_in_time_too() -> None:
    leader = Leader(accept)

    async def scenario() -> None:
        async with producing(leader, ProducerLimits(delivery_timeout_s=0.2)) as producer:
            await producer.send(Batch(99))
            with pytest.raises(DeliveryTimeout, match=r"t-99 has no leader \(UNKNOWN_TOPIC_OR_PARTITION\)"):
                await producer.flush()

    run(scenario())


def test_without_acknowledgements_nothing_is_waited_for() -> None:
    leader = Leader(lambda _: None)

    async def scenario() -> None:
        async with producing(leader, ProducerLimits(acks=0), producer=NO_PRODUCER) as producer:
            for _ in range(20):
                await producer.send(Batch(0))
            await producer.flush()
            await leader.broker.has_seen(21)

    run(scenario())
    assert {batch.sequence for batch in leader.batches} == {-1}


def test_a_producer_that_is_not_idempotent_has_one_batch_of_a_partition_under_way() -> None:
    leader = Leader(lambda _: None)

    async def scenario() -> None:
        async with producing(leader, ProducerLimits(acks=1), producer=NO_PRODUCER) as producer:
            for _ in range(3):
                await producer.send(Batch(0))
                await producer.send(Batch(1))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(producer.flush(), 0.2)

    run(scenario())
    assert sorted(batch.partition for batch in leader.batches) == [0, 1]


def test_idempotence_needs_all_acknowledgements() -> None:
    with pytest.raises(ValueError, match="acks=all"):
        Producer(Cluster("127.0.0.1:1"), ProducerLimits(acks=1), producer=ME)


@pytest.mark.parametrize(("version", "produce_version", "added"), [(1, 11, [[0, 1]]), (2, 12, [])])
def test_partitions_are_announced_where_they_do_not_join_by_themselves(
    version: int, produce_version: int, added: list[list[int]]
) -> None:
    leader = Leader(accept)

    async def scenario() -> None:
        async with producing(leader, transaction=TransactionPart("x", ME, version)) as producer:
            await producer.send(Batch(0))
            await producer.send(Batch(1))
            await producer.flush()

    run(scenario())
    assert leader.added == added
    assert set(leader.versions) == {produce_version}
