"""Expressions of pipeline files: Spark's complaints about them name the step."""

from collections.abc import Callable

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from ottla.pipelines.errors import FatalFailure
from ottla.pipelines.steps.base import StepContext


def checked_frame(build: Callable[[], DataFrame], context: StepContext) -> DataFrame:
    """What `build` makes, analysed. Spark knows the columns, so it says best what is wrong with an expression."""
    try:
        frame = build()
        frame.schema  # noqa: B018 - reading it analyses the frame
    except (AnalysisException, ParseException) as refused:
        raise FatalFailure(f"step {context.label}: {refused.getMessage() or refused}") from refused
    return frame


def parsed_schema(text: str, context: StepContext) -> StructType:
    try:
        schema = StructType.fromDDL(text)
    except (AnalysisException, ParseException) as refused:
        raise FatalFailure(f"step {context.label}: `{text}` is not a schema: {refused.getMessage()}") from refused
    if not isinstance(schema, StructType):
        raise FatalFailure(f"step {context.label}: `{text}` names no columns: write `name TYPE, name TYPE`")
    return schema
