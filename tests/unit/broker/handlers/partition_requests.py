"""Produce and Fetch against a harness: their responses are packed by hand and may come late."""

import asyncio
from typing import Any

from tests.unit.broker.handlers.conftest import Harness

from ottla.broker.handlers import fetch, produce
from ottla.broker.handlers.context import Call, Parked, Raw
from ottla.broker.replication.partition import Partition
from ottla.broker.session import Session
from ottla.broker.storage.log import LogSlice
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import decode, encode
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.protocol.records import NewRecord, encode_batch

TOPIC = "orders"


def create_topic(harness: Harness, partitions: int = 2) -> list[Partition]:
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name=TOPIC, num_partitions=partitions, replication_factor=1)], timeout_ms=1000
    )
    response = harness.call(request, CreateTopicsResponse, 7)
    assert [topic.error_code for topic in response.topics] == [0]
    return [harness.partitions.get((TOPIC, number)) for number in range(partitions)]


def batch(
    producer_id: int, sequence: int, *, epoch: int = 0, transactional: bool = True, value: bytes = b"v"
) -> bytearray:
    record = NewRecord(b"k", value, 0)
    return encode_batch(
        [record], producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=transactional
    )


def to_bytes(raw: Raw) -> bytes:
    return b"".join(chunk.read() if isinstance(chunk, LogSlice) else bytes(chunk) for chunk in raw.chunks)


async def produce_later(
    harness: Harness, batches: dict[int, bytearray], version: int, transactional_id: str | None = "t", acks: int = -1
) -> dict[int, PartitionProduceResponse]:
    topic = TopicProduceData(
        name=TOPIC,
        topic_id=harness.store.image.topics[TOPIC].topic_id,
        partition_data=[PartitionProduceData(index=index, records=records) for index, records in batches.items()],
    )
    request = ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=1000, topic_data=[topic])
    received = decode(ProduceRequest, version, memoryview(encode(request, version)))
    outcome: Any = produce.handle(harness.broker, Call(ApiKey.PRODUCE, version, None, Session("", "")), received)
    answer = await outcome if asyncio.iscoroutine(outcome) else outcome
    assert isinstance(answer, Raw)
    response = decode(ProduceResponse, version, to_bytes(answer))
    return {partition.index: partition for partition in response.responses[0].partition_responses}


def produce_now(
    harness: Harness, batches: dict[int, bytearray], version: int, transactional_id: str | None = "t"
) -> dict[int, PartitionProduceResponse]:
    return asyncio.run(produce_later(harness, batches, version, transactional_id))


def begin_fetch(
    harness: Harness, offset: int, *, version: int = 12, committed: bool = True, min_bytes: int = 1, wait_ms: int = 0
) -> Raw | Parked:
    request = FetchRequest(
        max_wait_ms=wait_ms, min_bytes=min_bytes, max_bytes=1 << 20, isolation_level=int(committed),
        topics=[
            FetchTopic(
                topic=TOPIC, topic_id=harness.store.image.topics[TOPIC].topic_id,
                partitions=[FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)],
            )
        ],
    )  # fmt: skip
    received = decode(FetchRequest, version, encode(request, version))
    outcome = fetch.handle(harness.broker, Call(ApiKey.FETCH, version, None, Session("", "")), received)
    assert isinstance(outcome, (Raw, Parked))
    return outcome


def fetched(raw: object, version: int = 12) -> PartitionData:
    assert isinstance(raw, Raw)
    response = decode(FetchResponse, version, to_bytes(raw))
    return response.responses[0].partitions[0]
