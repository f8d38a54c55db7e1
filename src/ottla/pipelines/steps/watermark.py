"""`watermark`: how late rows may come.

    - watermark: {time: at, delay: 10 minutes}

Once a row of time T has been seen, rows older than T minus the delay count as late: later steps with state (windows,
joins of streams, deduplication) pass them over and count them. Over history, where all rows are there at once, nothing
is late.
"""

from pathlib import Path
from typing import ClassVar

import msgspec
from pyspark.sql import DataFrame

from ottla.pipelines.steps.base import StepContext
from ottla.pipelines.steps.event_time import duration_problems, with_watermark


class WatermarkOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    time: str
    """The column of event time."""
    delay: str
    """How late rows may come."""


class WatermarkStep:
    KIND: ClassVar[str] = "watermark"
    Options: ClassVar[type[WatermarkOptions]] = WatermarkOptions
    STATEFUL: ClassVar[bool] = False

    def __init__(self, options: WatermarkOptions) -> None:
        self._options = options

    def problems(self) -> list[str]:
        return duration_problems("watermark", self._options.delay)

    def row_by_row(self, base_dir: Path) -> bool:
        return True

    def apply(self, frame: DataFrame, context: StepContext) -> DataFrame:
        return with_watermark(frame, self._options.time, self._options.delay, context)
