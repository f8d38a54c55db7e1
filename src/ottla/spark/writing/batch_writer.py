"""A whole micro-batch into topics, exactly once: one transaction for all records and the offsets they came from.

The driver takes the transactional id, which fences off every older driver; tasks write with its producer id, each
partition from one task; the driver adds the source's offsets, noted with the batch's id, and ends the transaction. A
batch whose note is already there is left alone. docs/decisions/0007-exactly-once-in-spark.md goes through the crashes.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

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
    WRITTEN,
    WRITTEN_BESIDE,
    WRITTEN_COPIES,
    EncodeTask,
    WriteBesideTask,
    WriteCopiesTask,
    WriteEncodedTask,
    WriteRowsTask,
)
from ottla.spark.writing.batch_transaction import (
    NONE_ELSEWHERE,
    BatchTransaction,
    commit_plain_offsets,
    open_transaction,
)
from ottla.spark.writing.beside import SideWriter
from ottla.spark.writing.copied import CopyNotes, Run
from ottla.spark.writing.made_later import MakeRecordsTask, RecordMaker, WritingTask
from ottla.spark.writing.notes import send_notes
from ottla.spark.writing.rows_to_records import RowEncoding

SMALL_BYTES = 4 * 1024 * 1024
"""Frames known to be no larger are written by one task: a shuffle would cost more than it spreads."""
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
        """What the tasks of one run write with. Only the last run counts."""

    def publish(self, notes: Sequence[str]) -> None:
        """All is written, and `notes` are what the tasks that count said: make it visible, once."""


class PartitionWrittenTwice(OttlaError):
    """Two tasks wrote to one partition, whose order and sequences are then anyone's guess."""


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
    beside: Sequence[PublishedBeside] = (),
    has_headers: bool = False,
    maker: RecordMaker | None = None,
    copying: CopyNotes | None = None,
) -> BatchWritten:
    """Write rows (key, value, headers, topic, partition, timestamp) and commit `offsets` for `group` with them.

    `client` has Kafka settings without a prefix (`bootstrap.servers`, `acks`, ...); `compression` is a codec for all
    topics, or one by topic. `query` is what stays the same from the checkpoint on; it is Spark's query id if not given.
    Without source offsets the batch is noted in the group `<group>.batches`, with positions `elsewhere`: those of
    sources in another cluster, whose group is told when this has returned (`show_progress`). `is_small` says that one
    task can well write it all; if it is not known, Spark's own statistics decide.

    `beside` are other sinks: the column `row` is what they get, in the same pass. They publish when all is written,
    before the transaction ends; one that has done so before a crash is not to be named here again.
    Rows without a topic are only for them. `has_headers`: no row's headers are null, which is quicker.

    `maker` makes records of the column `unmade`, where that is not null (`made_later`).

    `copying` says that rows have their partition and the offset (`source_offset`) of the record that they copy, those
    of one partition in one task: nothing is moved, and notes of where they went are part of the transaction.
    """
    settings = producer_settings(client)
    encoding = _encoding(settings, compression)
    spark_context = frame.sparkSession.sparkContext
    name = query or spark_context.getLocalProperty("sql.streaming.queryId") or transactional_id
    rows = frame if has_headers else _with_headers(frame)
    job = _Job(rows, encoding, _is_small(frame) if is_small is None else is_small, beside, copying, maker)
    if delivery == "at_least_once":
        return _write_at_least_once(job, group, offsets)
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


class _Job(NamedTuple):
    frame: DataFrame
    encoding: RowEncoding
    is_small: bool
    beside: Sequence[PublishedBeside] = ()
    copying: CopyNotes | None = None
    maker: RecordMaker | None = None

    def run(self, transaction: TransactionPart | None, run: int) -> list[Row]:
        """Write all rows; what each task wrote to which partition."""
        others = [one.task(run) for one in self.beside]
        if others and self.is_small:
            task = self._given_records(WriteBesideTask(WriteRowsTask(self.encoding, transaction), others))
            return map_in_arrow(self.frame.coalesce(1), task.run, WRITTEN_BESIDE).collect()
        if self.copying is not None:
            tasks = 1 if self.is_small else self.frame.sparkSession.sparkContext.defaultParallelism
            placed = self.frame.coalesce(tasks)
            return map_in_arrow(placed, WriteCopiesTask(self.encoding, transaction).run, WRITTEN_COPIES).collect()
        if self.is_small or (transaction is None and not others):
            frame = self.frame.coalesce(1) if self.is_small else self.frame
            task = self._given_records(WriteRowsTask(self.encoding, transaction))
            return map_in_arrow(frame, task.run, WRITTEN).collect()
        # A number of partitions that was asked for is kept by adaptive execution.
        tasks = self.frame.sparkSession.sparkContext.defaultParallelism
        # No more tasks than cores: a batch is a union of many small frames, and each task costs a Python worker's time.
        encode = self._given_records(EncodeTask(self.encoding, tasks, others))
        encoded = map_in_arrow(self.frame.coalesce(tasks), encode.run, ENCODED)
        placed = encoded.repartitionById(tasks, "task")
        write = WriteEncodedTask(self.encoding.settings, transaction, others)
        return map_in_arrow(placed, write.run, WRITTEN_BESIDE if others else WRITTEN).collect()

    def _given_records(self, task: WritingTask) -> WritingTask:
        return task if self.maker is None else MakeRecordsTask(self.maker, task)

    def write_notes(self, written: list[Row], transaction: TransactionPart) -> None:
        if self.copying is None:
            return
        copied = {
            TopicPartition(row.topic, row.partition): [Run(*run) for run in json.loads(row.runs)]
            for row in written
            if row.records
        }
        send_notes(self.copying.notes(copied), self.encoding.settings, transaction)

    def publish(self, written: list[Row]) -> None:
        if not self.beside:
            return
        notes = [json.loads(row.notes) for row in written if row.notes is not None]
        for number, one in enumerate(self.beside):
            one.publish([said[number] for said in notes])


def _write_at_least_once(job: _Job, group: str, offsets: Mapping[TopicPartition, int]) -> BatchWritten:
    written = job.run(None, 1)
    job.publish(written)
    if offsets:
        loop.run(commit_plain_offsets(job.encoding.settings, group, offsets))
    return _counted(written)


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
            _check_unbroken(job.frame, written)
        except IndeterminateTransaction:
            loop.run(transaction.abort())
            if run == RUNS_MAX:
                raise
            continue
        except (PySparkException, Py4JJavaError) as error:
            loop.run(transaction.abort())  # which also finds out whether another driver has the id now
            if ProducerFenced.__name__ in str(error):
                raise transaction.timed_out() from error
            if run == RUNS_MAX or IndeterminateTransaction.__name__ not in str(error):
                raise _explained(job.frame, error) from error
            continue
        except BaseException:
            loop.run(transaction.abort())
            raise
        try:
            job.write_notes(written, part)
            job.publish(written)
        except BaseException:
            loop.run(transaction.abort())
            raise
        marks = [TopicPartition(row.topic, row.partition) for row in written if row.records]
        loop.run(transaction.commit(batch_id, offsets, marks, elsewhere))
        break
    return _counted(written)


def _counted(written: list[Row]) -> BatchWritten:
    by_topic: dict[str, int] = {}
    for row in written:
        if row.records:
            by_topic[row.topic] = by_topic.get(row.topic, 0) + row.records
    return BatchWritten(sum(by_topic.values()), by_topic=by_topic)


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
