"""Rows of one task on their way into record batches and to the brokers."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ottla.client.producer import Producer, TransactionPart
from ottla.client.producer_settings import Compression, ProducerSettings
from ottla.client.transacting import NO_PRODUCER, init_producer
from ottla.model.names import TopicPartition
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.writing.encode import Encoder, UnfinishedBatch, topics_of
from ottla.spark.writing.topic_partitions import partition_counts


class RowEncoding(NamedTuple):
    """How rows become records: whose partitions, which codec for which topic."""

    settings: ProducerSettings
    default_topic: str | None = None
    by_topic: Mapping[str, Compression] = {}
    """Topics with a compression of their own."""


def encode_rows(batches: Iterable[pa.RecordBatch], encoding: RowEncoding) -> Iterator[list[UnfinishedBatch]]:
    """For each batch of rows the record batches that it has filled, if any; and at the end those that were not."""
    counts: dict[str, int] = {}
    encoders: dict[Compression, Encoder] = {}
    for batch in batches:
        topics = topics_of(batch, encoding.default_topic)
        if not counts.keys() >= set(topics):
            counts.update(partition_counts(encoding.settings.client, topics))
        full: list[UnfinishedBatch] = []
        for compression, rows in _by_compression(batch, topics, encoding):
            encoder = encoders.get(compression)
            if encoder is None:
                encoder = encoders[compression] = Encoder(
                    counts,
                    codec=compression.codec,
                    level=compression.level,
                    batch_bytes=encoding.settings.batch_bytes,
                    default_topic=encoding.default_topic,
                )
            encoder.add(rows)
            if encoder.full_count:
                full += encoder.take(full_only=True)
        yield full
    for encoder in encoders.values():
        yield encoder.take(full_only=False)


def _by_compression(
    batch: pa.RecordBatch, topics: list[str], encoding: RowEncoding
) -> Iterator[tuple[Compression, pa.RecordBatch]]:
    groups: dict[Compression, list[str]] = {}
    for topic in topics:
        groups.setdefault(encoding.by_topic.get(topic, encoding.settings.compression), []).append(topic)
    if len(groups) == 1:
        yield next(iter(groups)), batch
        return
    for compression, members in groups.items():
        yield compression, batch.filter(pc.is_in(batch.column("topic"), pa.array(members, pa.string())))


def produce(
    batches: Iterable[list[UnfinishedBatch]], settings: ProducerSettings, transaction: TransactionPart | None
) -> dict[TopicPartition, int]:
    """Send record batches and wait until the brokers have them all; how many records each partition got."""
    return send_batches(batches, settings, transaction).record_counts


def send_batches(
    batches: Iterable[list[UnfinishedBatch]], settings: ProducerSettings, transaction: TransactionPart | None
) -> Producer:
    """As `produce`; the producer, which is closed, can tell where the batches went."""
    producer = loop.run(_open(settings, transaction))
    try:
        for full in batches:
            if full:
                loop.run(producer.send_all(full))
        loop.run(producer.flush())
    finally:
        loop.run(producer.close())
    return producer


async def _open(settings: ProducerSettings, transaction: TransactionPart | None) -> Producer:
    cluster = shared_cluster(settings.client)
    identity = NO_PRODUCER
    if transaction is None and settings.is_idempotent:
        identity = await init_producer(cluster, None)
    producer = Producer(cluster, settings.limits, producer=identity, transaction=transaction)
    return await producer.__aenter__()
