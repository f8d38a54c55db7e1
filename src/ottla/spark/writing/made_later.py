"""Records that the writing task makes itself, of a text that says all they need.

For the few rows of a batch that become other records than the rest, such as dead letters: as expressions of Spark what
makes them would be planned with every batch and generated as code with every task, whether or not such a row comes.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

UNMADE = "unmade"
"""The column with the text; null beside rows that are records already."""


class RecordMaker(Protocol):
    def __call__(self, text: str, /) -> Mapping[str, Any]:
        """One record, by the columns of rows that are written; what is not in it is null."""


class WritingTask(Protocol):
    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]: ...


class MakeRecordsTask(NamedTuple):
    """Gives a task that writes rows all of them as records."""

    maker: RecordMaker
    task: WritingTask

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.task.run(with_made(batches, self.maker))


def with_made(batches: Iterator[pa.RecordBatch], maker: RecordMaker) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        unmade = batch.column(UNMADE)
        rows = batch.drop_columns([UNMADE])
        if unmade.null_count == len(unmade):
            yield rows
            continue
        yield rows.filter(pc.is_null(unmade))
        texts: list[Any] = unmade.drop_null().to_pylist()
        made = [dict(maker(text)) for text in texts]
        yield pa.RecordBatch.from_pylist(made, schema=rows.schema)
