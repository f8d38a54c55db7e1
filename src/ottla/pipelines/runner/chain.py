"""Frames through steps: the same for the streaming part, a batch, history and tests."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from ottla.pipelines.connectors.topic import TopicSource, latest_by_key
from ottla.pipelines.frames import BAD_RECORD, HIDDEN, MARK, MARK_TYPE, ORIGIN, ORIGIN_TYPE
from ottla.pipelines.parts import SourcePart, StepPart
from ottla.pipelines.plan import is_row_by_row
from ottla.pipelines.reading import FAILURE, origin, read_rows
from ottla.pipelines.secrets import Secrets
from ottla.pipelines.steps.base import INPUT, StepContext
from ottla.pipelines.steps.rejecting import origin_of


@dataclass(kw_only=True)
class Chain:
    spark: SparkSession
    pipeline: str
    base_dir: Path
    streaming: bool
    rejecting: bool
    """There is a dead-letter topic, so rows carry their origin and failing ones are collected in `rejected`."""
    keep: Callable[[DataFrame], DataFrame]
    marking: bool = False
    """Rows that fail stay in the frame, marked (`frames.MARK`). Only where every step works on the one before it."""
    secrets: Secrets | None = None
    """For formats that ask a registry."""
    named: dict[str, DataFrame] = field(default_factory=dict)
    rejected: list[DataFrame] = field(default_factory=list)

    def add_source(self, part: SourcePart, frame: DataFrame) -> DataFrame:
        """Records or rows of a source under its name; records that cannot be read are set aside."""
        self.named[part.name] = self._rows(self._filled(part), frame)
        return self.named[part.name]

    def add_table(self, part: SourcePart, frame: DataFrame, *, fresh: bool = False) -> None:
        """A table is read for every batch, so what cannot be read in it is no dead letter: it is left out, and counted
        now and then (`unread_in_table`). `fresh`: the frame is read with every batch of a stream, and a topic as a
        table already."""
        if part.reading is None:
            self.named[part.name] = frame
            return
        flagged = _flagged_table(self._filled(part), frame, self.base_dir, fresh=fresh, explained=False)
        self.named[part.name] = flagged.filter(sf.col(FAILURE).isNull()).drop(FAILURE)

    def apply(self, steps: Sequence[StepPart], frame: DataFrame) -> DataFrame:
        for step in steps:
            given = self.named[step.input] if step.input is not None else frame
            if self.marking and not is_row_by_row(step, self.base_dir):
                given = self.set_aside(given)
            frame = step.step.apply(given, self._context(step, given))
            if self.marking and MARK not in frame.columns:
                frame = unmarked(frame)
            if step.result is not None:
                self.named[step.result] = frame
        return frame

    def set_aside(self, frame: DataFrame) -> DataFrame:
        """The good rows of a frame; the marked ones are among the rejected from here on. Reads the frame twice, in a
        stream."""
        if MARK not in frame.columns:
            return frame
        kept = self.keep(frame)
        marked = kept.filter(sf.col(MARK).isNotNull())
        self.rejected.append(marked.select(origin_of(kept).alias("origin"), f"{MARK}.*"))
        good = kept.filter(sf.col(MARK).isNull()).drop(MARK)
        for name in [name for name, known in self.named.items() if known is frame]:
            self.named[name] = good
        return good

    def _context(self, step: StepPart, given: DataFrame) -> StepContext:
        return StepContext(
            spark=self.spark,
            pipeline=self.pipeline,
            label=step.label,
            base_dir=self.base_dir,
            streaming=self.streaming,
            tables={**self.named, INPUT: given},
            reject=self.rejected.append if self.rejecting else None,
            keep=self.keep,
            marking=self.marking,
            set_aside=self.set_aside,
        )

    def _filled(self, part: SourcePart) -> SourcePart:
        return part if self.secrets is None else part.filled(self.secrets)

    def _rows(self, part: SourcePart, frame: DataFrame) -> DataFrame:
        if part.reading is None:
            return self._with_hidden(frame, part) if self.rejecting else frame
        flagged = read_rows(frame, part.reading, part.name, self.base_dir, with_origin=self.rejecting)
        if not self.rejecting:
            return _or_stop(flagged)
        if self.marking:
            return _marked_unread(flagged, part)
        flagged = self.keep(flagged)
        unread = flagged.filter(sf.col(FAILURE).isNotNull())
        self.rejected.append(
            unread.select(
                sf.col(ORIGIN).alias("origin"),
                sf.lit(f"source {part.name}").alias("step"),
                sf.col(FAILURE).alias("error"),
                sf.lit(None).cast("string").alias("row"),
            )
        )
        return flagged.filter(sf.col(FAILURE).isNull()).drop(FAILURE)

    def _with_hidden(self, rows: DataFrame, part: SourcePart) -> DataFrame:
        known = rows.withColumn(ORIGIN, origin(rows.select(), part.name))
        return unmarked(known) if self.marking else known


def unmarked(frame: DataFrame) -> DataFrame:
    """A frame whose rows are all good."""
    return frame.withColumn(MARK, sf.lit(None).cast(MARK_TYPE))


def _marked_unread(flagged: DataFrame, part: SourcePart) -> DataFrame:
    why = sf.struct(
        sf.lit(f"source {part.name}").alias("step"),
        sf.col(FAILURE).alias("error"),
        sf.lit(None).cast("string").alias("row"),
    )
    mark = sf.when(sf.col(FAILURE).isNotNull(), why.cast(MARK_TYPE))
    return flagged.withColumn(MARK, mark).drop(FAILURE)


def _flagged_table(
    part: SourcePart, frame: DataFrame, base_dir: Path, *, fresh: bool = False, explained: bool = True
) -> DataFrame:
    assert part.reading is not None
    records = latest_by_key(frame) if part.type is TopicSource and not fresh else frame
    return read_rows(records, part.reading, part.name, base_dir, with_origin=False, explained=explained)


def unread_in_table(part: SourcePart, frame: DataFrame, base_dir: Path) -> tuple[int, str | None]:
    """How many records of a table cannot be read, and one of them in words."""
    if part.reading is None:
        return 0, None
    bad = _flagged_table(part, frame, base_dir).filter(sf.col(FAILURE).isNotNull())
    found = bad.agg(sf.count("*").alias("count"), sf.min(FAILURE).alias("example")).collect()[0]
    return int(found["count"]), found["example"]


def _or_stop(flagged: DataFrame) -> DataFrame:
    stop = sf.raise_error(sf.concat(sf.lit(f"{BAD_RECORD} "), sf.col(FAILURE)))
    passes = sf.when(sf.col(FAILURE).isNotNull(), stop.cast("boolean")).otherwise(sf.lit(True))
    return flagged.filter(passes).drop(FAILURE)


# Rejected rows inside a streaming plan travel with the good ones: a query has one output.


def carry(frame: DataFrame, rejected: Sequence[DataFrame]) -> DataFrame:
    """One frame of both: good rows have a null in `__rejected`, rejected ones in all but that and the origin."""
    together = frame if ORIGIN in frame.columns else frame.withColumn(ORIGIN, sf.lit(None).cast(ORIGIN_TYPE))
    together = together if MARK in together.columns else unmarked(together)
    for other in rejected:
        nulls = [
            sf.lit(None).cast(column.dataType).alias(column.name)
            for column in together.schema.fields
            if column.name not in HIDDEN
        ]
        mark = sf.struct(*(sf.col(field.name) for field in MARK_TYPE.fields)).cast(MARK_TYPE)
        hidden = [sf.col("origin").cast(ORIGIN_TYPE).alias(ORIGIN), mark.alias(MARK)]
        together = together.unionByName(other.select(*nulls, *hidden))
    return together


def uncarry(frame: DataFrame) -> tuple[DataFrame, DataFrame]:
    good = frame.filter(sf.col(MARK).isNull()).drop(MARK)
    marked = frame.filter(sf.col(MARK).isNotNull())
    return good, marked.select(sf.col(ORIGIN).alias("origin"), f"{MARK}.*")
