"""Rows that break their task, once."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext

Batches = Iterator[pa.RecordBatch]


def break_once(marker: str) -> Callable[[Batches], Batches]:
    """All rows go through; then the first task fails, unless the marker says that it has failed before."""

    def explode(batches: Batches) -> Batches:
        yield from batches
        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 0 and not Path(marker).exists():
            Path(marker).touch()
            raise RuntimeError("the task broke after its rows were written")

    return explode
