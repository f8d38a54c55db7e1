"""`map`: columns from expressions.

    - map: {columns: {gross: amount * 1.2, item: upper(item)}}

A column that exists is replaced, others are added; each expression sees the row as it came in. With `only: true` the
columns named are all that is left. A row for which an expression fails (a division by zero, an overflow, a cast) is
rejected, alone.
"""

from pathlib import Path
from typing import ClassVar

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from ottla.pipelines.steps.attempting import VALUE, attempt, can_fail, why_not
from ottla.pipelines.steps.base import StepContext
from ottla.pipelines.steps.expressions import checked_frame
from ottla.pipelines.steps.rejecting import FAILURE, ROW, as_json, carried, split_failed

_NEW = "__new_"


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

    def row_by_row(self, base_dir: Path) -> bool:
        return True

    def apply(self, frame: DataFrame, context: StepContext) -> DataFrame:
        risky = {name for name, text in self._options.columns.items() if can_fail(frame, text)}
        if not risky:
            return checked_frame(lambda: self._mapped(frame), context)
        flagged = checked_frame(lambda: self._attempted(frame, risky), context)
        return self._named(split_failed(flagged, context), frame, risky)

    def _mapped(self, frame: DataFrame) -> DataFrame:
        columns = {name: sf.expr(text) for name, text in self._options.columns.items()}
        if not self._options.only:
            return frame.withColumns(columns)
        return frame.select(*(column.alias(name) for name, column in columns.items()), *carried(frame))

    def _attempted(self, frame: DataFrame, risky: set[str]) -> DataFrame:
        """The row as it came in, the new columns beside it, and why there is one that could not be computed."""
        columns = self._options.columns
        made = {_NEW + name: attempt(frame, text) if name in risky else sf.expr(text) for name, text in columns.items()}
        reasons = [
            sf.when(sf.col(f"`{_NEW}{name}`").isNull(), sf.lit(f"`{name}`: {why_not(columns[name])}"))
            for name in columns
            if name in risky
        ]
        failure = sf.nullif(sf.concat_ws("; ", *reasons), sf.lit(""))
        flagged = frame.withColumns(made).withColumn(FAILURE, failure)
        return flagged.withColumn(ROW, sf.when(sf.col(FAILURE).isNotNull(), as_json(frame)))

    def _named(self, good: DataFrame, frame: DataFrame, risky: set[str]) -> DataFrame:
        made = {
            name: sf.col(f"`{_NEW}{name}`")[VALUE] if name in risky else sf.col(f"`{_NEW}{name}`")
            for name in self._options.columns
        }
        if self._options.only:
            return good.select(*(column.alias(name) for name, column in made.items()), *carried(good))
        kept = {name: sf.col(f"`{name}`") for name in frame.columns}
        return good.select(*(column.alias(name) for name, column in {**kept, **made}.items()))
