"""A whole micro-batch into topics, exactly once: one transaction for all records and the offsets they came from.

The driver takes the transactional id, which fences off every older driver. Tasks make record batches of the rows. Those
of a small batch are written by the driver; those of a large one by tasks with its producer id, each partition from one
task. The driver adds the source's offsets, noted with the batch's id, and ends the transaction. A batch whose note is
already there is left alone. docs/decisions/0007-exactly-once-in-spark.md goes through the crashes.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, Protocol

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf

from ottla.client.errors import ProducerFenced
from ottla.client.producer import TransactionPart
from ottla.client.producer_settings import Compression, ProducerSettings, parse_codec, producer_settings
from ottla.model.errors import OttlaError
from ottla.model.names import TopicPartition
from ottla.spark import loop
from ottla.spark.errors import IndeterminateTransaction, InvalidOption
from ottla.spark.headers import never_null
from ottla.spark.job_history import first_failure, was_stage_retried
from ottla.spark.mapping import map_in_arrow
from ottla.spark.writing.batch_tasks import (
    ENCODED,
    SPREAD,
    WRITTEN,
    WRITTEN_BESIDE,
    WRITTEN_COPIES,
    EncodeTask,
    WriteCopiesTask,
    WriteEncodedTask,
)
from ottla.spark.writing.batch_transaction import (
    NONE_ELSEWHERE,
    BatchTransaction,
    commit_plain_offsets,
    open_transaction,
)
from ottla.spark.writing.beside import RowParting, SideWriter
from ottla.spark.writing.collected import Written, is_cut, write_collected
from ottla.spark.writing.copied import CopyNotes, Run
from ottla.spark.writing.made_later import MakeRecordsTask, RecordMaker, WritingTask
from ottla.spark.writing.notes import send_notes
from ottla.spark.writing.rows_to_records import RowEncoding

SMALL_BYTES = 4 * 1024 * 1024
"""Frames known to be no larger are encoded by one task and written by the driver."""
RUNS_MAX = 3
"""How often a batch is written whose tasks did not all succeed at once. Then the query fails, and may start again."""

Delivery = Literal["exactly_once", "at_least_once"]


class BatchWritten(NamedTuple):
    rows: int
    already_there: bool = False
    by_topic: Mapping[str, int] = {}
    """The rows of each topic that got any."""


class PublishedBeside(Protocol):
    """The driver's side of a sink that takes its rows in the same pass as the topics."""

    rows: int
    """How many were published."""

    def task(self, run: int) -> SideWriter:
        """What is written with in one run, by tasks or by the driver. Only the last run counts."""

    def publish(self, notes: Sequence[str]) -> None:
        """All is written, and `notes` are what those who wrote it said: make it visible, once."""


class PartitionWrittenTwice(OttlaError):
    """Two tasks wrote to one partition, whose order and sequences are then anyone's guess."""


def encoded_rows(
    frame: DataFrame,
    *,
    client: Mapping[str, str],
    compression: Mapping[str, str] | str = "none",
    beside: Sequence[RowParting] = (),
    maker: RecordMaker | None = None,
) -> DataFrame:
    """Rows (key, value, headers, topic, partition, timestamp) as what `write_batch` takes when it is told `is_encoded`.

    For the end of a stream's plan, which is made once for all batches. `client` has Kafka settings without a prefix
    (`bootstrap.servers`, `acks`, ...); `compression` is a codec for all topics, or one by topic.

    `beside` are other sinks: the column `row` says whether there is a row for them, `row__...` are its columns. Rows
    without a topic are only for them. `maker` makes records of the column `unmade`, where that is not null
    (`made_later`). No row's headers are null.
    """
    task: WritingTask = EncodeTask(_encoding(producer_settings(client), compression), beside)
    if maker is not None:
        task = MakeRecordsTask(maker, task)
    return map_in_arrow(frame, task.run, ENCODED)


