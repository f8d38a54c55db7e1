"""`expect`: a rule that every row must pass.

    - expect: {rule: "gross < 1e6", otherwise: dead_letter}

A row passes if the rule is true. If it is false or null (something in it was null), `otherwise` says what happens:
`dead_letter` rejects the row, `drop` leaves it out, `fail` stops the pipeline. Without a dead-letter topic, rejecting
a row stops the pipeline too.
"""

from typing import ClassVar, Literal

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from ottla.pipelines.steps.base import StepContext
from ottla.pipelines.steps.expressions import checked_frame
from ottla.pipelines.steps.rejecting import FAILURE, as_json, split_failed

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

    def apply(self, frame: DataFrame, context: StepContext) -> DataFrame:
        passes = sf.coalesce(sf.expr(f"({self._rule})").cast("boolean"), sf.lit(False))
        if self._otherwise == "drop":
            return checked_frame(lambda: frame.filter(passes), context)
        failure = sf.when(~passes, sf.lit(f"the rule `{self._rule}` does not hold"))
        flagged = checked_frame(lambda: frame.withColumn(FAILURE, failure), context)
        if self._otherwise == "dead_letter":
            return split_failed(flagged, context)
        message = sf.concat(
            sf.lit(f"{_BROKEN} step {context.label}: "), sf.col(FAILURE), sf.lit("; the row: "), as_json(flagged)
        )
        holds = sf.when(sf.col(FAILURE).isNull(), True).otherwise(sf.raise_error(message).cast("boolean"))
        return flagged.filter(holds).drop(FAILURE)
