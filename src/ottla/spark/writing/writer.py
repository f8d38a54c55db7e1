"""Spark's writers: what runs on the driver before and after a batch, and in each of its tasks."""

import asyncio
import contextlib
import itertools
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from ottla.client.errors import ProducerFenced
from ottla.client.producer import TransactionPart
from ottla.client.transacting import init_producer, transaction_version
from ottla.model.errors import OttlaError
from ottla.model.names import TopicPartition
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.errors import InvalidOption
from ottla.spark.worker_heap import freeze_modules
from ottla.spark.writing.commit import (
    DriverPart,
    abort_by_epoch,
    abort_undecided,
    check_open,
    commit_decided,
    commit_tasks,
    decide,
    give_up,
    is_given_up,
    take_over,
)
from ottla.spark.writing.options import RECORD_COLUMNS, Delivery, WriteOptions, check_columns, parse_write_options
from ottla.spark.writing.rows_to_records import RowEncoding, encode_rows, produce
from ottla.spark.writing.transactions import Decision, TaskTransaction, task_id

ATTEMPT_IDS = 16
ABORT_SECONDS_MAX = 20.0

_generation = secrets.randbelow(1 << 16)
"""Of the process that plans the writes of a driver: a part of its tasks' transactional ids."""

_replaced: set[str] = set()
"""Queries of this process that found a younger driver: what they left is that driver's affair."""


class JobGivenUp(OttlaError):
    """A task ended after its job had failed. Spark tells what the job died of; nobody hears this."""


class TaskMessage(NamedTuple):
    transaction: TaskTransaction | None
    """None if the task had no rows, or found its batch decided."""
    partitions: dict[TopicPartition, int]
    query: str
    driver: DriverPart | None
    is_decided: bool = False


class TaskWritten(WriterCommitMessage):
    """What a task tells the driver."""

    def __init__(self, message: TaskMessage) -> None:
        self.message = message


class _TaskWriter:
    """What a task does: the same for a batch job and for a stream."""

    def __init__(self, options: WriteOptions, prefix: str, generation: int) -> None:
        self.options = options
        self.prefix = prefix
        self.generation = generation

    def write(self, rows: Iterator[pa.RecordBatch]) -> tuple[TaskTransaction | None, dict[TopicPartition, int]]:
        first = next((batch for batch in rows if batch.num_rows), None)
        if first is None:
            return None, {}
        freeze_modules()
        batches = (_record_columns(batch) for batch in itertools.chain([first], rows))
        encoded = encode_rows(batches, RowEncoding(self.options.producer, self.options.topic))
        if self.options.delivery is Delivery.AT_LEAST_ONCE:
            return None, produce(encoded, self.options.producer, None)
        transaction, part = self._begin()
        try:
            return transaction, produce(encoded, self.options.producer, part)
        except BaseException:
            # What cannot be aborted here is aborted by the next batch, or by its timeout.
            with contextlib.suppress(OttlaError):
                loop.run(_abort(self.options, part))
            raise

    def _begin(self) -> tuple[TaskTransaction, TransactionPart]:
        context = TaskContext.get()
        assert context is not None, "this runs inside a task"
        # Attempts count from 0 again when Spark repeats a stage; the ids of attempts do not. Attempts of one task must
        # not meet in one transactional id, and there should not be endlessly many of those.
        attempt = context.attemptNumber() * ATTEMPT_IDS + context.taskAttemptId() % ATTEMPT_IDS
        name = task_id(self.prefix, self.generation, context.partitionId(), attempt)
        part = loop.run(_take(self.options, name))
        return TaskTransaction(context.partitionId(), attempt, self.generation, part.producer), part


async def _take(options: WriteOptions, transactional_id: str) -> TransactionPart:
    cluster = shared_cluster(options.producer.client)
    version = await transaction_version(cluster, transactional_id)
    producer = await init_producer(cluster, transactional_id, options.producer.transaction_timeout_ms)
    return TransactionPart(transactional_id, producer, version)


async def _abort(options: WriteOptions, part: TransactionPart) -> None:
    cluster = shared_cluster(options.producer.client)
    await abort_by_epoch(cluster, options.producer, part.transactional_id, part.producer)


