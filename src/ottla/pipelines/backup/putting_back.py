"""The task of a restore: one object's records into one partition of the target, exactly once.

Into an Ottla cluster raw batches go as they were, and records at the offsets that they had, by the way of a standby
(decision 0025). Where Produce counts to the same offsets, the end of the target's log says how far it is: nobody else
writes there. Elsewhere the records, the position and a note of where each record went become visible in one
transaction.
"""

import contextlib
from collections.abc import Iterator

import msgspec
import numpy as np
import pyarrow as pa

from ottla.client.errors import TransactionLost
from ottla.client.groups import group_offsets
from ottla.client.mirrored import LEAVE_START, MirroredLog
from ottla.client.producer import TransactionPart
from ottla.client.producer_settings import Compression, ProducerSettings, parse_codec, producer_settings
from ottla.client.transacting import (
    TransactionalOffset,
    commit_offsets_in_transaction,
    end_transaction,
    init_producer,
    transaction_version,
)
from ottla.model.errors import OttlaError
from ottla.model.names import TopicPartition
from ottla.pipelines.backup.batches import FoundBatch, Walk, pieces
from ottla.pipelines.backup.manifest import BackupProblem, StoredObject
from ottla.pipelines.backup.placing import written_anew
from ottla.pipelines.backup.reading_back import batch_rows, checked_content, rows_of
from ottla.pipelines.backup.restore_plan import READ_ONLY, Way
from ottla.pipelines.backup.store import Place
from ottla.pipelines.mirror.offset_map import Entry, to_notes
from ottla.protocol.compression import Codec
from ottla.protocol.records import BATCH_OVERHEAD
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.kernel.interface import Int64s
from ottla.spark.reading import resolving
from ottla.spark.writing.copied import Run, runs_of
from ottla.spark.writing.encode import Encoder, UnfinishedBatch
from ottla.spark.writing.notes import send_notes
from ottla.spark.writing.rows_to_records import send_batches

BATCHES_TOGETHER = 64
"""Handed over at once: each time costs a word with the event loop's thread."""
PIECE_BYTES = 1 << 20
"""Appended at once as they were. The broker checks them before it does anything else, and others wait meanwhile."""


class PutTask(msgspec.Struct, frozen=True, kw_only=True):
    place: Place
    client: dict[str, str]
    stored: StoredObject
    source: TopicPartition
    target: TopicPartition
    start: int
    end: int
    way: Way
    group: str
    """Of the position; also the transactional id."""
    marker: str
    map_topic: str
    compression: str
    mirror_source: str = ""
    follows: int = 0
    """Where the log ends once the objects before this one are in; where the topic is read-only."""

    @property
    def reaches(self) -> int:
        return min(self.stored.end, self.end)


class PutDone(msgspec.Struct, frozen=True, kw_only=True):
    records: int
    position: int
    was_there: bool = False


def put_back(task: PutTask) -> PutDone:
    settings = producer_settings(task.client)
    if task.way in READ_ONLY:
        return _at_offsets(task, settings)
    return _to_same_offsets(task, settings) if task.way == "counted" else _in_transaction(task, settings)


def _at_offsets(task: PutTask, settings: ProducerSettings) -> PutDone:
    """What is there is known by its offsets, so nothing is written twice, whoever else is at it."""
    log = MirroredLog(shared_cluster(settings.client), task.target, task.mirror_source)
    bounds = loop.run(log.append(0))
    if task.stored.last < bounds.end:
        return PutDone(records=0, position=bounds.end, was_there=True)
    if bounds.end < task.follows:
        raise BackupProblem(
            f"{task.target} ends at {bounds.end}, and had come to {task.follows}: the target has lost records that it "
            "had acknowledged. Delete the topic and restore it again"
        )
    content = checked_content(task.place, task.stored)
    start, records = max(bounds.end, task.start), 0
    if task.way == "batches":
        found = pieces(content, task.stored.aborted, start, PIECE_BYTES)
    else:
        codec = parse_codec(task.compression, "--compression")
        found = written_anew(content, task.stored, (start, task.end), codec, settings.batch_bytes, PIECE_BYTES)
    for piece in found:
        # The log may have begun inside of its first batch: so will this one.
        follows_on, log_start = bounds.end, LEAVE_START
        if bounds.end <= task.start:
            follows_on, log_start = min(task.start, piece.first_offset), task.start
        bounds = loop.run(log.append(follows_on, piece.content, log_start))
        records += piece.records
    return PutDone(records=records, position=bounds.end)


def _to_same_offsets(task: PutTask, settings: ProducerSettings) -> PutDone:
    cluster = shared_cluster(settings.client)
    position = loop.run(resolving.latest(cluster, [task.target], committed=False)).get(task.target, 0)
    if position >= task.reaches:
        return PutDone(records=0, position=task.reaches, was_there=True)
    records, runs = _send(task, max(position, task.start), settings, None)
    if any(run.source != run.target for run in runs):
        raise BackupProblem(
            f"{task.target} did not give records the offsets that they had: somebody else writes there, or a restore "
            "that was killed was still writing. Delete the topic and restore it again"
        )
    return PutDone(records=records, position=task.reaches)


