"""Dead letters sent back: the records and the notes of what was sent, in one transaction.

A letter is sent once: whoever sends notes its place in the topic `<letters>.replayed`, and whoever wants to send looks
there first. `ottla pipeline replay-dead-letters` keeps the same notes.
"""

import json
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from ottla.client import admin
from ottla.client.cluster import Cluster
from ottla.client.producer import Producer, TransactionPart
from ottla.client.transacting import end_transaction, init_producer, transaction_version
from ottla.console.letters import REPLAYED, Letter
from ottla.console.producing import partition_for
from ottla.console.search.query import parse_query
from ottla.console.search.scanning import Scan
from ottla.model.errors import ApiError, ErrorCode, OttlaError
from ottla.model.names import TopicPartition
from ottla.protocol.compression import Buffer, Codec
from ottla.protocol.partitioner import partition_of
from ottla.protocol.records import BATCH_OVERHEAD, NewRecord, encode_batch

TIMEOUT_MS = 60_000


class Batch(NamedTuple):
    """Records for one partition, as a producer takes them."""

    topic: str
    partition: int
    record_count: int
    base_timestamp: int
    max_timestamp: int
    payload: Buffer
    codec: Codec = Codec.NONE


class Returned(NamedTuple):
    """A letter as it goes back."""

    letter: Letter
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


def batch_of(at: TopicPartition, records: Sequence[NewRecord]) -> Batch:
    payload = memoryview(encode_batch(records))[BATCH_OVERHEAD:]
    times = [record.timestamp for record in records]
    return Batch(at.topic, at.partition, len(records), times[0], max(times), payload)


async def sent_places(cluster: Cluster, letters: str, topics: Collection[str]) -> set[str]:
    """Places (`partition:offset`) that were sent back before."""
    if letters + REPLAYED not in topics:
        return set()
    scan = Scan(cluster, letters + REPLAYED, parse_query("order:oldest"))
    return {found.key.decode(errors="replace") async for found in scan if found.key is not None}


async def send_back(
    cluster: Cluster, letters: str, returned: Sequence[Returned], numbers: Mapping[str, tuple[int, ...]]
) -> None:
    """All or none. `numbers`: the partitions of the topics that there are."""
    notes_topic = letters + REPLAYED
    if notes_topic not in numbers:
        await _create(cluster, notes_topic)
        (made,) = await admin.describe_topics(cluster, [notes_topic])
        numbers = {**numbers, notes_topic: tuple(each.partition for each in made.partitions)}
    name = f"ottla-console.replay.{letters}"
    version = await transaction_version(cluster, name)
    producer_id = await init_producer(cluster, name, TIMEOUT_MS)
    part = TransactionPart(name, producer_id, version)
    try:
        async with Producer(cluster, transaction=part) as producer:
            await producer.send_all(_batches(returned, notes_topic, numbers))
            await producer.flush()
    except OttlaError:
        await end_transaction(cluster, name, producer_id, commit=False, version=version)
        raise
    await end_transaction(cluster, name, producer_id, commit=True, version=version)


async def _create(cluster: Cluster, topic: str) -> None:
    try:
        await admin.create_topic(cluster, topic, configs={"cleanup.policy": "compact"})
    except ApiError as error:
        if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:  # somebody else has made it meanwhile
            raise


def _batches(returned: Sequence[Returned], notes_topic: str, numbers: Mapping[str, tuple[int, ...]]) -> Iterable[Batch]:
    now = time.time_ns() // 1_000_000
    by_place: dict[TopicPartition, list[NewRecord]] = {}
    for each in returned:
        letter = each.letter
        assert letter.topic is not None, "those that never were records are refused before"
        known = numbers[letter.topic]
        number = letter.source_partition if letter.source_partition in known else partition_for(each.key, known)
        assert number is not None
        by_place.setdefault(TopicPartition(letter.topic, number), []).append(
            NewRecord(each.key, each.value, now, each.headers)
        )
        note = {
            "source_topic": letter.topic,
            "source_partition": letter.source_partition,
            "source_offset": letter.source_offset,
            "step": letter.step,
            "error": letter.message,
        }
        key = letter.place.encode()
        note_at = TopicPartition(notes_topic, partition_of(key, len(numbers[notes_topic])))
        by_place.setdefault(note_at, []).append(NewRecord(key, json.dumps(note).encode(), now))
    return [batch_of(at, records) for at, records in by_place.items()]
