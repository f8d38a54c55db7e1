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
from ottla.pipelines.plan import QueryPlan
from ottla.pipelines.runner.batches import BatchWork, source_context
from ottla.pipelines.runner.chain import Chain, carry
from ottla.pipelines.runner.deployment import Deployment
from ottla.pipelines.runner.offset_log import batch_offsets, read_text

_EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"


@dataclass(frozen=True)
class StartedQuery:
    plan: QueryPlan
    stream: StreamingQuery
    work: BatchWork


def start_query(query: QueryPlan, deployment: Deployment, spark: SparkSession, *, once: bool) -> StartedQuery:
    """Start it from its checkpoint. `once`: it ends by itself when it has read what is there now."""
    sources = {name: part.open(deployment.secrets) for name, part in query.sources.items()}
    checkpoint = deployment.checkpoint(query)
    work = BatchWork(query, deployment, _CheckpointNotes(checkpoint, query, sources))
    frame = streaming_frame(query, deployment, spark, sources)
    writer = (
        frame.writeStream.queryName(deployment.query_name(query))
        .option("checkpointLocation", checkpoint)
        .outputMode(output_mode(query))
        .foreachBatch(work)
    )
    trigger = spark_interval(deployment.checked.spec.limits.trigger)
    writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=trigger)
    with _no_empty_batches(spark) if once and _goes_by_the_clock(query) else nullcontext():
        return StartedQuery(query, writer.start(), work)


def _goes_by_the_clock(query: QueryPlan) -> bool:
    return any(getattr(step.step, "GOES_BY_THE_CLOCK", False) for step in query.streaming_steps)


@contextmanager
def _no_empty_batches(spark: SparkSession) -> Iterator[None]:
    """While it lasts, queries are started that run no batch for time alone: as time goes on for ever, such a query that
    is to read what is there now would never end. A query keeps the settings that it was started with."""
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
    streams = {name: source.stream(source_context(deployment, spark, name, group)) for name, source in sources.items()}
    if not query.streaming_steps:
        (only,) = streams.values()
        return only
    chain = Chain(
        spark=spark,
        pipeline=deployment.plan.name,
        base_dir=deployment.checked.base_dir,
        streaming=True,
        rejecting=query.dead_letter is not None,
        keep=lambda frame: frame,
    )
    for name, part in query.tables.items():
        context = source_context(deployment, spark, name, fresh=True)
        chain.add_table(part, part.open(deployment.secrets).table(context))
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
        return batch_offsets(spark, self._checkpoint, batch_id, self._is_ours)

    def _is_ours(self, topic: str) -> bool:
        return any(source.reads(topic) for source in self._topics)