def _in_transaction(task: PutTask, settings: ProducerSettings) -> PutDone:
    cluster = shared_cluster(settings.client)
    version = loop.run(transaction_version(cluster, task.group))
    # In this order: once the id is taken nobody else writes with it, and the position is the last one.
    producer = loop.run(init_producer(cluster, task.group, settings.transaction_timeout_ms))
    known = loop.run(group_offsets(cluster, task.group, stable=True)).get(task.target)
    position = task.start if known is None else max(known.offset, task.start)
    if position >= task.reaches:
        return PutDone(records=0, position=task.reaches, was_there=True)
    part = TransactionPart(task.group, producer, version)
    try:
        records, runs = _send(task, position, settings, part)
        if runs:
            send_notes(to_notes(task.map_topic, Entry(task.source, task.target, runs)), settings, part)
        reached = {task.target: TransactionalOffset(task.reaches, task.marker)}
        loop.run(commit_offsets_in_transaction(cluster, task.group, producer, task.group, reached, version=version))
    except (OttlaError, OSError):
        with contextlib.suppress(TransactionLost):  # nothing was written in it yet
            loop.run(end_transaction(cluster, task.group, producer, commit=False, version=version))
        raise
    loop.run(end_transaction(cluster, task.group, producer, commit=True, version=version))
    return PutDone(records=records, position=task.reaches)


def _send(
    task: PutTask, position: int, settings: ProducerSettings, transaction: TransactionPart | None
) -> tuple[int, list[Run]]:
    content = checked_content(task.place, task.stored)
    sources: list[Int64s] = []
    if task.stored.kind == "parquet":
        compression = Compression(parse_codec(task.compression, "--compression"))
        batches = _of_rows(task, rows_of(content, task.stored), position, compression, settings.batch_bytes, sources)
    else:
        batches = _of_batches(task, content, position, settings.batch_bytes, sources)
    sent = send_batches(batches, settings, transaction)
    offsets = np.concatenate(sources) if sources else np.empty(0, np.int64)
    return len(offsets), runs_of(offsets, sent.appended.get(task.target, []))


def _of_rows(
    task: PutTask,
    rows: Iterator[pa.RecordBatch],
    start: int,
    compression: Compression,
    batch_bytes: int,
    sources: list[Int64s],
) -> Iterator[list[UnfinishedBatch]]:
    encoder = Encoder(
        {task.target.topic: task.target.partition + 1}, codec=compression.codec, level=compression.level,
        batch_bytes=batch_bytes, default_topic=task.target.topic,
    )  # fmt: skip
    for batch in rows:
        offsets = batch.column("offset").to_numpy()
        first, last = np.searchsorted(offsets, [start, task.end])
        if first == last:
            continue
        sources.append(offsets[first:last])
        encoder.add(_placed(batch.slice(int(first), int(last - first)), task.target))
        if encoder.full_count:
            yield encoder.take(full_only=True)
    yield encoder.take(full_only=False)


def _placed(batch: pa.RecordBatch, target: TopicPartition) -> pa.RecordBatch:
    kept = batch.select(["key", "value", "timestamp", "headers"])
    return kept.append_column("partition", pa.array([target.partition] * batch.num_rows, pa.int32()))


def _of_batches(
    task: PutTask, content: bytes, start: int, batch_bytes: int, sources: list[Int64s]
) -> Iterator[list[UnfinishedBatch]]:
    """Batches with their records as they are, under a new producer; those of which a part counts, or that compaction
    has left with gaps, are written anew."""
    together: list[UnfinishedBatch] = []
    for found in Walk(task.stored.aborted).batches(content):
        header = found.header
        if not found.counts or header.next_offset <= start or header.base_offset >= task.end:
            continue
        if _can_stay(found, start, task.end):
            sources.append(np.arange(header.base_offset, header.next_offset))
            payload = memoryview(content)[found.position + BATCH_OVERHEAD : found.position + header.size]
            times = header.base_timestamp, header.max_timestamp
            together.append(UnfinishedBatch(*task.target, header.record_count, *times, payload, Codec(header.codec)))
            if len(together) == BATCHES_TOGETHER:
                yield together
                together = []
            continue
        yield together
        together = []
        first, end = max(start, header.base_offset), min(task.end, header.next_offset)
        rows = batch_rows(content, found.position, task.target, first, end)
        yield from _of_rows(task, rows, first, Compression(Codec(header.codec)), batch_bytes, sources)
    yield together


def _can_stay(found: FoundBatch, start: int, end: int) -> bool:
    """The broker numbers the records of a batch one by one, and takes their times from them."""
    header = found.header
    is_dense = header.record_count == header.last_offset_delta + 1
    return is_dense and not header.uses_log_append_time and start <= header.base_offset and header.next_offset <= end
