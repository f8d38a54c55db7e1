"""`deduplicate`: of rows with the same keys, one.

    - deduplicate: {keys: [id], time: at, within: 1 hour}
    - deduplicate: {keys: [id]}

With `within`, a row is a duplicate if one with the same keys came before and their event times are at most so far
apart; what is older is forgotten, and rows that come later than that are passed over as late. Without it every key ever
seen is remembered, so the state grows with the number of keys. Without `keys` whole rows are compared. In a stream the
first to arrive stays; over history all rows are there at once and any one of them stays, however far apart they are.
"""

from typing import ClassVar

import msgspec
from pyspark.sql import DataFrame

from ottla.pipelines.frames import ORIGIN
from ottla.pipelines.steps.base import StepContext
from ottla.pipelines.steps.columns import require_columns
from ottla.pipelines.steps.event_time import duration_problems, with_watermark


class DeduplicateOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keys: list[str] = []
    """The columns that duplicates have in common; all, if none is named."""
    time: str | None = None
    """The column of event time, for `within`."""
    within: str | None = None
    """How far apart in event time duplicates can be; not needed after a `watermark` step, whose delay it is."""


class DeduplicateStep:
    KIND: ClassVar[str] = "deduplicate"
    Options: ClassVar[type[DeduplicateOptions]] = DeduplicateOptions
    STATEFUL: ClassVar[bool] = True

    def __init__(self, options: DeduplicateOptions) -> None:
        self._options = options

    def problems(self) -> list[str]:
        problems = duration_problems("within", self._options.within)
        if self._options.within is not None and self._options.time is None:
            problems.append("`within` needs `time`: the column of event time")
        return problems

    def apply(self, frame: DataFrame, context: StepContext) -> DataFrame:
        keys = self._options.keys or [name for name in frame.columns if name != ORIGIN]
        require_columns(frame, keys, context)
        if self._options.time is None:
            return frame.dropDuplicates(keys)
        timed = with_watermark(frame, self._options.time, self._options.within, context)
        return timed.dropDuplicatesWithinWatermark(keys) if context.streaming else timed.dropDuplicates(keys)
