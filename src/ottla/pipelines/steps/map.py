"""`map`: columns from expressions.

    - map: {columns: {gross: amount * 1.2, item: upper(item)}}

A column that exists is replaced, others are added; each expression sees the row as it came in. With `only: true` the
columns named are all that is left.
"""

from typing import ClassVar

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from ottla.pipelines.frames import ORIGIN
from ottla.pipelines.steps.base import StepContext
from ottla.pipelines.steps.expressions import checked_frame


class MapOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    columns: dict[str, str]
    """Names, and the SQL expressions that they get."""
    only: bool = False
    """Leave out the columns that are not named."""


class MapStep:
    KIND: ClassVar[str] = "map"
    Options: ClassVar[type[MapOptions]] = MapOptions
    STATEFUL: ClassVar[bool] = False

    def __init__(self, options: MapOptions) -> None:
        self._options = options

    def problems(self) -> list[str]:
        if not self._options.columns:
            return ["`columns` names nothing: write for instance `columns: {gross: amount * 1.2}`"]
        return [f"`{name}` has no expression" for name, text in self._options.columns.items() if not text.strip()]

    def apply(self, frame: DataFrame, context: StepContext) -> DataFrame:
        return checked_frame(lambda: self._mapped(frame), context)

    def _mapped(self, frame: DataFrame) -> DataFrame:
        columns = {name: sf.expr(text) for name, text in self._options.columns.items()}
        if not self._options.only:
            return frame.withColumns(columns)
        kept = [sf.col(ORIGIN)] if ORIGIN in frame.columns else []
        return frame.select(*(column.alias(name) for name, column in columns.items()), *kept)