class StreamWriter(DataSourceStreamArrowWriter):
    """One batch of a stream. Spark makes one before the tasks, which travels to them, and another one afterwards."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options = parse_write_options(options, streaming=True)
        check_columns(schema, self._options)
        self._generation = _generation
        self._driver: DriverPart | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Called when the tasks are about to get it: the moment to take over from older drivers, once a batch."""
        if self._driver is None and self._options.prefix is not None:
            self._driver = loop.run(take_over(self._options.producer, self._options.prefix))
        return dict(self.__dict__)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:  # type: ignore[override]  # Spark's
        context = TaskContext.get()
        assert context is not None, "this runs inside a task"
        query = context.getLocalProperty("sql.streaming.queryId") or ""
        batch_id = int(context.getLocalProperty("streaming.sql.batchId") or -1)
        decided = self._driver.decided if self._driver is not None else None
        if decided is not None and decided.query == query and decided.batch_id >= batch_id:
            for _ in iterator:
                pass  # the batch is in the topics: its rows are only taken off Spark's hands
            return TaskWritten(TaskMessage(None, {}, query, self._driver, is_decided=True))
        writer = _TaskWriter(self._options, self._options.prefix or "", self._generation)
        transaction, partitions = writer.write(iterator)
        return TaskWritten(TaskMessage(transaction, partitions, query, self._driver))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        freeze_modules()
        found = _messages(messages)
        prefix = self._options.prefix
        transactions = tuple(one.transaction for one in found if one.transaction is not None)
        if prefix is None or not transactions:
            return  # at least once; or a batch without rows, or one that was decided before
        driver = found[0].driver
        assert driver is not None, "a task with a transaction has a driver"
        decision = Decision(found[0].query, batchId, driver.producer, transactions)
        anchor = min(partition for one in found for partition in one.partitions)
        settings = self._options.producer
        try:
            loop.run(decide(settings, prefix, driver, decision, anchor))
        except ProducerFenced:
            _replaced.add(prefix)
            raise
        loop.run(commit_decided(shared_cluster(settings.client), prefix, decision, transactions, driver.version))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """End what the tasks left open: consumers would wait for it. The next batch would do it too, if one comes."""
        prefix = self._options.prefix
        if prefix is None or prefix in _replaced:
            return
        found = [one.message for one in messages if isinstance(one, TaskWritten)]
        transactions = [one.transaction for one in found if one.transaction is not None]
        driver = found[0].driver if found else None
        settings = self._options.producer
        with contextlib.suppress(OttlaError, TimeoutError):  # the failure that led here is the one to be told
            if driver is not None:
                loop.run(asyncio.wait_for(abort_undecided(settings, prefix, driver, transactions), ABORT_SECONDS_MAX))
            else:
                loop.run(asyncio.wait_for(take_over(settings, prefix), ABORT_SECONDS_MAX))


class BatchWriter(DataSourceArrowWriter):
    """A batch job: tasks that are repeated leave nothing behind, and nothing is visible before all have succeeded."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise InvalidOption("records cannot be overwritten: a topic only grows. Use mode append")
        self._options = parse_write_options(options, streaming=False)
        check_columns(schema, self._options)
        self._job = secrets.token_hex(8)
        self._prefix = self._options.prefix or f"ottla-write-{self._job}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:  # type: ignore[override]  # Spark's
        transaction, partitions = _TaskWriter(self._options, self._prefix, 0).write(iterator)
        if transaction is not None:
            loop.run(self._end_if_given_up(transaction))
        return TaskWritten(TaskMessage(transaction, partitions, "", None))

    async def _end_if_given_up(self, transaction: TaskTransaction) -> None:
        """Rows that end too early look like all of them: so it is when another task has failed, or the frame has."""
        settings = self._options.producer
        if await is_given_up(settings, self._prefix, self._job):
            name = transaction.transactional_id(self._prefix)
            await abort_by_epoch(shared_cluster(settings.client), settings, name, transaction.producer)
            raise JobGivenUp(f"the job of task {transaction.task} has failed meanwhile; what the task wrote is aborted")

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        transactions = [one.transaction for one in _messages(messages) if one.transaction is not None]
        if transactions:
            loop.run(self._commit(transactions))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if self._options.delivery is Delivery.EXACTLY_ONCE:
            loop.run(give_up(self._options.producer, self._prefix, self._job))

    async def _commit(self, transactions: Sequence[TaskTransaction]) -> None:
        cluster = shared_cluster(self._options.producer.client)
        version = await transaction_version(cluster, transactions[0].transactional_id(self._prefix))
        await check_open(cluster, self._prefix, transactions)
        await commit_tasks(cluster, self._prefix, transactions, version)


def _messages(messages: Sequence[WriterCommitMessage | None]) -> list[TaskMessage]:
    found = [one.message for one in messages if isinstance(one, TaskWritten)]
    if len(found) != len(messages):
        raise OttlaError(f"{len(messages) - len(found)} of {len(messages)} tasks did not say what they wrote")
    return found


def _record_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Without what is no part of a record: rows that were read from a topic have its offset and timestamp too."""
    wanted = [name for name in batch.schema.names if name.lower() in RECORD_COLUMNS]
    return batch if len(wanted) == batch.num_columns else batch.select(wanted)
