"""`deduplicate`: of rows with the same keys, one.

    - deduplicate: {keys: [id], time: at, within: 1 hour}
    - deduplicate: {keys: [id]}

With `within`, a row is a duplicate if one with the same keys came before and their event times are at most so far
apart; what is older is forgotten, and rows that come later than that are passed over as late. Without it every key ever
seen is remembered, so the state grows with the number of keys. Without `keys` whole rows are compared. In a stream the
first to arrive stays; over history all rows are there at once and any one of them stays, however far apart they are.
"""

from pathlib import Path
from typing import ClassVar

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ottla.pipelines.frames import HIDDEN, MARK
from ottla.pipelines.steps.base import StepContext
from ottla.pipelines.steps.columns import require_columns
from ottla.pipelines.steps.event_time import duration_problems, with_watermark

_REJECTED_ONE = "__rejected_one"


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
    QUIET_WITHOUT_ROWS: ClassVar[bool] = True

    def __init__(self, options: DeduplicateOptions) -> None:
        self._options = options

    def problems(self) -> list[str]:
        problems = duration_problems("within", self._options.within)
        if self._options.within is not None and self._options.time is None:
            problems.append("`within` needs `time`: the column of event time")
        return problems

    def row_by_row(self, base_dir: Path) -> bool:
        return True

    def apply(self, frame: DataFrame, context: StepContext) -> DataFrame:
        keys = self._options.keys or [name for name in frame.columns if name not in HIDDEN]
        require_columns(frame, keys, context)
        if context.marking:
            frame = frame.withColumn(_REJECTED_ONE, _one_of_a_kind())
            keys = [*keys, _REJECTED_ONE]
        if self._options.time is None:
            return frame.dropDuplicates(keys).drop(_REJECTED_ONE)
        timed = with_watermark(frame, self._options.time, self._options.within, context)
        unique = timed.dropDuplicatesWithinWatermark(keys) if context.streaming else timed.dropDuplicates(keys)
        return unique.drop(_REJECTED_ONE)


def _one_of_a_kind() -> Column:
    """Null for good rows. Marked ones each have a value of their own, so that none is a duplicate of another: several
    can come of one record, and what is no record has no place. The same again where Spark repeats a task."""
    return sf.when(sf.col(MARK).isNotNull(), sf.uuid())
