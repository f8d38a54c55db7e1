"""A whole micro-batch into topics, exactly once: one transaction for all records and the offsets they came from.

The driver takes the transactional id, which fences off every older driver; tasks write with its producer id, each
partition from one task; the driver adds the source's offsets, noted with the batch's id, and ends the transaction. A
batch whose note is already there is left alone. docs/decisions/0007-exactly-once-in-spark.md goes through the crashes.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

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
from ottla.spark.batch_tasks import ENCODED, WRITTEN, EncodeTask, WriteEncodedTask, WriteRowsTask
from ottla.spark.batch_transaction import BatchTransaction, commit_plain_offsets, open_transaction
from ottla.spark.errors import InvalidOption, PoisonedTransaction
from ottla.spark.job_history import first_failure, was_stage_retried
from ottla.spark.rows_to_records import RowEncoding

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


class TornPartition(OttlaError):
    """Two tasks wrote to one partition, whose order and sequences are then anyone's guess."""


def write_batch(
    frame: DataFrame,
    *,
    client: Mapping[str, str],
    transactional_id: str,
    group: str,
    batch_id: int,
    offsets: Mapping[TopicPartition, int],
    query: str | None = None,
    compression: Mapping[str, str] | str = "none",
    delivery: Delivery = "exactly_once",
    is_small: bool | None = None,
) -> BatchWritten:
    """Write rows (key, value, headers, topic, partition, timestamp) and commit `offsets` for `group` with them.

    `client` has Kafka settings without a prefix (`bootstrap.servers`, `acks`, ...); `compression` is a codec for all
    topics, or one by topic. `query` is what stays the same from the checkpoint on; it is Spark's query id if not given.
    Without source offsets the batch is noted in the group `<group>.batches`. `is_small` says that one task can well
    write it all; if it is not known, Spark's own statistics decide.
    """
    settings = producer_settings(client)
    encoding = _encoding(settings, compression)
    spark_context = frame.sparkSession.sparkContext
    name = query or spark_context.getLocalProperty("sql.streaming.queryId") or transactional_id
    job = _Job(_quick_headers(frame), encoding, _is_small(frame) if is_small is None else is_small)
    if delivery == "at_least_once":
        return _write_at_least_once(job, group, offsets)
    if spark_context.getConf().get("spark.speculation", "false") == "true":
        raise InvalidOption(
            "spark.speculation runs tasks twice at once, which one transaction cannot take: switch it off, "
            "or choose delivery at_least_once"
        )
    transaction = loop.run(open_transaction(settings, transactional_id, group, name))
    if transaction.has(batch_id):
        return BatchWritten(0, already_there=True)
    return _write_exactly_once(job, transaction, batch_id, offsets)


class _Job(NamedTuple):
    frame: DataFrame
    encoding: RowEncoding
    is_small: bool

    def run(self, transaction: TransactionPart | None) -> list[Row]:
        """Write all rows; what each task wrote to which partition."""
        if transaction is None or self.is_small:
            frame = self.frame.coalesce(1) if self.is_small else self.frame
            return frame.mapInArrow(WriteRowsTask(self.encoding, transaction).run, WRITTEN).collect()
        # A number of partitions that was asked for is kept by adaptive execution.
        tasks = self.frame.sparkSession.sparkContext.defaultParallelism
        # No more tasks than cores: a batch is a union of many small frames, and each task costs a Python worker's time.
        encoded = self.frame.coalesce(tasks).mapInArrow(EncodeTask(self.encoding, tasks).run, ENCODED)
        placed = encoded.repartitionById(tasks, "task")
        return placed.mapInArrow(WriteEncodedTask(self.encoding.settings, transaction).run, WRITTEN).collect()


def _write_at_least_once(job: _Job, group: str, offsets: Mapping[TopicPartition, int]) -> BatchWritten:
    written = job.run(None)
    if offsets:
        loop.run(commit_plain_offsets(job.encoding.settings, group, offsets))
    return _counted(written)


def _write_exactly_once(
    job: _Job, transaction: BatchTransaction, batch_id: int, offsets: Mapping[TopicPartition, int]
) -> BatchWritten:
    for run in range(1, RUNS_MAX + 1):
        part = loop.run(transaction.begin())
        try:
            written = job.run(part)
            _check_unbroken(job.frame, written)
        except PoisonedTransaction:
            loop.run(transaction.abort())
            if run == RUNS_MAX:
                raise
            continue
        except (PySparkException, Py4JJavaError) as error:
            loop.run(transaction.abort())  # which also finds out whether another driver has the id now
            if ProducerFenced.__name__ in str(error):
                raise transaction.timed_out() from error
            if run == RUNS_MAX or PoisonedTransaction.__name__ not in str(error):
                raise _explained(job.frame, error) from error
            continue
        except BaseException:
            loop.run(transaction.abort())
            raise
        marks = [TopicPartition(row.topic, row.partition) for row in written if row.records]
        loop.run(transaction.commit(batch_id, offsets, marks))
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
            raise TornPartition(f"two tasks wrote to {partition}; nothing of the batch was kept")
    if was_stage_retried(frame.sparkSession, {row.stage for row in written}):
        raise PoisonedTransaction("Spark ran the writing stage of this batch a second time")


def _explained(frame: DataFrame, error: PySparkException | Py4JJavaError) -> Exception:
    """Where a second attempt only says that it was one, tell what the first one died of."""
    if PoisonedTransaction.__name__ not in str(error):
        return error
    reason = first_failure(frame.sparkSession)
    return PoisonedTransaction(f"a task of the batch failed {RUNS_MAX} times; the first failure: {reason}")


def _encoding(settings: ProducerSettings, compression: Mapping[str, str] | str) -> RowEncoding:
    if isinstance(compression, str):
        if settings.compression.codec and compression == "none":
            return RowEncoding(settings)
        return RowEncoding(settings._replace(compression=Compression(parse_codec(compression))))
    by_topic = {topic: Compression(parse_codec(name)) for topic, name in compression.items()}
    return RowEncoding(settings, by_topic=by_topic)


def _quick_headers(frame: DataFrame) -> DataFrame:
    """Without null lists, which Spark writes to Arrow in a time that grows with the square of their number.

    Measured: a million rows with null headers cost its JVM 15 s, with empty ones 2 s. Records know no difference.
    """
    if "headers" not in frame.columns:
        return frame
    return frame.withColumn("headers", sf.coalesce("headers", sf.array().cast(frame.schema["headers"].dataType)))


def _is_small(frame: DataFrame) -> bool:
    """By Spark's statistics, which know a cached frame exactly and take an unknown one for huge."""
    statistics = frame._jdf.queryExecution().optimizedPlan().stats()
    return int(str(statistics.sizeInBytes())) <= SMALL_BYTES
