"""`filter`: keep the rows for which a condition is true.

- filter: amount > 0 AND item IS NOT NULL
"""

from typing import ClassVar

import msgspec
from pyspark.sql import DataFrame

from ottla.pipelines.steps.base import StepContext
from ottla.pipelines.steps.expressions import checked_frame


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

    def apply(self, frame: DataFrame, context: StepContext) -> DataFrame:
        return checked_frame(lambda: frame.filter(self._condition), context)
