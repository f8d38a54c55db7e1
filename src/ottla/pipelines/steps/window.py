"""`window`: sums, counts and other aggregates over windows of event time.

    - window: {time: at, size: 10 minutes, group_by: [item], aggregates: {total: sum(amount)}, watermark: 5 minutes}

`size` alone makes tumbling windows, `size` with `slide` sliding ones, `gap` sessions: a session ends when so long
nothing came. Rows of the result have `window_start`, `window_end`, the columns of `group_by` and the aggregates.

A window's row comes once, when the watermark has passed its end (`emit: final`), or each time that it changes
(`emit: updates`; then write it where a new row replaces the old one, by key). The watermark moves between batches: a
window closes in the batch after the one that moved it, and from the batch after that its rows are late. Late rows are
passed over and counted (`ottla pipeline status`), as Spark counts them: those of one window, group and task as one.
Over history every window is final and nothing is late.
"""

from typing import ClassVar, Literal

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ottla.pipelines.durations import seconds_of
from ottla.pipelines.steps.base import StepContext
from ottla.pipelines.steps.columns import require_columns
from ottla.pipelines.steps.event_time import duration_problems, spark_duration, with_watermark
from ottla.pipelines.steps.expressions import checked_frame

START = "window_start"
END = "window_end"
_WINDOW = "__window"


class WindowOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    time: str
    """The column of event time."""
    aggregates: dict[str, str]
    """Names, and SQL aggregates: `total: sum(amount)`."""
    size: str | None = None
    """How long a window is."""
    slide: str | None = None
    """How far apart windows begin; without it each begins where the last one ended."""
    gap: str | None = None
    """For sessions: how long nothing comes before one ends."""
    group_by: list[str] = []
    """Columns that rows of one result have in common."""
    watermark: str | None = None
    """How late rows may come; not needed after a `watermark` step."""
    emit: Literal["final", "updates"] = "final"


class WindowStep:
    KIND: ClassVar[str] = "window"
    Options: ClassVar[type[WindowOptions]] = WindowOptions
    STATEFUL: ClassVar[bool] = True

    def __init__(self, options: WindowOptions) -> None:
        self._options = options
        if options.emit == "updates":
            self.OUTPUT_MODE = "update"
            self.QUIET_WITHOUT_ROWS = True

    def problems(self) -> list[str]:
        options = self._options
        problems = [
            problem
            for what in ("size", "slide", "gap", "watermark")
            for problem in duration_problems(what, getattr(options, what))
        ]
        if (options.size is None) == (options.gap is None):
            problems.append("write `size` for windows of one length, or `gap` for sessions: one of the two")
        if options.slide is not None and options.size is None:
            problems.append("`slide` goes with `size`")
        if not problems and options.slide and options.size and seconds_of(options.slide) > seconds_of(options.size):
            problems.append("`slide` is longer than `size`: rows between two windows would be in none")
        if options.gap is not None and options.emit == "updates":
            problems.append("sessions come when they are over: `emit: updates` is for windows with `size`")
        if not options.aggregates:
            problems.append("`aggregates` names nothing: write for instance `aggregates: {orders: count(*)}`")
        taken = {START, END, *options.group_by}
        problems.extend(f"`{name}` is named twice in the result" for name in options.aggregates if name in taken)
        return problems

    def apply(self, frame: DataFrame, context: StepContext) -> DataFrame:
        options = self._options
        require_columns(frame, options.group_by, context)
        timed = with_watermark(frame, options.time, options.watermark, context)
        groups = [sf.col(f"`{name}`") for name in options.group_by]

        def build() -> DataFrame:
            aggregates = [sf.expr(text).alias(name) for name, text in options.aggregates.items()]
            grouped = timed.groupBy(self._window().alias(_WINDOW), *groups).agg(*aggregates)
            bounds = [sf.col(f"{_WINDOW}.start").alias(START), sf.col(f"{_WINDOW}.end").alias(END)]
            return grouped.select(*bounds, *groups, *(sf.col(f"`{name}`") for name in options.aggregates))

        return checked_frame(build, context)

    def _window(self) -> Column:
        options = self._options
        time = sf.col(f"`{options.time}`")
        if options.gap is not None:
            return sf.session_window(time, spark_duration(options.gap))
        assert options.size is not None, "problems() has asked for it"
        slide = spark_duration(options.slide) if options.slide else None
        return sf.window(time, spark_duration(options.size), slide)