def write_batch(
    frame: DataFrame,
    *,
    client: Mapping[str, str],
    transactional_id: str,
    group: str,
    batch_id: int,
    offsets: Mapping[TopicPartition, int],
    elsewhere: Mapping[TopicPartition, int] = NONE_ELSEWHERE,
    query: str | None = None,
    compression: Mapping[str, str] | str = "none",
    delivery: Delivery = "exactly_once",
    is_small: bool | None = None,
    is_encoded: bool = False,
    beside: Sequence[PublishedBeside | None] = (),
    maker: RecordMaker | None = None,
    copying: CopyNotes | None = None,
) -> BatchWritten:
    """Write rows, as `encoded_rows` takes them or (`is_encoded`) has made them, and commit `offsets` for `group` with
    them.

    `query` is what stays the same from the checkpoint on; it is Spark's query id if not given. Without source offsets
    the batch is noted in the group `<group>.batches`, with positions `elsewhere`: those of sources in another cluster,
    whose group is told when this has returned (`show_progress`). `is_small` says that the driver can well write it all;
    if it is not known, Spark's own statistics decide.

    `beside` are the other sinks of an encoded frame, in their order; None is one that has published the batch before a
    crash. They publish when all is written, before the transaction ends.

    `copying` says that rows have their partition and the offset (`source_offset`) of the record that they copy, those
    of one partition in one task: nothing is moved, and notes of where they went are part of the transaction.
    """
    settings = producer_settings(client)
    spark_context = frame.sparkSession.sparkContext
    name = query or spark_context.getLocalProperty("sql.streaming.queryId") or transactional_id
    is_small = _is_small(frame) if is_small is None else is_small
    if copying is not None:
        job: _Job = _Copying(frame, _encoding(settings, compression), is_small, copying)
    else:
        if not is_encoded:
            rows = _with_headers(frame.coalesce(1 if is_small else spark_context.defaultParallelism))
            frame = encoded_rows(rows, client=client, compression=compression, maker=maker)
        job = _Writing(frame, settings, is_small, beside)
    if delivery == "at_least_once":
        return _write_at_least_once(job, settings, group, offsets)
    if spark_context._conf.get("spark.speculation", "false") == "true":  # `getConf` copies all of it, through py4j
        raise InvalidOption(
            "spark.speculation runs tasks twice at once, which one transaction cannot take: switch it off, "
            "or choose delivery at_least_once"
        )
    transaction = loop.run(open_transaction(settings, transactional_id, group, name))
    if transaction.has(batch_id):
        return BatchWritten(0, already_there=True)
    return _write_exactly_once(job, transaction, batch_id, offsets, elsewhere)


