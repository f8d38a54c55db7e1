"""Rows that other sinks take in the same pass that writes topics.

They go the same way as the records, as pieces of Arrow and not row by row: those of a small batch to the driver, those
of a large one through a shuffle, by which what must end up together, as the rows of one file, comes to one task.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from ottla.spark.flat import inside
from ottla.spark.kernel.arrow import Column

ROW = "row"
"""Whether there is a row for others; its columns are `row__...`, as `flat` has it. There is none beside dead letters,
and none beside all records of a row but the first."""
PARCELS_BYTES = 8 * 1024 * 1024
"""How much of such rows waits in a task before it is sent on."""


class SideOutput(Protocol):
    """Something else that takes the rows of a task, as they go by."""

    def add(self, rows: pa.RecordBatch) -> None: ...

    def done(self) -> str:
        """What the driver has to know of it."""


class SideWriter(Protocol):
    """What whoever writes is given of it, for one run of one batch."""

    def __call__(self) -> SideOutput: ...


class RowParting(Protocol):
    """Which rows belong together. The same for all batches: it is part of the plan."""

    def __call__(self, rows: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Rows by a number from 0 on, the same in every process: those of one number are written by one task."""


def open_all(others: Sequence[SideWriter | None]) -> list[SideOutput | None]:
    """None is for one that has the batch already."""
    return [None if other is None else other() for other in others]


def take_parcels(parcels: Iterable[tuple[int, pa.Buffer]], opened: Sequence[SideOutput | None]) -> None:
    """Give each of the others the rows that are for it."""
    for number, payload in parcels:
        output = opened[number]
        if output is not None:
            for rows in unpacked(payload):
                output.add(rows)


def notes_of(opened: Sequence[SideOutput | None]) -> str:
    """All is given to them: what each wants the driver to know."""
    return json.dumps([None if output is None else output.done() for output in opened])


def parted(batch: pa.RecordBatch) -> tuple[pa.RecordBatch | None, pa.RecordBatch]:
    """The rows for others, if there are any, and those that are records."""
    parts = [name for name in batch.schema.names if name.startswith(inside(ROW, ""))]
    has_row: Any = batch.column(ROW)
    rows = batch.select(parts).filter(has_row).rename_columns([name.removeprefix(inside(ROW, "")) for name in parts])
    records = batch.drop_columns([ROW, *parts]).filter(pc.is_valid(batch.column("topic")))
    return (rows if rows.num_rows else None), records


def with_notes(written: pa.RecordBatch, opened: Sequence[SideOutput | None]) -> pa.RecordBatch:
    said: Column = pa.array([notes_of(opened), *[None] * (written.num_rows - 1)], pa.string())
    return written.append_column("notes", said)


class Parcels:
    """Rows for others on their way to the tasks that write them."""

    def __init__(self, others: Sequence[RowParting]) -> None:
        self._others = others
        self._waiting: dict[tuple[int, int], list[pa.RecordBatch]] = {}
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        return self._bytes >= PARCELS_BYTES

    @property
    def is_empty(self) -> bool:
        return not self._waiting

    def add(self, rows: pa.RecordBatch) -> None:
        for number, parting in enumerate(self._others):
            for task, part in parting(rows):
                self._waiting.setdefault((number, task), []).append(part)
                self._bytes += part.nbytes

    def take(self) -> list[tuple[int, int, bytes]]:
        """All that waits: which task it is for, which of the others, and the rows."""
        taken = [(task, number, _packed(parts)) for (number, task), parts in self._waiting.items()]
        self._waiting.clear()
        self._bytes = 0
        return taken


def _packed(parts: list[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, parts[0].schema) as writer:
        writer.write_table(pa.Table.from_batches(parts).combine_chunks())
    return sink.getvalue().to_pybytes()


def unpacked(payload: pa.Buffer) -> Iterator[pa.RecordBatch]:
    with pa.ipc.open_stream(payload) as reader:
        yield from reader
