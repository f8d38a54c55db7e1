"""Arrow arrays over numpy's memory and back, without copying."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ottla.spark.kernel.interface import Binary, Bytes, Int32s

if TYPE_CHECKING:
    Column: TypeAlias = pa.Array[Any]
else:
    Column = pa.Array  # generic in the stubs only


def buffer(array: npt.NDArray[Any]) -> pa.Buffer:
    return pa.py_buffer(cast("memoryview", array))  # any exporter of the buffer protocol will do


def column(
    kind: pa.DataType, rows: int, buffers: Sequence[pa.Buffer | None], nulls: int, children: Sequence[Column] = ()
) -> Column:
    made = pa.Array.from_buffers(kind, rows, list(buffers), nulls, children=list(children) or None)
    return cast("Column", made)


def binary_column(
    kind: pa.DataType, rows: int, offsets: Int32s, data: Bytes, valid: Bytes | None, nulls: int
) -> Column:
    validity = buffer(valid) if nulls and valid is not None else None
    return column(kind, rows, [validity, buffer(offsets[: rows + 1]), buffer(data[: offsets[rows]])], nulls)


def constant_text(text: str, rows: int) -> Column:
    encoded = text.encode()
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(len(encoded))
    return column(pa.string(), rows, [None, buffer(offsets), pa.py_buffer(encoded * rows)], 0)


def int32_column(values: Int32s) -> Column:
    return column(pa.int32(), len(values), [None, buffer(values)], 0)


def view_of_binary(values: Column) -> Binary:
    """Where the values of a binary or string column lie."""
    valid, offsets, data = values.buffers()
    content = np.empty(0, np.uint8) if data is None else np.frombuffer(memoryview(data), np.uint8)
    return Binary(_offsets(offsets, values), content, _bits(valid), values.offset)


def view_of_lists(values: Column) -> Binary:
    """The same for a column of lists: its offsets count entries, and there is no data."""
    valid, offsets = values.buffers()[:2]
    return Binary(_offsets(offsets, values), np.empty(0, np.uint8), _bits(valid), values.offset)


def _offsets(found: pa.Buffer | None, values: Column) -> Int32s:
    if found is None or not len(values):  # Arrow lets a column of no rows go without offsets
        return np.zeros(1, np.int32)
    return np.frombuffer(memoryview(found), np.int32)[values.offset : values.offset + len(values) + 1]


def _bits(found: pa.Buffer | None) -> Bytes | None:
    return None if found is None else np.frombuffer(memoryview(found), np.uint8)
