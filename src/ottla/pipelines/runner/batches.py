"""One batch, from the frame that Spark hands over to the last sink.

Sinks other than topics come first, each of them leaving a batch alone that it has written before. The records of all
topics, dead letters among them, and the offsets of the sources then become visible at once, in one transaction.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from typing import Protocol

from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from ottla.model.errors import OttlaError
from ottla.model.names import TopicPartition
from ottla.pipelines.connectors.base import Batch, Sink, Source, SourceContext
from ottla.pipelines.connectors.transactional import CopyingSink, TopicTarget, TransactionalSink, transactional
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.frames import MARK, TOPIC_ROW, without_origin
from ottla.pipelines.parts import SourcePart, StepPart
from ottla.pipelines.plan import QueryPlan
from ottla.pipelines.reading import json_objects
from ottla.pipelines.runner.chain import Chain, uncarry, unread_in_table
from ottla.pipelines.runner.dead_letters import UNMADE_ROW, LetterMaker, unmade_letters
from ottla.pipelines.runner.deployment import SMALL_RECORDS, Deployment
from ottla.pipelines.runner.finishing import Finishing, finishing
from ottla.spark.writing.batch_writer import (
    BatchWritten,
    PublishedBeside,
    encoded_rows,
    show_progress,
    write_batch,
)

PARQUET_CODEC = "spark.sql.parquet.compression.codec"
TABLES_LOOK_SECONDS = 60.0
"""So often it is counted what cannot be read in tables: that reads them once more."""

logger = logging.getLogger(__name__)


class StopRequested(PipelineError):
    """A batch was about to begin after the pipeline had been told to stop."""


@dataclass
class Counters:
    """What the sinks have got since the query started."""

    batches: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    dead_letters: int = 0
    unread_in_tables: dict[str, int] = field(default_factory=dict)
    """By table: how many of its records could not be read when it was last looked at."""
    warnings: list[str] = field(default_factory=list)
    """Nobody has been told yet."""


class BatchNotes(Protocol):
    def identity(self, spark: SparkSession) -> str:
        """Whose batches these are: a replayed batch has the same, a query that begins anew has another."""

    def offsets(self, spark: SparkSession, batch_id: int) -> Mapping[TopicPartition, int]:
        """Where the sources stand behind this batch."""

    def records(self, spark: SparkSession, batch_id: int) -> int | None:
        """About how many records the batch has read; None if that is not known."""


class BatchWork:
    """What is done with every batch of one query. Called by Spark, one batch at a time."""

    def __init__(self, query: QueryPlan, deployment: Deployment, notes: BatchNotes) -> None:
        self.counters = Counters()
        self.stopping = threading.Event()
        self._query = query
        self._deployment = deployment
        self._notes = notes
        self._idle = threading.Event()
        self._idle.set()
        self._look_at_tables_at = 0.0
        self._is_new = False
        """Something of the batch at hand was written, and so its plan was run."""
        self._finishing: Finishing | None = None
        secrets = deployment.secrets
        self._sinks: list[tuple[str, Sink]] = [(part.name, part.open(secrets)) for part in query.sinks]
        self._tables: list[tuple[str, Source]] = [(name, part.open(secrets)) for name, part in query.tables.items()]

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        self._idle.clear()
        try:
            if self.stopping.is_set():
                raise StopRequested("stopped before this batch began")
            self.run(frame, batch_id)
        finally:
            self._idle.set()

    def wait_until_idle(self, seconds: float) -> bool:
        return self._idle.wait(seconds)

    def finished(self, frame: DataFrame) -> DataFrame:
        """The streaming part of the plan with its end, if that is all there is: then batches are only written."""
        query, spark = self._query, frame.sparkSession
        if query.batch_steps or not query.in_line:
            return frame
        codec = spark.conf.get(PARQUET_CODEC) or "snappy"
        row = without_origin(frame).schema
        end = self._finishing = finishing(query, self._sinks, row, self._deployment.checked.base_dir, codec)
        if end is None:
            return frame
        finished = end.finish(frame)
        if self._copying is not None:
            return finished
        return encoded_rows(
            finished,
            client=self._deployment.kafka(query.target_cluster),
            compression=self._compression,
            beside=[sink.parting() for _, sink in end.files],
            maker=self._letter_maker,
        )

    def run(self, frame: DataFrame, batch_id: int) -> None:
        """One micro-batch: the streaming part is behind it, the other steps and the sinks are ahead."""
        self._is_new = False
        if self._finishing is not None:
            self._write_finished(self._finishing, frame, batch_id)
        else:
            with kept_frames() as keep:
                chain = static_chain(self._query, self._deployment, frame.sparkSession, keep)
                self._add_tables(chain, self._query.batch_steps)
                result = self._through_steps(chain, frame)
                self._write(chain, result, batch_id)
        if not self._is_new and any(step.step.STATEFUL for step in self._query.streaming_steps):
            # All sinks had it before a crash. Its state and its watermark are Spark's affair, and come of running it.
            frame.write.format("noop").mode("overwrite").save()
        self._look_at_tables(frame.sparkSession)
        self.counters.batches += 1

    def run_over(self, spark: SparkSession, sources: Mapping[str, DataFrame], batch_id: int) -> None:
        """All that the sources have as one batch: every step is run here."""
        with kept_frames() as keep:
            chain = static_chain(self._query, self._deployment, spark, keep)
            self._add_tables(chain, self._query.steps)
            result = all_steps(chain, self._query, sources)
            self._write(chain, result, batch_id)
        self._look_at_tables(spark)
        self.counters.batches += 1

    def _add_tables(self, chain: Chain, steps: Sequence[StepPart]) -> None:
        wanted = words_of(steps)
        for name, table in self._tables:
            if name in wanted:
                context = source_context(self._deployment, chain.spark, self._query.tables[name])
                chain.add_table(self._query.tables[name], table.table(context))

    def _look_at_tables(self, spark: SparkSession) -> None:
        """Count what cannot be read in them. The batch is written: whatever goes wrong here is not its affair."""
        if time.monotonic() < self._look_at_tables_at:
            return
        self._look_at_tables_at = time.monotonic() + TABLES_LOOK_SECONDS
        for name, table in self._tables:
            part = self._query.tables[name]
            try:
                frame = table.table(source_context(self._deployment, spark, part))
                filled = part.filled(self._deployment.secrets)
                count, example = unread_in_table(filled, frame, self._deployment.checked.base_dir)
            except (OttlaError, PySparkException) as error:
                logger.debug("The table %s could not be looked at: %s", name, error)
                continue
            if count and count != self.counters.unread_in_tables.get(name):
                records = "1 record" if count == 1 else f"{count} records"
                self.counters.warnings.append(
                    f"{records} of the table {name} cannot be read and are left out, for instance: {example}"
                )
            self.counters.unread_in_tables[name] = count

    def _through_steps(self, chain: Chain, frame: DataFrame) -> DataFrame:
        query = self._query
        if query.streaming_steps or query.in_line:
            if MARK in frame.columns and not chain.marking:
                frame, rejected = uncarry(chain.keep(frame))
                chain.rejected.append(rejected)
            before = query.streaming_steps[-1].result if query.streaming_steps else next(iter(query.sources))
            if before is not None:
                chain.named[before] = frame
        else:
            (part,) = query.sources.values()
            frame = chain.add_source(part, frame)
        result = chain.apply(query.batch_steps, frame)
        return result if query.target is None else chain.named[query.target]

    def _write_finished(self, end: Finishing, frame: DataFrame, batch_id: int) -> None:
        """The frame is what is written: topics, dead letters and files in one pass."""
        spark = frame.sparkSession
        records = self._notes.records(spark, batch_id)
        is_small = records is not None and records <= SMALL_RECORDS
        asked = [sink.beside(self._batch(spark, batch_id, name), end.codec) for name, sink in end.files]
        self._count_topics(self._write_topics(spark, frame, batch_id, is_small=is_small, beside=asked))
        for (name, _), published in zip(end.files, asked, strict=True):
            if published is not None:
                self._count(name, published.rows)

    def _write(self, chain: Chain, result: DataFrame, batch_id: int) -> None:
        result = chain.set_aside(result)
        rows = without_origin(result)
        # Where no step comes after a frame that is kept already, keeping its rows as well would only cost.
        if len(self._sinks) > 1 and (self._query.batch_steps or not chain.rejecting):
            rows = chain.keep(rows)
        topics: list[DataFrame] = []
        for name, sink in self._sinks:
            if isinstance(sink, TransactionalSink):
                topics.append(rows.select(*sink.columns(rows, self._deployment.checked.base_dir)))
            else:
                written = sink.write(rows, self._batch(chain.spark, batch_id, name))
                self._count(name, None if written.already_there else written.rows)
        has_letters = bool(chain.rejected) and self._query.dead_letter is not None
        if has_letters:
            topics.append(unmade_letters(chain.rejected))
        if self._query.writes_topics:
            wanted = UNMADE_ROW if has_letters else TOPIC_ROW
            union = partial(DataFrame.unionByName, allowMissingColumns=True)
            together = reduce(union, topics) if topics else chain.spark.createDataFrame([], wanted)
            maker = self._letter_maker if has_letters else None
            self._count_topics(self._write_topics(chain.spark, together.to(wanted), batch_id, maker=maker))

    @cached_property
    def _copying(self) -> CopyingSink | None:
        return next((sink for _, sink in self._sinks if isinstance(sink, CopyingSink)), None)

    @cached_property
    def _targets(self) -> list[TopicTarget]:
        return [sink.target() for _, sink in transactional(self._sinks)]

    @property
    def _compression(self) -> Mapping[str, str] | str:
        if self._copying is not None:
            return self._targets[0].compression
        return {target.topic: target.compression for target in self._targets if target.topic}

    @property
    def _letter_maker(self) -> LetterMaker | None:
        letters = self._query.dead_letter
        return None if letters is None else LetterMaker(self._query.pipeline, letters)

    def _write_topics(
        self,
        spark: SparkSession,
        rows: DataFrame,
        batch_id: int,
        *,
        is_small: bool | None = None,
        beside: Sequence[PublishedBeside | None] = (),
        maker: LetterMaker | None = None,
    ) -> BatchWritten:
        """The rows of a plan that ends with `Finishing` are encoded, unless they are copies of records.

        `maker` is for dead letters that are to be made of some of the others.
        """
        exactly_once = not self._targets or any(target.exactly_once for target in self._targets)
        positions = self._notes.offsets(spark, batch_id)
        copying = self._copying
        if copying is not None:
            copying.prepare(self._deployment.kafka, positions)
        crosses = self._query.crosses_clusters
        group, offsets = (self._query.group, {} if crosses else positions)
        if copying is not None:  # then the target has partitions by which it can keep them
            group = f"{group}.positions"
            offsets = {copying.written_to(at): position for at, position in positions.items()}
        written = write_batch(
            rows,
            client=self._deployment.kafka(self._query.target_cluster),
            transactional_id=self._query.transactional_id,
            group=group,
            batch_id=batch_id,
            offsets=offsets,
            elsewhere=positions if crosses and copying is None else {},
            query=self._notes.identity(spark),
            compression=self._compression,
            delivery="exactly_once" if exactly_once else "at_least_once",
            is_small=is_small,
            is_encoded=self._finishing is not None and copying is None,
            beside=beside,
            maker=maker,
            copying=copying,
        )
        if crosses:
            self._tell_source(positions)
        return written

    def _tell_source(self, positions: Mapping[TopicPartition, int]) -> None:
        """Show progress in the cluster of the sources, for lag alone: what counts is in the target's transaction."""
        source = self._query.source_cluster
        try:
            show_progress(self._deployment.kafka(source), self._query.group, positions)
        except OttlaError as error:
            self.counters.warnings.append(f"the group {self._query.group} does not show this batch: {error}")

    def _batch(self, spark: SparkSession, batch_id: int, sink: str) -> Batch:
        deployment = self._deployment
        return Batch(
            spark=spark,
            pipeline=deployment.plan.name,
            query=self._notes.identity(spark),
            id=batch_id,
            sink=sink,
            base_dir=deployment.checked.base_dir,
            state_dir=deployment.version_folder,
        )

    def _count(self, name: str, rows: int | None) -> None:
        if rows is not None:
            self._is_new = True
            self.counters.rows[name] = self.counters.rows.get(name, 0) + rows

    def _count_topics(self, written: BatchWritten) -> None:
        """Sinks that write to one topic share its count: which of them a record came from is not told."""
        self._is_new |= not written.already_there
        names: dict[str | None, str] = {sink.target().topic: name for name, sink in transactional(self._sinks)}
        for topic, rows in written.by_topic.items():
            if topic == self._query.dead_letter:
                self.counters.dead_letters += rows
            elif topic in names or None in names:
                self._count(names.get(topic) or names[None], rows)


