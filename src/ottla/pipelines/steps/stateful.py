"""`stateful`: rows through a class of yours that keeps state for each key, with timers and expiry.

    - {stateful: "tracking:Visits", group_by: [user], schema: "user STRING, visits BIGINT", timers: event}

The class derives from `pyspark.sql.streaming.stateful_processor.StatefulProcessor`: `init(handle)` gets its state
(values, lists, maps, each with a time to live if wanted), `handleInputRows(key, rows, timer_values)` gets the rows of a
key and yields rows of `schema`, `handleExpiredTimer(...)` is called when a timer is due. `arguments` are given to its
constructor. It is looked for beside the pipeline file, and sent to the executors by value.

State lives in RocksDB beside the checkpoint, because Spark keeps this kind nowhere else. An exception in the class
stops the query, and the message names the key and the line: the state may have changed by then, so a row cannot be set
aside alone. The query is tried again, as `errors` says, from the state as it was before the batch.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Literal

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from ottla.pipelines.errors import FatalFailure, PipelineError
from ottla.pipelines.frames import without_origin
from ottla.pipelines.steps.base import StepContext
from ottla.pipelines.steps.columns import require_columns
from ottla.pipelines.steps.event_time import duration_problems, with_watermark
from ottla.pipelines.steps.expressions import checked_frame, parsed_schema
from ottla.pipelines.steps.user_code import explain, load, reference_problems

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_TIME_MODES = {"none": "None", "processing": "ProcessingTime", "event": "EventTime"}


class StatefulOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    stateful: str
    """module:Class"""
    group_by: list[str]
    """The columns that make the key."""
    schema: str
    """All columns of the result, as DDL."""
    timers: Literal["none", "processing", "event"] = "none"
    """What timers go by: not used, the clock (state can expire then, too), or the watermark."""
    time: str | None = None
    """The column of event time, for `timers: event`."""
    watermark: str | None = None
    """How late rows may come; not needed after a `watermark` step."""
    emit: Literal["append", "update"] = "append"
    """Whether a row of the result adds to those before it or replaces the one of its key."""
    arguments: dict[str, Any] = {}
    """For the class's constructor, by name."""


class StatefulStep:
    KIND: ClassVar[str] = "stateful"
    Options: ClassVar[type[StatefulOptions]] = StatefulOptions
    STATEFUL: ClassVar[bool] = True

    def __init__(self, options: StatefulOptions) -> None:
        self._options = options
        self.GOES_BY_THE_CLOCK = options.timers == "processing"
        if options.emit == "update":
            self.OUTPUT_MODE = "update"

    def problems(self) -> list[str]:
        options = self._options
        problems = reference_problems(options.stateful, "Class") + duration_problems("watermark", options.watermark)
        if not options.group_by:
            problems.append("`group_by` names no column, and state is kept by key")
        if (options.timers == "event") != (options.time is not None):
            problems.append("`time` and `timers: event` go together: name the column of event time")
        if options.watermark is not None and options.time is None:
            problems.append("`watermark` needs `time`: the column of event time")
        return problems

    def apply(self, frame: DataFrame, context: StepContext) -> DataFrame:
        options = self._options
        require_columns(frame, options.group_by, context)
        if options.time is not None:
            frame = with_watermark(frame, options.time, options.watermark, context)
        processor = self._processor(context)
        schema = parsed_schema(options.schema, context)
        if context.streaming:
            context.spark.conf.set(_PROVIDER, _ROCKSDB)
        grouped = without_origin(frame).groupBy(*options.group_by)
        mode = "Update" if options.emit == "update" else "Append"
        return checked_frame(
            lambda: grouped.transformWithState(processor, schema, mode, _TIME_MODES[options.timers]), context
        )

    def _processor(self, context: StepContext) -> StatefulProcessor:
        reference = self._options.stateful
        processor_type = load(reference, context.base_dir, context.label)
        if not (isinstance(processor_type, type) and issubclass(processor_type, StatefulProcessor)):
            raise FatalFailure(
                f"step {context.label}: `{reference}` is not a class that derives from "
                "pyspark.sql.streaming.stateful_processor.StatefulProcessor"
            )
        try:
            return _ExplainedProcessor(
                processor_type(**self._options.arguments), f"step {context.label}: `{reference}`"
            )
        except Exception as error:  # the user's constructor
            raise FatalFailure(f"step {context.label}: `{reference}` cannot be made: {explain(error)}") from error


class ClassFailed(PipelineError):
    """The user's class raised; the message says where, for which key, and what can be done."""


class _ExplainedProcessor(StatefulProcessor):
    """The user's class, whose exceptions tell the step and the key."""

    def __init__(self, processor: StatefulProcessor, who: str) -> None:
        self._processor = processor
        self._who = who

    def init(self, handle: StatefulProcessorHandle) -> None:
        with self._telling("when it was set up"):
            self._processor.init(handle)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        with self._telling(f"for the key {_shown(key)}"):
            yield from self._processor.handleInputRows(key, rows, timerValues)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: Any,  # noqa: N803
        expiredTimerInfo: Any,  # noqa: N803
    ) -> Iterator[Any]:
        with self._telling(f"when a timer of the key {_shown(key)} was due"):
            yield from self._processor.handleExpiredTimer(key, timerValues, expiredTimerInfo)

    def close(self) -> None:
        self._processor.close()

    @contextmanager
    def _telling(self, when: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise ClassFailed(
                f"{self._who} raised {explain(error)} {when}. Its rows cannot be set aside, because their state may "
                "have changed: catch it in the class, or reject such rows in a step before (`expect`, `python`)"
            ) from error


def _shown(key: Any) -> str:
    return ", ".join(f"{value!r:.60}" for value in key)
