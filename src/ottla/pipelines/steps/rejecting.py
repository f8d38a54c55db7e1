"""Rows that fail: set aside for the dead-letter topic, or a reason to stop."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ottla.pipelines.frames import BAD_RECORD, HIDDEN, MARK, MARK_TYPE, ORIGIN, ORIGIN_TYPE
from ottla.pipelines.steps.base import StepContext

FAILURE = "__step_failure"
"""Why a step rejects a row; null for the others. Only there inside a step."""


ROW = "__step_row"
"""The failed row as JSON, where the step itself says how it was; else all its columns are shown."""


def split_failed(flagged: DataFrame, context: StepContext) -> DataFrame:
    """The rows whose `__step_failure` is null, without that column. The others are rejected, or stop the query; where
    rows are marked, all of them, and those that failed now have their mark."""
    failure = sf.col(FAILURE)
    shown = sf.col(ROW) if ROW in flagged.columns else as_json(flagged)
    if context.marking:
        why = sf.struct(sf.lit(context.label).alias("step"), failure.alias("error"), shown.alias("row"))
        failed_now = sf.when(failure.isNotNull(), why.cast(MARK_TYPE))
        return flagged.withColumn(MARK, sf.coalesce(sf.col(MARK), failed_now)).drop(FAILURE, ROW)
    if context.reject is None:
        message = sf.concat(sf.lit(f"{BAD_RECORD} step {context.label}: "), failure, sf.lit("; the row: "), shown)
        passes = sf.when(failure.isNull(), True).otherwise(sf.raise_error(message).cast("boolean"))
        return flagged.filter(passes).drop(FAILURE, ROW)
    flagged = context.keep(flagged)
    context.reject(
        flagged.filter(failure.isNotNull()).select(
            origin_of(flagged).alias("origin"),
            sf.lit(context.label).alias("step"),
            failure.alias("error"),
            shown.alias("row"),
        )
    )
    return flagged.filter(failure.isNull()).drop(FAILURE, ROW)


def passes(condition: Column, context: StepContext) -> Column:
    """The condition of a filter that marked rows pass whatever it says."""
    return sf.col(MARK).isNotNull() | condition if context.marking else condition


def carried(frame: DataFrame) -> list[Column]:
    """What goes along with a row although the user does not name it."""
    return [sf.col(name) for name in (ORIGIN, MARK) if name in frame.columns]


def origin_of(frame: DataFrame) -> Column:
    """Where each row came from; null where rows were made of several, as by a window."""
    return sf.col(ORIGIN) if ORIGIN in frame.columns else sf.lit(None).cast(ORIGIN_TYPE)


def as_json(frame: DataFrame) -> Column:
    names = [name for name in frame.columns if name not in {*HIDDEN, FAILURE}]
    return sf.to_json(sf.struct(*(sf.col(f"`{name}`") for name in names)))
