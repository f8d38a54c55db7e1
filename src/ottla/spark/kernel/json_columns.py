"""JSON objects to Arrow's columns: what a kernel is told of the fields, and the memory it fills.

The kernel reads what is plain (json.c says what that is) and leaves the rest alone; nothing is lost by that, because
Spark reads what a kernel did not.
"""

import ctypes
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ottla.spark.kernel.arrow import Column, binary_column, buffer, column, view_of_binary
from ottla.spark.kernel.interface import Binary, Bytes, Int64s, Kernel, memory


class JsonKind(IntEnum):
    TEXT = 0
    INT32 = 1
    INT64 = 2
    DOUBLE = 3
    BOOLEAN = 4
    TIMESTAMP = 5
    DATE = 6
    OBJECT = 7


class JsonField(NamedTuple):
    name: str
    kind: JsonKind
    required: bool = False
    """An object where it is missing or null is not plain."""
    fields: tuple["JsonField", ...] = ()
    """Of an object."""


_ARROW: dict[JsonKind, pa.DataType] = {
    JsonKind.TEXT: pa.string(),
    JsonKind.INT32: pa.int32(),
    JsonKind.INT64: pa.int64(),
    JsonKind.DOUBLE: pa.float64(),
    JsonKind.BOOLEAN: pa.bool_(),
    JsonKind.TIMESTAMP: pa.timestamp("us", "UTC"),
    JsonKind.DATE: pa.date32(),
}
_NUMPY: dict[JsonKind, type[np.generic]] = {
    JsonKind.TEXT: np.int32,  # lengths
    JsonKind.INT32: np.int32,
    JsonKind.INT64: np.int64,
    JsonKind.DOUBLE: np.float64,
    JsonKind.BOOLEAN: np.uint8,
    JsonKind.TIMESTAMP: np.int64,
    JsonKind.DATE: np.int32,
}


class _Field(ctypes.Structure):
    _fields_: ClassVar = [
        ("name", ctypes.c_char_p),
        ("name_length", ctypes.c_int64),
        ("kind", ctypes.c_int64),
        ("required", ctypes.c_int64),
        ("inside", ctypes.c_int64),
        ("seen", ctypes.c_int64),
        ("valid_at", ctypes.c_void_p),
        ("values_at", ctypes.c_void_p),
        ("starts_at", ctypes.c_void_p),
    ]


class _FieldColumn(NamedTuple):
    """What is known of one field in all rows."""

    field: JsonField
    valid: Bytes
    values: npt.NDArray[Any]
    starts: Int64s


class JsonColumns:
    """Fields of some rows, those of an object behind it, being filled."""

    def __init__(self, fields: Sequence[JsonField], rows: int) -> None:
        self.rows = rows
        self.plain: Bytes = np.zeros(rows, np.uint8)
        self.columns = [_column(field, rows) for field in _flat(fields)]
        self._names = [each.field.name.encode() for each in self.columns]  # the structures alone keep nothing alive
        self.structures = (_Field * len(self.columns))(
            *(
                _Field(
                    name, len(name), each.field.kind, each.field.required, _inside(each.field), 0,
                    each.valid.ctypes.data, each.values.ctypes.data, each.starts.ctypes.data,
                )
                for name, each in zip(self._names, self.columns, strict=True)
            )
        )  # fmt: skip


def read_objects(kernel: Kernel, values: Column, fields: Sequence[JsonField]) -> Column:
    """Binary values as a column of structs, null where one is not plain (or null)."""
    given = view_of_binary(values)
    columns = JsonColumns(fields, given.count)
    count = kernel.read_json(given, columns)
    if not count:
        return cast("Column", cast("Any", pa).nulls(columns.rows, arrow_type(fields)))  # the stubs know no such type
    texts = {
        number: _texts(kernel, given, columns, number)
        for number, each in enumerate(columns.columns)
        if each.field.kind is JsonKind.TEXT
    }
    return _struct(fields, columns, texts, 0, columns.plain)


def arrow_type(fields: Sequence[JsonField]) -> pa.DataType:
    return pa.struct([pa.field(each.name, _type_of(each)) for each in fields])


def _type_of(field: JsonField) -> pa.DataType:
    return arrow_type(field.fields) if field.kind is JsonKind.OBJECT else _ARROW[field.kind]


def _flat(fields: Sequence[JsonField]) -> Iterator[JsonField]:
    for each in fields:
        yield each
        yield from _flat(each.fields)


def _inside(field: JsonField) -> int:
    return sum(1 for _ in _flat(field.fields))


def _column(field: JsonField, rows: int) -> _FieldColumn:
    kind = _NUMPY.get(field.kind, np.uint8)
    values = np.zeros(0 if field.kind is JsonKind.OBJECT else rows, kind)
    starts = np.zeros(rows if field.kind is JsonKind.TEXT else 0, np.int64)
    return _FieldColumn(field, np.zeros(rows, np.uint8), values, starts)


def _texts(kernel: Kernel, given: Binary, columns: JsonColumns, number: int) -> Column:
    one = columns.columns[number]
    offsets = np.zeros(columns.rows + 1, np.int32)
    np.cumsum(one.values * one.valid, out=offsets[1:])
    data = memory(int(offsets[-1]))
    kernel.json_texts(given, columns, number, offsets, data)
    bits, nulls = _validity(one.valid)
    return binary_column(pa.string(), columns.rows, offsets, data, bits, nulls)


def _validity(valid: Bytes) -> tuple[Bytes | None, int]:
    nulls = len(valid) - int(np.count_nonzero(valid))
    return (np.packbits(valid, bitorder="little") if nulls else None), nulls


def _struct(
    fields: Sequence[JsonField], columns: JsonColumns, texts: dict[int, Column], first: int, valid: Bytes
) -> Column:
    """The column of an object whose fields begin at `first`."""
    children: list[Column] = []
    number = first
    for each in fields:
        children.append(_child(each, columns, texts, number))
        number += 1 + _inside(each)
    bits, nulls = _validity(valid)
    return column(arrow_type(fields), columns.rows, [None if bits is None else buffer(bits)], nulls, children)


def _child(field: JsonField, columns: JsonColumns, texts: dict[int, Column], number: int) -> Column:
    one = columns.columns[number]
    if field.kind is JsonKind.OBJECT:
        return _struct(field.fields, columns, texts, number + 1, one.valid)
    if field.kind is JsonKind.TEXT:
        return texts[number]
    bits, nulls = _validity(one.valid)
    values = np.packbits(one.values, bitorder="little") if field.kind is JsonKind.BOOLEAN else one.values
    return column(_ARROW[field.kind], columns.rows, [None if bits is None else buffer(bits), buffer(values)], nulls)
