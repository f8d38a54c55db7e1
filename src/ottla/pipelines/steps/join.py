"""`join`: rows of another frame beside those of this one.

    - join: {with: customers, on: customer_id, type: left}
    - join: {with: payments, on: {id: order_id}, time: at, with_time: paid_at, within: 1 hour, watermark: 10 minutes}

With a table (an entry of `tables`, or any frame that is no stream) each row meets the table as it is when its batch
runs, a compacted topic as the last value of each key, without those that were deleted. Of a topic only what is new
since the batch before is read, as long as it fits into 64 MB of memory; other tables are read anew for every batch.

Two streams are joined in event time: rows meet if their keys are equal and their times at most `within` apart (`order:
after` means that the other row is not the earlier one, `before` that it is not the later one). Both need a watermark;
it says how long rows wait for each other. With `type: left` a row that nothing met comes out alone, once nothing can
meet it any more.

Columns of the other frame that are no keys are added, all or those in `columns`, with `prefix` before their names.
"""

from pathlib import Path
from typing import ClassVar, Literal

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ottla.pipelines.durations import seconds_of
from ottla.pipelines.errors import FatalFailure
from ottla.pipelines.frames import MARK, without_origin
from ottla.pipelines.steps.base import StepContext
from ottla.pipelines.steps.columns import require_columns
from ottla.pipelines.steps.event_time import duration_problems, with_watermark
from ottla.pipelines.steps.rejecting import passes

_OTHER = "__other_"
_MET = "__met"


class JoinOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    with_: str = msgspec.field(name="with")
    """The other frame."""
    on: str | list[str] | dict[str, str]
    """Columns that are equal; as a mapping, this frame's names and the other's."""
    type: Literal["inner", "left"] = "inner"
    columns: list[str] | None = None
    """The other frame's columns to add; all, if none are named."""
    prefix: str = ""
    """What to put before their names."""
    time: str | None = None
    """For two streams: this one's column of event time."""
    with_time: str | None = None
    """The other one's; the same name if not given."""
    within: str | None = None
    """How far apart the times of rows that meet may be."""
    order: Literal["any", "after", "before"] = "any"
    """Where the other row may lie in time."""
    watermark: str | None = None
    """How late rows of either stream may come; not needed after `watermark` steps."""


class JoinStep:
    KIND: ClassVar[str] = "join"
    Options: ClassVar[type[JoinOptions]] = JoinOptions

    def __init__(self, options: JoinOptions) -> None:
        self._options = options
        self.STATEFUL = options.within is not None

    def problems(self) -> list[str]:
        options = self._options
        problems = duration_problems("within", options.within) + duration_problems("watermark", options.watermark)
        if not self._keys():
            problems.append("`on` names no column")
        if (options.time is None) != (options.within is None):
            problems.append("`time` and `within` go together: the column of event time, and how far apart rows may be")
        if options.within is None:
            given = [name for name in ("with_time", "watermark") if getattr(options, name) is not None]
            given += ["order"] if options.order != "any" else []
            problems += [f"`{name}` is for joins of two streams, which have `time` and `within`" for name in given]
        return problems

    def apply(self, frame: DataFrame, context: StepContext) -> DataFrame:
        options = self._options
        other = context.tables.get(options.with_)
        if other is None:
            known = ", ".join(name for name in context.tables)
            raise FatalFailure(f"step {context.label}: there is no frame `{options.with_}`; there are {known}")
        other = without_origin(other)
        keys = self._keys()
        require_columns(frame, keys, context)
        require_columns(other, [*keys.values(), *(options.columns or [])], context)
        if other.isStreaming and frame.isStreaming and options.within is None:
            raise FatalFailure(
                f"step {context.label}: `{options.with_}` is a stream too: say in `time` and `within` which rows meet, "
                "or make it an entry of `tables`"
            )
        if options.time is not None:
            frame = with_watermark(frame, options.time, options.watermark, context)
            other = with_watermark(other, options.with_time or options.time, options.watermark, context)
        added = self._added(frame, other, context)
        hidden = other.select(*(sf.col(f"`{name}`").alias(_OTHER + name) for name in other.columns))
        joined = self._joined(frame, hidden, context)
        kept = [sf.col(f"`{name}`") for name in frame.columns]
        return joined.select(*kept, *(sf.col(f"`{_OTHER}{name}`").alias(new) for name, new in added.items()))

    def row_by_row(self, base_dir: Path) -> bool:
        return not self.STATEFUL

    def _joined(self, frame: DataFrame, other: DataFrame, context: StepContext) -> DataFrame:
        if not context.marking:
            return frame.join(other, self._condition(), "left_outer" if self._options.type == "left" else "inner")
        condition = sf.col(MARK).isNull() & self._condition()  # a marked row meets nothing, and stays
        if self._options.type == "left":
            return frame.join(other, condition, "left_outer")
        joined = frame.join(other.withColumn(_MET, sf.lit(True)), condition, "left_outer")
        return joined.filter(passes(sf.col(_MET), context))

    def _keys(self) -> dict[str, str]:
        on = self._options.on
        if isinstance(on, str):
            return {on: on} if on.strip() else {}
        return on if isinstance(on, dict) else {name: name for name in on}

    def _added(self, frame: DataFrame, other: DataFrame, context: StepContext) -> dict[str, str]:
        options = self._options
        keys = set(self._keys().values())
        no_keys = [name for name in other.columns if name not in keys]
        chosen = options.columns if options.columns is not None else no_keys
        added = {name: options.prefix + name for name in chosen}
        clash = [new for new in added.values() if new in frame.columns]
        if clash:
            raise FatalFailure(
                f"step {context.label}: both frames have a column `{clash[0]}`: name those to add in `columns`, "
                f"or say what to put before them in `prefix` (for instance `{options.with_}_`)"
            )
        return added

    def _condition(self) -> Column:
        conditions = [sf.col(f"`{mine}`") == sf.col(f"`{_OTHER}{theirs}`") for mine, theirs in self._keys().items()]
        options = self._options
        if options.within is not None:
            mine, theirs = f"`{options.time}`", f"`{_OTHER}{options.with_time or options.time}`"
            span = f"INTERVAL {round(seconds_of(options.within) * 1000)} MILLISECONDS"
            earliest = mine if options.order == "after" else f"{mine} - {span}"
            latest = mine if options.order == "before" else f"{mine} + {span}"
            conditions.append(sf.expr(f"{theirs} >= {earliest} AND {theirs} <= {latest}"))
        together = conditions[0]
        for condition in conditions[1:]:
            together = together & condition
        return together
