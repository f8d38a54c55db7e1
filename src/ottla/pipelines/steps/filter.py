"""`filter`: keep the rows for which a condition is true.

    - filter: amount > 0 AND item IS NOT NULL

A row for which the condition cannot be computed (a division by zero, a cast) is rejected.
"""

from pathlib import Path
from typing import ClassVar

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from ottla.pipelines.steps.attempting import VALUE, attempt, can_fail, why_not
from ottla.pipelines.steps.base import StepContext
from ottla.pipelines.steps.expressions import checked_frame
from ottla.pipelines.steps.rejecting import FAILURE, ROW, as_json, passes, split_failed

_HOLDS = "__holds"


class FilterOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    filter: str
    """A condition in SQL."""


class FilterStep:
    KIND: ClassVar[str] = "filter"
    Options: ClassVar[type[FilterOptions]] = FilterOptions
    STATEFUL: ClassVar[bool] = False

    def __init__(self, options: FilterOptions) -> None:
        self._condition = options.filter

    def problems(self) -> list[str]:
        return [] if self._condition.strip() else ["the condition is empty: write for instance `amount > 0`"]

    def row_by_row(self, base_dir: Path) -> bool:
        return True

    def apply(self, frame: DataFrame, context: StepContext) -> DataFrame:
        if not can_fail(frame, self._condition):
            return checked_frame(lambda: frame.filter(passes(sf.expr(self._condition), context)), context)
        good = split_failed(checked_frame(lambda: self._attempted(frame), context), context)
        return good.filter(passes(sf.col(_HOLDS)[VALUE], context)).drop(_HOLDS)

    def _attempted(self, frame: DataFrame) -> DataFrame:
        tried = frame.withColumn(_HOLDS, attempt(frame, self._condition))
        failed = sf.col(_HOLDS).isNull()
        failure = sf.when(failed, sf.lit(f"the condition {why_not(self._condition)}"))
        return tried.withColumns({FAILURE: failure, ROW: sf.when(failed, as_json(frame))})
