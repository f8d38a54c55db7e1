"""Event time: how late rows may come, said once for a column."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import TimestampNTZType, TimestampType

from ottla.pipelines.durations import seconds_of
from ottla.pipelines.errors import FatalFailure
from ottla.pipelines.frames import MARK
from ottla.pipelines.steps.base import StepContext
from ottla.pipelines.steps.columns import require_columns

# How Spark marks a column that has a watermark.
_DELAY_KEY = "spark.watermarkDelayMs"


def duration_problems(what: str, text: str | None) -> list[str]:
    if text is None:
        return []
    try:
        seconds = seconds_of(text)
    except ValueError as wrong:
        return [f"{what}: {wrong}"]
    return [] if seconds > 0 or what == "watermark" else [f"{what}: `{text}` is no time at all"]


def spark_duration(text: str) -> str:
    return f"{round(seconds_of(text) * 1000)} milliseconds"


def with_watermark(frame: DataFrame, column: str, delay: str | None, context: StepContext) -> DataFrame:
    """The frame with a watermark on `column`, unless it has it; with `delay` None it must have one in a stream."""
    require_time(frame, column, context)
    frame = timeless_marked(frame, column)
    set_ms = frame.schema[column].metadata.get(_DELAY_KEY)
    if delay is None:
        if context.streaming and set_ms is None:
            raise FatalFailure(
                f"step {context.label}: `{column}` has no watermark, so a stream would keep everything for ever: "
                "say how late rows may be in `watermark`, or put a `watermark` step before"
            )
        return frame
    wanted_ms = round(seconds_of(delay) * 1000)
    if set_ms is None:
        return frame.withWatermark(column, spark_duration(delay))
    if set_ms != wanted_ms:
        raise FatalFailure(
            f"step {context.label}: `{column}` has a watermark of {set_ms / 1000:g} seconds already, and "
            f"`{delay}` is another: a stream has one, so leave it out here"
        )
    return frame


def timeless_marked(frame: DataFrame, column: str) -> DataFrame:
    """Rows that are marked as rejected have no event time: they neither move the watermark nor come late for it."""
    if MARK not in frame.columns:
        return frame
    time = sf.when(sf.col(MARK).isNull(), sf.col(f"`{column}`")).alias(column, metadata=frame.schema[column].metadata)
    return frame.select(*(time if name == column else sf.col(f"`{name}`") for name in frame.columns))


def require_time(frame: DataFrame, column: str, context: StepContext) -> None:
    require_columns(frame, [column], context)
    kind = frame.schema[column].dataType
    if not isinstance(kind, TimestampType | TimestampNTZType):
        raise FatalFailure(
            f"step {context.label}: `{column}` is {kind.simpleString().upper()}, and event time is a TIMESTAMP: "
            "cast it in a step before"
        )
