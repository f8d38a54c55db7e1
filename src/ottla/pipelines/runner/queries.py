"""A planned query as a running one: the streaming part as a Spark plan, the rest in `BatchWork`."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ottla.model.names import TopicPartition
from ottla.pipelines.connectors.base import Source
from ottla.pipelines.connectors.topic import TopicSource
from ottla.pipelines.durations import spark_interval
from ottla.pipelines.errors import FatalFailure
from ottla.pipelines.plan import QueryPlan, has_batches_without_records
from ottla.pipelines.runner.batches import BatchWork, source_context, words_of
from ottla.pipelines.runner.chain import Chain, carry
from ottla.pipelines.runner.deployment import Deployment
from ottla.pipelines.runner.offset_log import offset_log, parse_offset_log, read_text, records_of

_EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"


@dataclass(frozen=True)
class StartedQuery:
    plan: QueryPlan
    stream: StreamingQuery
    work: BatchWork
    scans: int = 1
    """How often its plan reads each source: so often Spark counts a record."""


def start_query(query: QueryPlan, deployment: Deployment, spark: SparkSession, *, once: bool) -> StartedQuery:
    """Start it from its checkpoint. `once`: it ends by itself when it has read what is there now."""
    sources = {name: part.open(deployment.secrets) for name, part in query.sources.items()}
    checkpoint = deployment.checkpoint(query)
    work = BatchWork(query, deployment, _CheckpointNotes(checkpoint, query, sources))
    frame = work.finished(streaming_frame(query, deployment, spark, sources))
    scans = max(1, _streaming_leaves(frame) // len(sources))
    writer = (
        frame.writeStream.queryName(deployment.query_name(query))
        .option("checkpointLocation", checkpoint)
        .outputMode(output_mode(query))
        .foreachBatch(work)
    )
    trigger = spark_interval(deployment.checked.spec.limits.trigger)
    writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=trigger)
    with nullcontext() if has_batches_without_records(query, once=once) else _no_empty_batches(spark):
        return StartedQuery(query, writer.start(), work, scans)


def _streaming_leaves(frame: DataFrame) -> int:
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    return sum(1 for index in range(leaves.size()) if leaves.apply(index).isStreaming())


@contextmanager
def _no_empty_batches(spark: SparkSession) -> Iterator[None]:
    """While it lasts, queries are started that run no batch for time alone, neither by the clock nor because the
    watermark has moved. A query keeps the settings that it was started with."""
    before = spark.conf.get(_EMPTY_BATCHES)
    spark.conf.set(_EMPTY_BATCHES, "false")
    try:
        yield
    finally:
        spark.conf.set(_EMPTY_BATCHES, before or "true")


def streaming_frame(
    query: QueryPlan, deployment: Deployment, spark: SparkSession, sources: Mapping[str, Source]
) -> DataFrame:
    """The part of the query that Spark plans as a stream: records as they are, or what its steps make of them."""
    # Where topics are written the transaction of a batch commits the offsets, with what makes a replay recognisable.
    group = None if query.writes_topics else query.group
    streams = {
        name: source.stream(source_context(deployment, spark, query.sources[name], group))
        for name, source in sources.items()
    }
    if not query.streaming_steps and not query.in_line:
        (only,) = streams.values()
        return only
    chain = Chain(
        spark=spark,
        pipeline=deployment.plan.name,
        base_dir=deployment.checked.base_dir,
        streaming=True,
        rejecting=query.dead_letter is not None,
        keep=lambda frame: frame,
        marking=query.dead_letter is not None and query.in_line,
        secrets=deployment.secrets,
    )
    wanted = words_of(query.streaming_steps)
    for name, part in query.tables.items():
        if name not in wanted:
            continue
        context = source_context(deployment, spark, part, fresh=True)
        chain.add_table(part, part.open(deployment.secrets).table(context), fresh=True)
    first: DataFrame | None = None
    for name, stream in streams.items():
        frame = chain.add_source(query.sources[name], stream)
        first = frame if first is None else first
    assert first is not None
    result = chain.apply(query.streaming_steps, first)
    return carry(result, chain.rejected) if chain.rejecting else result


def output_mode(query: QueryPlan) -> str:
    """Windows that show results before they close say so themselves; everything else appends."""
    return next(
        (step.step.OUTPUT_MODE for step in query.streaming_steps if hasattr(step.step, "OUTPUT_MODE")), "append"
    )


class _CheckpointNotes:
    """What Spark's checkpoint knows about a query: who it is, and where each batch ends."""

    def __init__(self, checkpoint: str, query: QueryPlan, sources: Mapping[str, Source]) -> None:
        self._checkpoint = checkpoint
        self._query = query
        self._topics = [source for source in sources.values() if isinstance(source, TopicSource)]
        self._identity: str | None = None
        self._logs: dict[int, str] = {}
        """What Spark wrote down for this batch and the one before it."""

    def identity(self, spark: SparkSession) -> str:
        """Stays the same as long as the checkpoint is: another one has other batches under the same numbers."""
        if self._identity is None:
            text = read_text(spark, f"{self._checkpoint}/metadata")
            if text is None:
                raise FatalFailure(
                    f"the checkpoint {self._checkpoint} has no file `metadata`: was it deleted meanwhile?"
                )
            self._identity = f"{self._query.pipeline}.{self._query.name}.{json.loads(text)['id']}"
        return self._identity

    def offsets(self, spark: SparkSession, batch_id: int) -> dict[TopicPartition, int]:
        return parse_offset_log(self._log(spark, batch_id), self._is_ours)

    def records(self, spark: SparkSession, batch_id: int) -> int | None:
        before = self._logs.get(batch_id - 1)
        if before is None and batch_id > 0:
            before = read_text(spark, f"{self._checkpoint}/offsets/{batch_id - 1}")
        return records_of(self._log(spark, batch_id), before)

    def _log(self, spark: SparkSession, batch_id: int) -> str:
        if batch_id not in self._logs:
            text = offset_log(spark, self._checkpoint, batch_id)
            self._logs = {known: self._logs[known] for known in self._logs if known == batch_id - 1} | {batch_id: text}
        return self._logs[batch_id]

    def _is_ours(self, topic: str) -> bool:
        return any(source.reads(topic) for source in self._topics)
