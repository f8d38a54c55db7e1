"""Where copied records went: source offsets to offsets of the copy. Pure.

Offsets of a partition that is copied have gaps (compaction, markers of transactions), and so have those of the copy.
What is between the gaps on both sides is a run.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ottla.client.producer import Appended
from ottla.model.errors import OttlaError
from ottla.model.names import TopicPartition
from ottla.spark.kernel.interface import Int64s


class Run(NamedTuple):
    """As many `records` from `source` on are those from `target` on."""

    source: int
    target: int
    records: int


class Note(NamedTuple):
    """A record that becomes visible with the batch it speaks of."""

    topic: str
    key: bytes
    value: bytes | None


class CopyNotes(Protocol):
    def notes(self, copied: Mapping[TopicPartition, Sequence[Run]]) -> list[Note]:
        """What is to be written down about a batch, by the partitions it was written to. Their topics have one
        partition, and no row of the batch goes there."""


class UnknownPlaces(OttlaError):
    """A broker has the records and does not say where: the batch is dropped and written again."""


def runs_of(source: Int64s, appended: Sequence[Appended]) -> list[Run]:
    """The records of one partition, by their offsets in the source, in the batches in which they were appended."""
    ordered = sorted(appended)
    if any(batch.base_offset < 0 for batch in ordered):
        raise UnknownPlaces("a broker took a batch for one that it has, and does not know any more at which offset")
    parts = [np.arange(batch.base_offset, batch.base_offset + batch.record_count) for batch in ordered]
    target = np.concatenate(parts) if parts else np.empty(0, np.int64)
    if len(target) != len(source):
        raise UnknownPlaces(f"{len(source)} records were handed over and {len(target)} acknowledged")
    if not len(source):
        return []
    breaks = np.flatnonzero((np.diff(source) != 1) | (np.diff(target) != 1)) + 1
    starts = np.concatenate([[0], breaks])
    ends = np.concatenate([breaks, [len(source)]])
    return [Run(int(source[at]), int(target[at]), int(end - at)) for at, end in zip(starts, ends, strict=True)]
