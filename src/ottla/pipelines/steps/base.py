"""What a step is. A step is chosen by its `KIND`, the key of its entry (`- sql: SELECT ...` is kind `sql`).

`Options` is a msgspec struct with `forbid_unknown_fields`. Where the kind's value is a mapping, it is the options:
`- expect: {rule: ...}` becomes `Options(rule=...)`. Else the whole entry is, the kind's own key too:
`- {python: enrich:add, returns: ...}` becomes `Options(python="enrich:add", returns=...)`. The keys `name` (how
messages call the step), `as` (a name for its result) and `from` (its input, if not the step before it) are the core's.
A package brings its own through the entry point group `ottla.steps`.

Steps before the last stateful one run inside the streaming plan, and so do those after it that look at each row by
itself (`row_by_row`). The rest runs on each batch as a static frame, so a step must not ask which of the two it is in
unless Spark itself differs there (`context.streaming`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pyspark.sql import DataFrame, SparkSession

INPUT = "input"
"""What the result of the step before (or the only source) is called in `StepContext.tables`, besides its own name."""


def _as_it_is(frame: DataFrame) -> DataFrame:
    return frame


@dataclass(frozen=True, kw_only=True)
class StepContext:
    spark: SparkSession
    pipeline: str
    label: str
    """How messages and dead letters name the step: its `name`, or its number and kind (`2 sql`)."""
    base_dir: Path
    streaming: bool
    tables: Mapping[str, DataFrame]
    """Every frame that has a name here: sources, tables, steps with `as`, and the step's own input as `input`."""
    reject: Callable[[DataFrame], None] | None
    """Takes rows that failed, in the schema `frames.REJECTED`. None: there is no dead-letter topic, so failing rows
    must stop the query with a message that names the row."""
    marking: bool = False
    """Rows that failed stay in the frame, with `frames.MARK` set. Only steps that say `row_by_row` see such rows, and
    pass them on; `rejecting.split_failed` and `rejecting.passes` know how."""
    set_aside: Callable[[DataFrame], DataFrame] = field(default=_as_it_is)
    """The frame without its marked rows, for a step that cannot pass them on after all."""
    keep: Callable[[DataFrame], DataFrame] = field(default=_as_it_is)
    """Call it on a frame that is used twice (once for good rows, once for rejected ones) and go on with what it
    returns: it is persisted until the batch ends where that is possible, and the same frame inside a streaming plan."""


class Step(Protocol):
    """One that looks at each row by itself, in a stream as in a batch, and passes on rows that are marked as rejected
    (`StepContext.marking`) also has

    def row_by_row(self, base_dir: Path) -> bool: ...

    Such steps are planned once, in the stream; all others get a frame without marked rows, batch by batch unless they
    are stateful.

    A stateful step that makes rows only of rows that come, and none when the watermark moves, has
    QUIET_WITHOUT_ROWS = True: a query whose stateful steps are all like that runs no batches without records.
    """

    KIND: ClassVar[str]
    Options: ClassVar[type[Any]]
    STATEFUL: ClassVar[bool]
    """Must be inside the streaming plan. May also be a property, where the options decide."""

    def __init__(self, options: Any) -> None: ...

    def problems(self) -> list[str]: ...

    def apply(self, frame: DataFrame, context: StepContext) -> DataFrame: ...
