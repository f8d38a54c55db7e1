"""Arrow's columns as rows of Python's values, and back: only what a function has changed is made anew."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from ottla.spark.kernel.arrow import Column

Row = dict[str, Any]


class GivenRows:
    """The rows of a batch as dicts."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self._names = batch.schema.names
        self._values = {name: values_of(batch.column(name)) for name in self._names}

    def __iter__(self) -> Iterator[tuple[Row, tuple[Any, ...]]]:
        """Each row with its values, which tell later whether somebody has changed the dict."""
        if not self._names:
            yield from (({}, ()) for _ in range(self.batch.num_rows))
        for values in zip(*self._values.values(), strict=True):
            yield dict(zip(self._names, values, strict=True)), values

    def value(self, name: str, index: int) -> Any:
        return self._values[name][index] if name in self._values else None

    def whole(self, index: int, changes: Mapping[str, Any]) -> Row:
        return {**{name: values[index] for name, values in self._values.items()}, **changes}

    def column(self, field: "pa.Field[Any]", made: "LaidOver") -> Column:
        """The column of all rows in `made`, taken over as it is where nothing was laid over it."""
        name = field.name
        if name not in made.touched and name in self._values:
            given = self.batch.column(name)
            if given.type == field.type and not types.is_nested(field.type):  # what is inside can change unnoticed
                return taken(given, made.indexes)
        pairs = zip(made.indexes, made.changes, strict=True)
        values = [changes[name] if name in changes else self.value(name, index) for index, changes in pairs]
        column: Column = pa.array(values, field.type)
        return column


class LaidOver:
    """What a function made of rows: for each result the row that it came from, and what is other than there."""

    def __init__(self) -> None:
        self.indexes: list[int] = []
        self.changes: list[Mapping[str, Any]] = []
        self.touched: set[str] = set()

    def add(self, index: int, changes: Mapping[str, Any]) -> None:
        self.indexes.append(index)
        self.changes.append(dict(changes))  # whoever made it may use it again
        if not changes.keys() <= self.touched:
            self.touched.update(changes)

    def without(self, indexes: set[int]) -> "LaidOver":
        """A row is given up with all that came of it: half of it would be lost for good."""
        kept = LaidOver()
        for index, changes in zip(self.indexes, self.changes, strict=True):
            if index not in indexes:
                kept.add(index, changes)
        return kept


def taken(column: Column, indexes: Sequence[int]) -> Column:
    """These rows of it; the column itself if that is all of them."""
    return column if indexes == list(range(len(column))) else column.take(pa.array(indexes, pa.int64()))


def values_of(column: Column) -> Sequence[Any]:
    """As `to_pylist`; which takes microseconds for each moment, where this takes tenths."""
    kind: Any = column.type
    if types.is_timestamp(kind) and kind.unit == "us" and kind.tz == "UTC":
        epoch: Any = pa.scalar(0, kind).as_py()
        naive: list[Any] = np.asarray(column.cast(pa.timestamp("us"))).tolist()
        if not any(isinstance(moment, int) for moment in naive):  # as numpy has those that no calendar has
            return [moment if moment is None else moment.replace(tzinfo=epoch.tzinfo) for moment in naive]
    if types.is_nested(kind):
        return column.to_pylist(maps_as_pydicts="lossy")
    return column.to_pylist()
