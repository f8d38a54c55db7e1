"""Rows of a batch by the values that become names of folders."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Values = tuple[str | None, ...]


def by_values(rows: pa.RecordBatch, columns: Sequence[str]) -> Iterator[tuple[Values, pa.RecordBatch]]:
    """The rows of each combination, as texts; in their order, with all their columns."""
    if not rows.num_rows:
        return
    numbers, combinations = _numbered(rows, columns)
    if len(combinations) == 1:
        yield combinations[0], rows
        return
    order = np.argsort(numbers, kind="stable")
    begins = np.searchsorted(numbers[order], np.arange(1, len(combinations)))
    for values, indexes in zip(combinations, np.split(order, begins), strict=True):
        yield values, rows.take(indexes)


def _numbered(rows: pa.RecordBatch, columns: Sequence[str]) -> tuple[Any, list[Values]]:
    """Which combination of values each row has, and the combinations."""
    numbers: Any = np.zeros(rows.num_rows, np.int64)
    combinations: list[Values] = [()]
    for name in columns:
        texts: Any = pc.cast(rows.column(name), pa.string()).dictionary_encode(null_encoding="encode")
        values = texts.dictionary.to_pylist()
        together = numbers * len(values) + texts.indices.to_numpy(zero_copy_only=False)
        found, numbers = np.unique(together, return_inverse=True)
        pairs = [divmod(number, len(values)) for number in found.tolist()]
        combinations = [(*combinations[before], values[index]) for before, index in pairs]
    return numbers, combinations
