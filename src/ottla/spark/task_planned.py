"""A batch read that is planned when it is read, not before.

Spark plans the read of a Python data source once. Where a frame is part of a streaming plan it is read with every
micro-batch, and would read the same offsets or files each time. Planned by the task that reads, it sees what is there
now. It is one task then: two of them could see two states.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

OPTION = "planInTask"


class TaskPlannedReader(DataSourceReader):
    def __init__(self, reader: DataSourceReader) -> None:
        self._reader = reader

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition("all there is")]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        for part in self._reader.partitions():
            yield from self._reader.read(part)


def planned_in_task(reader: DataSourceReader, options: Mapping[str, str]) -> DataSourceReader:
    """The reader as it is, or one that is planned in its task, if the options say so."""
    return TaskPlannedReader(reader) if wants_it(options) else reader


def wants_it(options: Mapping[str, str]) -> bool:
    return any(name.lower() == OPTION.lower() and value == "true" for name, value in options.items())


def without_it(options: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in options.items() if name.lower() != OPTION.lower()}


def task_options(*, fresh: bool) -> dict[str, str]:
    return {OPTION: "true"} if fresh else {}
