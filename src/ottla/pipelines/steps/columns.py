"""`select`, `drop`, `rename` and `cast`: which columns a row has, and their types.

    - select: [id, amount]
    - drop: [internal_note]
    - rename: {columns: {ts: at}}
    - cast: {columns: {amount: "DECIMAL(10,2)", at: TIMESTAMP}}

A name that is not there is an error. A value that a `cast` cannot turn into the type rejects its row.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ottla.pipelines.errors import FatalFailure
from ottla.pipelines.frames import HIDDEN
from ottla.pipelines.steps.base import StepContext
from ottla.pipelines.steps.expressions import checked_frame
from ottla.pipelines.steps.rejecting import FAILURE, ROW, as_json, carried, split_failed


class SelectOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    select: list[str]
    """The columns that stay, in this order."""


class DropOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    drop: list[str]
    """The columns that go."""


class RenameOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    columns: dict[str, str]
    """Names as they are, and as they shall be."""


class CastOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    columns: dict[str, str]
    """Names, and their new types."""


class SelectStep:
    KIND: ClassVar[str] = "select"
    Options: ClassVar[type[SelectOptions]] = SelectOptions
    STATEFUL: ClassVar[bool] = False

    def __init__(self, options: SelectOptions) -> None:
        self._names = options.select

    def problems(self) -> list[str]:
        return [] if self._names else ["no column is named, so nothing would be left"]

    def row_by_row(self, base_dir: Path) -> bool:
        return True

    def apply(self, frame: DataFrame, context: StepContext) -> DataFrame:
        require_columns(frame, self._names, context)
        return frame.select(*(f"`{name}`" for name in self._names), *carried(frame))


class DropStep:
    KIND: ClassVar[str] = "drop"
    Options: ClassVar[type[DropOptions]] = DropOptions
    STATEFUL: ClassVar[bool] = False

    def __init__(self, options: DropOptions) -> None:
        self._names = options.drop

    def problems(self) -> list[str]:
        return [] if self._names else ["no column is named"]

    def row_by_row(self, base_dir: Path) -> bool:
        return True

    def apply(self, frame: DataFrame, context: StepContext) -> DataFrame:
        require_columns(frame, self._names, context)
        return frame.drop(*self._names)


class RenameStep:
    KIND: ClassVar[str] = "rename"
    Options: ClassVar[type[RenameOptions]] = RenameOptions
    STATEFUL: ClassVar[bool] = False

    def __init__(self, options: RenameOptions) -> None:
        self._names = options.columns

    def problems(self) -> list[str]:
        return [] if self._names else ["`columns` names nothing: write `columns: {old: new}`"]

    def row_by_row(self, base_dir: Path) -> bool:
        return True

    def apply(self, frame: DataFrame, context: StepContext) -> DataFrame:
        require_columns(frame, self._names, context)
        result = frame.withColumnsRenamed(self._names)
        twice = sorted({name for name in result.columns if result.columns.count(name) > 1})
        if twice:
            raise FatalFailure(f"step {context.label}: there would be two columns `{twice[0]}`: drop one before")
        return result


class CastStep:
    KIND: ClassVar[str] = "cast"
    Options: ClassVar[type[CastOptions]] = CastOptions
    STATEFUL: ClassVar[bool] = False

    def __init__(self, options: CastOptions) -> None:
        self._types = options.columns

    def problems(self) -> list[str]:
        return [] if self._types else ["`columns` names nothing: write `columns: {amount: DOUBLE}`"]

    def row_by_row(self, base_dir: Path) -> bool:
        return True

    def apply(self, frame: DataFrame, context: StepContext) -> DataFrame:
        require_columns(frame, self._types, context)
        return split_failed(checked_frame(lambda: self._cast(frame), context), context)

    def _cast(self, frame: DataFrame) -> DataFrame:
        failures = [self._failure(name, kind) for name, kind in self._types.items()]
        failure = sf.nullif(sf.concat_ws("; ", *failures), sf.lit(""))
        cast = {name: sf.col(f"`{name}`").try_cast(kind) for name, kind in self._types.items()}
        return frame.withColumns({**cast, FAILURE: failure, ROW: as_json(frame)})

    def _failure(self, name: str, kind: str) -> Column:
        value = sf.col(f"`{name}`")
        message = sf.concat(sf.lit(f"`{name}`: "), _shown(value), sf.lit(f" is not {kind}"))
        return sf.when(value.isNotNull() & value.try_cast(kind).isNull(), message)


def _shown(value: Column) -> Column:
    return sf.substring(sf.coalesce(value.try_cast("string"), sf.lit("the value")), 1, 60)


def require_columns(frame: DataFrame, names: Iterable[str], context: StepContext) -> None:
    present = [name for name in frame.columns if name not in HIDDEN]
    for name in names:
        if name not in present:
            raise FatalFailure(f"step {context.label}: there is no column `{name}`; there are {', '.join(present)}")
