"""`expect`: a rule that every row must pass.

    - expect: {rule: "gross < 1e6", otherwise: dead_letter}

A row passes if the rule is true. If it is false or null (something in it was null), or cannot be computed for the row
(a division by zero, a cast), `otherwise` says what happens:
`dead_letter` rejects the row, `drop` leaves it out, `fail` stops the pipeline. Without a dead-letter topic, rejecting
a row stops the pipeline too.
"""

from pathlib import Path
from typing import ClassVar, Literal

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ottla.pipelines.steps.attempting import VALUE, attempt, can_fail, why_not
from ottla.pipelines.steps.base import StepContext
from ottla.pipelines.steps.expressions import checked_frame
from ottla.pipelines.steps.rejecting import FAILURE, as_json, passes, split_failed

_BROKEN = "FatalFailure: an expectation with `otherwise: fail` is not met:"


class ExpectOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rule: str
    """A condition in SQL."""
    otherwise: Literal["dead_letter", "drop", "fail"] = "dead_letter"


class ExpectStep:
    KIND: ClassVar[str] = "expect"
    Options: ClassVar[type[ExpectOptions]] = ExpectOptions
    STATEFUL: ClassVar[bool] = False

    def __init__(self, options: ExpectOptions) -> None:
        self._rule = options.rule
        self._otherwise = options.otherwise

    def problems(self) -> list[str]:
        return [] if self._rule.strip() else ["the rule is empty: write a condition, for instance `amount > 0`"]

    def row_by_row(self, base_dir: Path) -> bool:
        return True

    def apply(self, frame: DataFrame, context: StepContext) -> DataFrame:
        flagged = checked_frame(lambda: frame.withColumn(FAILURE, self._failure(frame)), context)
        if self._otherwise == "drop":
            return flagged.filter(passes(sf.col(FAILURE).isNull(), context)).drop(FAILURE)
        if self._otherwise == "dead_letter":
            return split_failed(flagged, context)
        message = sf.concat(
            sf.lit(f"{_BROKEN} step {context.label}: "), sf.col(FAILURE), sf.lit("; the row: "), as_json(flagged)
        )
        holds = sf.when(passes(sf.col(FAILURE).isNull(), context), True).otherwise(
            sf.raise_error(message).cast("boolean")
        )
        return flagged.filter(holds).drop(FAILURE)

    def _failure(self, frame: DataFrame) -> Column:
        rule = f"CAST(({self._rule}) AS BOOLEAN)"
        broken = sf.lit(f"the rule `{self._rule}` does not hold")
        if not can_fail(frame, rule):
            return sf.when(~sf.coalesce(sf.expr(rule), sf.lit(False)), broken)
        tried = attempt(frame, rule)
        failed = sf.when(tried.isNull(), sf.lit(f"the rule {why_not(self._rule)}"))
        return failed.when(~sf.coalesce(tried[VALUE], sf.lit(False)), broken)
