"""Sinks that leave the writing to the runner, so that all of a batch becomes visible together.

What a sink has to offer for that is here, and the runner asks for nothing else: it knows no connector by its class.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from ottla.model.names import TopicPartition
from ottla.pipelines.connectors.base import Batch, Sink

if TYPE_CHECKING:
    from ottla.spark.writing.batch_writer import PublishedBeside
    from ottla.spark.writing.beside import RowParting
    from ottla.spark.writing.copied import Note, Run


@dataclass(frozen=True, kw_only=True)
class TopicTarget:
    """Where the rows of a transactional sink go, and how."""

    topic: str | None
    """None: each row says it."""
    compression: str
    exactly_once: bool
    """In a transaction. All sinks of a query agree on it; the check of the file sees to that."""
    in_plan: bool
    """Its columns are Spark's own expressions. Others are Python, which Spark runs for every row, whatever condition is
    around: a rejected row would have to fit the schema."""


@runtime_checkable
class TransactionalSink(Protocol):
    """A sink whose rows are records of a topic: they share the batch's transaction with those of all other such sinks,
    the dead letters and the offsets of the sources. Its `write` is never called."""

    def target(self) -> TopicTarget: ...

    def columns(self, frame: DataFrame, base_dir: Path) -> list[Column]:
        """What the record of a row is made of, in the shape of `frames.TOPIC_ROW`."""


@runtime_checkable
class CopyingSink(Protocol):
    """A transactional sink, alone in its query, that makes one partition of the target of each that is read.

    Its rows have a column `source_offset` more, and the batch's positions are kept by the target's partitions.
    """

    def prepare(self, clients: Callable[[str], Mapping[str, str]], read: Collection[TopicPartition]) -> None:
        """See to it that the partitions are there that these are written to. `clients` are settings by cluster."""

    def written_to(self, partition: TopicPartition) -> TopicPartition: ...

    def notes(self, copied: "Mapping[TopicPartition, Sequence[Run]]") -> "list[Note]": ...


@runtime_checkable
class StagedSink(Protocol):
    """A sink whose rows can be set down in the same pass that writes topics, and are shown when those are written."""

    def takes_part(self, row: StructType, codec: str) -> bool:
        """Whether it can with rows of this type. `codec` is what Spark would compress files with."""

    def parting(self) -> "RowParting":
        """Which of its rows belong together. The same for all batches."""

    def beside(self, batch: Batch, codec: str) -> "PublishedBeside | None":
        """How the batch is written in that pass; None if it was written before."""


def is_transactional(sink: type[Sink]) -> bool:
    return issubclass(sink, TransactionalSink)


def transactional(sinks: Iterable[tuple[str, Sink]]) -> list[tuple[str, TransactionalSink]]:
    """Those among sinks with their names."""
    return [(name, sink) for name, sink in sinks if isinstance(sink, TransactionalSink)]
