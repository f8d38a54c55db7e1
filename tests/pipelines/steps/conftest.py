"""Steps on frames: a context that remembers what was rejected."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from ottla.pipelines.frames import ORIGIN, ORIGIN_TYPE
from ottla.pipelines.steps.base import INPUT, Step, StepContext
from ottla.pipelines.steps.registry import STEPS


@dataclass
class Bench:
    """Applies steps as the runner does, on a static or a streaming frame."""

    spark: SparkSession
    base_dir: Path
    tables: dict[str, DataFrame] = field(default_factory=dict)
    rejecting: bool = True
    rejected: list[DataFrame] = field(default_factory=list)
    kept: list[DataFrame] = field(default_factory=list)

    def context(self, frame: DataFrame, label: str = "1 step") -> StepContext:
        return StepContext(
            spark=self.spark,
            pipeline="p",
            label=label,
            base_dir=self.base_dir,
            streaming=frame.isStreaming,
            tables={**self.tables, INPUT: frame},
            reject=self.rejected.append if self.rejecting else None,
            keep=self._keep,
        )

    def _keep(self, frame: DataFrame) -> DataFrame:
        if frame.isStreaming:
            return frame
        self.kept.append(frame.persist())
        return self.kept[-1]

    def apply(self, kind: str, options: dict[str, Any], frame: DataFrame) -> DataFrame:
        return make_step(kind, options).apply(frame, self.context(frame, f"1 {kind}"))

    def rejects(self) -> list[Row]:
        return [row for frame in self.rejected for row in frame.collect()]


def make_step(kind: str, options: dict[str, Any]) -> Step:
    step_type = STEPS.get(kind)
    step: Step = step_type(msgspec.convert(options, step_type.Options))
    assert step.problems() == []
    return step


@pytest.fixture
def bench(spark: SparkSession, tmp_path: Path) -> "Any":
    bench = Bench(spark, tmp_path)
    yield bench
    for frame in bench.kept:
        frame.unpersist()


@pytest.fixture
def with_origin(spark: SparkSession) -> Callable[[list[tuple[Any, ...]], str], DataFrame]:
    """A frame of rows that carry an origin; the offset is the row's number."""

    def build(rows: list[tuple[Any, ...]], schema: str) -> DataFrame:
        numbered = [(*row, number) for number, row in enumerate(rows)]
        frame = spark.createDataFrame(numbered, f"{schema}, __offset BIGINT").coalesce(1)
        fields = [
            (sf.col("__offset") if name == "offset" else sf.lit(None)).cast(ORIGIN_TYPE[name].dataType).alias(name)
            for name in ORIGIN_TYPE.names
        ]
        return frame.withColumn(ORIGIN, sf.struct(*fields)).drop("__offset")

    return build
