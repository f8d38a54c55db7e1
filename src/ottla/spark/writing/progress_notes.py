"""What a query writes beside its offsets: which query and which batch they belong to. Pure.

The query's id is Spark's, made with the checkpoint: a query that starts again with a new checkpoint counts its batches
from 0 again, and must not take the notes of the old one for its own.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.model.names import TopicPartition, by_topic

_MARK = "ottla-batch"
POSITIONS_CHARS_MAX = 3000
"""Brokers take 4096 bytes of metadata by default. What does not fit stays in Spark's checkpoint alone."""


class BatchNote(NamedTuple):
    query: str
    batch_id: int
    positions: str = ""
    """Where the sources of another cluster stand behind the batch, for people: see `positions_text`."""

    def __str__(self) -> str:
        return " ".join([_MARK, self.query, str(self.batch_id), *([self.positions] if self.positions else [])])


def read_note(metadata: str) -> BatchNote | None:
    """None for what others have written there."""
    words = metadata.split(" ")
    if len(words) not in (3, 4) or words[0] != _MARK or not words[2].isdecimal():
        return None
    return BatchNote(words[1], int(words[2]), *words[3:])


def positions_text(positions: Mapping[TopicPartition, int]) -> str:
    """`orders:0=12,1=15;payments:0=3`; empty if it is too long for a note."""
    topics = (
        f"{topic}:" + ",".join(f"{number}={positions[TopicPartition(topic, number)]}" for number in numbers)
        for topic, numbers in by_topic(positions).items()
    )
    text = ";".join(topics)
    return text if len(text) <= POSITIONS_CHARS_MAX else ""


def last_batch(metadata: Iterable[str], query: str) -> int | None:
    """The last batch of this query that the notes know of."""
    notes = [note for text in metadata if (note := read_note(text)) is not None]
    return max((note.batch_id for note in notes if note.query == query), default=None)
