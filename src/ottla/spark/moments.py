"""Times of rows that were collected: PySpark gives them without a zone, as the clock of this machine shows them."""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC
from typing import Any

from pyspark.sql import Row
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, TimestampType

Change = Callable[[Any], Any]


def in_utc(rows: Iterable[Row], schema: StructType) -> Iterator[Row]:
    """Rows whose TIMESTAMPs say where they are: in UTC. A TIMESTAMP_NTZ has no zone, and gets none."""
    change = _change(schema)
    return iter(rows) if change is None else map(change, rows)


def _change(kind: DataType) -> Change | None:
    """None where nothing in such a value is a time."""
    if isinstance(kind, TimestampType):
        return _or_none(lambda moment: moment.astimezone(UTC))
    if isinstance(kind, ArrayType):
        of_item = _change(kind.elementType)
        return of_item and _or_none(lambda items: [of_item(item) for item in items])
    if isinstance(kind, MapType):
        of_key, of_value = _change(kind.keyType), _change(kind.valueType)
        if of_key is None and of_value is None:
            return None
        key_of, value_of = of_key or _same, of_value or _same
        return _or_none(lambda found: {key_of(key): value_of(value) for key, value in found.items()})
    return _of_a_row(kind) if isinstance(kind, StructType) else None


def _of_a_row(kind: StructType) -> Change | None:
    changes = [_change(field.dataType) for field in kind.fields]
    if not any(changes):
        return None
    in_turn = [change or _same for change in changes]
    make = Row(*kind.names)
    return _or_none(lambda row: make(*(change(value) for change, value in zip(in_turn, row, strict=True))))


def _same(value: Any) -> Any:
    return value


def _or_none(change: Change) -> Change:
    return lambda value: None if value is None else change(value)