def show_progress(client: Mapping[str, str], group: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Commit offsets to a group without a transaction: what is shown there decides nothing."""
    if offsets:
        loop.run(commit_plain_offsets(producer_settings(client), group, offsets))


class _Job(Protocol):
    """How the rows of a batch come to be written."""

    @property
    def frame(self) -> DataFrame: ...

    def run(self, transaction: TransactionPart | None, run: int) -> Written:
        """Write all rows."""

    def complete(self, written: Written, transaction: TransactionPart | None) -> None:
        """All is written, and the transaction has not ended yet."""


class _Writing(NamedTuple):
    """Record batches to the driver, or to tasks that each own some partitions."""

    frame: DataFrame
    settings: ProducerSettings
    is_small: bool
    beside: Sequence[PublishedBeside | None] = ()

    def run(self, transaction: TransactionPart | None, run: int) -> Written:
        writers = [None if one is None else one.task(run) for one in self.beside]
        if self.is_small:
            rows = self.frame.collect()
            if not is_cut(rows):
                return write_collected(rows, self.settings, transaction, writers)
        with _spread(self.frame):
            return self._by_tasks(WriteEncodedTask(self.settings, transaction, writers))

    def _by_tasks(self, task: WriteEncodedTask) -> Written:
        placed = self.frame
        if task.transaction is not None or task.others:
            # A number of partitions that was asked for is kept by adaptive execution.
            tasks = self.frame.sparkSession.sparkContext.defaultParallelism
            placed = self.frame.repartitionById(tasks, sf.expr(f"task % {tasks}"))
        rows = map_in_arrow(placed, task.run, WRITTEN_BESIDE if task.others else WRITTEN).collect()
        if task.transaction is not None:
            _check_unbroken(self.frame, rows)
        notes = [row.notes for row in rows if row.notes is not None] if task.others else []
        return Written(_counts(rows), notes)

    def complete(self, written: Written, transaction: TransactionPart | None) -> None:
        said = [json.loads(note) for note in written.notes]
        for number, one in enumerate(self.beside):
            if one is not None:
                one.publish([notes[number] for notes in said])


@contextmanager
def _spread(frame: DataFrame) -> Iterator[None]:
    """Jobs of this thread encode for other tasks."""
    context = frame.sparkSession.sparkContext
    context.setLocalProperty(SPREAD, "true")
    try:
        yield
    finally:
        nothing: Any = None
        context.setLocalProperty(SPREAD, nothing)


class _Copying(NamedTuple):
    """Records to the same places in another cluster, by the tasks that read them."""

    frame: DataFrame
    encoding: RowEncoding
    is_small: bool
    notes: CopyNotes

    def run(self, transaction: TransactionPart | None, run: int) -> Written:
        tasks = 1 if self.is_small else self.frame.sparkSession.sparkContext.defaultParallelism
        placed = _with_headers(self.frame).coalesce(tasks)
        rows = map_in_arrow(placed, WriteCopiesTask(self.encoding, transaction).run, WRITTEN_COPIES).collect()
        if transaction is not None:
            _check_unbroken(self.frame, rows)
        return Written(_counts(rows), [json.dumps([row.topic, row.partition, row.runs]) for row in rows if row.records])

    def complete(self, written: Written, transaction: TransactionPart | None) -> None:
        if transaction is None:
            return
        said = [json.loads(note) for note in written.notes]
        copied = {
            TopicPartition(topic, number): [Run(*run) for run in json.loads(runs)] for topic, number, runs in said
        }
        send_notes(self.notes.notes(copied), self.encoding.settings, transaction)


def _write_at_least_once(
    job: _Job, settings: ProducerSettings, group: str, offsets: Mapping[TopicPartition, int]
) -> BatchWritten:
    written = job.run(None, 1)
    job.complete(written, None)
    if offsets:
        loop.run(commit_plain_offsets(settings, group, offsets))
    return _by_topic(written)


def _write_exactly_once(
    job: _Job,
    transaction: BatchTransaction,
    batch_id: int,
    offsets: Mapping[TopicPartition, int],
    elsewhere: Mapping[TopicPartition, int],
) -> BatchWritten:
    for run in range(1, RUNS_MAX + 1):
        part = loop.run(transaction.begin())
        try:
            written = job.run(part, run)
        except IndeterminateTransaction:
            loop.run(transaction.abort())
            if run == RUNS_MAX:
                raise
            continue
        except (PySparkException, Py4JJavaError, ProducerFenced) as error:
            loop.run(transaction.abort())  # which also finds out whether another driver has the id now
            if isinstance(error, ProducerFenced) or ProducerFenced.__name__ in str(error):
                raise transaction.timed_out() from error
            if run == RUNS_MAX or IndeterminateTransaction.__name__ not in str(error):
                raise _explained(job.frame, error) from error
            continue
        except BaseException:
            loop.run(transaction.abort())
            raise
        try:
            job.complete(written, part)
        except BaseException:
            loop.run(transaction.abort())
            raise
        loop.run(transaction.commit(batch_id, offsets, list(written.counts), elsewhere))
        break
    return _by_topic(written)


def _by_topic(written: Written) -> BatchWritten:
    by_topic: dict[str, int] = {}
    for at, records in written.counts.items():
        by_topic[at.topic] = by_topic.get(at.topic, 0) + records
    return BatchWritten(sum(by_topic.values()), by_topic=by_topic)


def _counts(rows: list[Row]) -> dict[TopicPartition, int]:
    counts: dict[TopicPartition, int] = {}
    for row in rows:
        if row.records:
            at = TopicPartition(row.topic, row.partition)
            counts[at] = counts.get(at, 0) + row.records
    return counts


def _check_unbroken(frame: DataFrame, written: list[Row]) -> None:
    """Raise unless each partition was written by exactly one attempt of one task."""
    writers: dict[TopicPartition, int] = {}
    for row in written:
        if not row.records:
            continue
        partition = TopicPartition(row.topic, row.partition)
        if writers.setdefault(partition, row.task) != row.task:
            raise PartitionWrittenTwice(f"two tasks wrote to {partition}; nothing of the batch was kept")
    if was_stage_retried(frame.sparkSession, {row.stage for row in written}):
        raise IndeterminateTransaction("Spark ran the writing stage of this batch a second time")


def _explained(frame: DataFrame, error: PySparkException | Py4JJavaError) -> Exception:
    """Where a second attempt only says that it was one, tell what the first one died of."""
    if IndeterminateTransaction.__name__ not in str(error):
        return error
    reason = first_failure(frame.sparkSession)
    return IndeterminateTransaction(f"a task of the batch failed {RUNS_MAX} times; the first failure: {reason}")


def _encoding(settings: ProducerSettings, compression: Mapping[str, str] | str) -> RowEncoding:
    if isinstance(compression, str):
        if settings.compression.codec and compression == "none":
            return RowEncoding(settings)
        return RowEncoding(settings._replace(compression=Compression(parse_codec(compression))))
    by_topic = {topic: Compression(parse_codec(name)) for topic, name in compression.items()}
    return RowEncoding(settings, by_topic=by_topic)


def _with_headers(frame: DataFrame) -> DataFrame:
    return frame.withColumn("headers", never_null(sf.col("headers"))) if "headers" in frame.columns else frame


def _is_small(frame: DataFrame) -> bool:
    """By Spark's statistics, which know a cached frame exactly and take an unknown one for huge."""
    statistics = frame._jdf.queryExecution().optimizedPlan().stats()
    return int(str(statistics.sizeInBytes())) <= SMALL_BYTES