def static_chain(
    query: QueryPlan, deployment: Deployment, spark: SparkSession, keep: Callable[[DataFrame], DataFrame]
) -> Chain:
    return Chain(
        spark=spark,
        pipeline=deployment.plan.name,
        base_dir=deployment.checked.base_dir,
        streaming=False,
        rejecting=query.dead_letter is not None,
        keep=keep,
        marking=query.dead_letter is not None and query.in_line,
        secrets=deployment.secrets,
    )


def words_of(steps: Sequence[StepPart]) -> set[str | None]:
    """All that the steps may mean a frame by."""
    return {word for step in steps for word in (*step.words, step.input)}


def all_steps(chain: Chain, query: QueryPlan, sources: Mapping[str, DataFrame]) -> DataFrame:
    """What the sinks get when all steps of a query run on static frames."""
    frames = [chain.add_source(part, sources[name]) for name, part in query.sources.items()]
    result = chain.apply(query.steps, frames[0])
    return result if query.target is None else chain.named[query.target]


def source_context(
    deployment: Deployment, spark: SparkSession, part: SourcePart, group: str | None = None, *, fresh: bool = False
) -> SourceContext:
    return SourceContext(
        spark=spark,
        pipeline=deployment.plan.name,
        name=part.name,
        bootstrap=deployment.brokers(part.cluster),
        base_dir=deployment.checked.base_dir,
        state_dir=deployment.version_folder,
        max_records=deployment.checked.spec.limits.max_records,
        client=deployment.client(part.cluster),
        group=group,
        fresh=fresh,
        # One more column makes every plan larger, which small batches pay for and do not get back (measured).
        objects=None if deployment.has_small_batches else json_objects(part.reading),
    )


@contextmanager
def kept_frames() -> Iterator[Callable[[DataFrame], DataFrame]]:
    """Frames that are used twice are computed once; they are let go when the batch is over."""
    kept: list[DataFrame] = []

    def keep(frame: DataFrame) -> DataFrame:
        kept.append(frame.persist(StorageLevel.MEMORY_AND_DISK))
        return kept[-1]

    try:
        yield keep
    finally:
        for frame in kept:
            frame.unpersist()
