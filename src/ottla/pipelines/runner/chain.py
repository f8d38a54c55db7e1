"""Frames through steps: the same for the streaming part, a batch, history and tests."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from ottla.pipelines.connectors.topic import TopicSource, latest_by_key
from ottla.pipelines.frames import BAD_RECORD, ORIGIN, REJECTED
from ottla.pipelines.parts import SourcePart, StepPart
from ottla.pipelines.reading import FAILURE, origin, read_rows
from ottla.pipelines.steps.base import INPUT, StepContext


@dataclass(kw_only=True)
class Chain:
    spark: SparkSession
    pipeline: str
    base_dir: Path
    streaming: bool
    rejecting: bool
    """There is a dead-letter topic, so rows carry their origin and failing ones are collected in `rejected`."""
    keep: Callable[[DataFrame], DataFrame]
    named: dict[str, DataFrame] = field(default_factory=dict)
    rejected: list[DataFrame] = field(default_factory=list)

    def add_source(self, part: SourcePart, frame: DataFrame) -> DataFrame:
        """Records or rows of a source under its name; records that cannot be read are set aside."""
        self.named[part.name] = self._rows(part, frame)
        return self.named[part.name]

    def add_table(self, part: SourcePart, frame: DataFrame) -> None:
        """A table is read for every batch, so what cannot be read in it is no dead letter: it is left out, and counted
        now and then (`unread_in_table`)."""
        if part.reading is None:
            self.named[part.name] = frame
            return
        flagged = _flagged_table(part, frame, self.base_dir)
        self.named[part.name] = flagged.filter(sf.col(FAILURE).isNull()).drop(FAILURE)

    def apply(self, steps: Sequence[StepPart], frame: DataFrame) -> DataFrame:
        for step in steps:
            given = self.named[step.input] if step.input is not None else frame
            frame = step.step.apply(given, self._context(step, given))
            if step.result is not None:
                self.named[step.result] = frame
        return frame

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
        )

    def _rows(self, part: SourcePart, frame: DataFrame) -> DataFrame:
        if part.reading is None:
            return frame.withColumn(ORIGIN, origin(frame.select(), part.name)) if self.rejecting else frame
        flagged = read_rows(frame, part.reading, part.name, self.base_dir, with_origin=self.rejecting)
        if not self.rejecting:
            return _or_stop(flagged)
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


def _flagged_table(part: SourcePart, frame: DataFrame, base_dir: Path) -> DataFrame:
    assert part.reading is not None
    records = latest_by_key(frame) if part.type is TopicSource else frame
    return read_rows(records, part.reading, part.name, base_dir, with_origin=False)


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

CARRIED = "__rejected"


def carry(frame: DataFrame, rejected: Sequence[DataFrame]) -> DataFrame:
    """One frame of both: good rows have a null in `__rejected`, rejected ones have it in all other columns."""
    together = frame.withColumn(CARRIED, sf.lit(None).cast(REJECTED))
    for other in rejected:
        nulls = [sf.lit(None).cast(column.dataType).alias(column.name) for column in frame.schema.fields]
        together = together.unionByName(other.select(*nulls, _as_struct(other).alias(CARRIED)))
    return together


def uncarry(frame: DataFrame) -> tuple[DataFrame, DataFrame]:
    good = frame.filter(sf.col(CARRIED).isNull()).drop(CARRIED)
    return good, frame.filter(sf.col(CARRIED).isNotNull()).select(f"{CARRIED}.*")


def _as_struct(rejected: DataFrame) -> Column:
    return sf.struct(*(sf.col(column.name).cast(column.dataType).alias(column.name) for column in REJECTED.fields))
