"""What a query writes beside its offsets: which query and which batch they belong to. Pure.

The query's id is Spark's, made with the checkpoint: a query that starts again with a new checkpoint counts its batches
from 0 again, and must not take the notes of the old one for its own.
"""

from collections.abc import Iterable
from typing import NamedTuple

_MARK = "ottla-batch"


class BatchNote(NamedTuple):
    query: str
    batch_id: int

    def __str__(self) -> str:
        return f"{_MARK} {self.query} {self.batch_id}"


def read_note(metadata: str) -> BatchNote | None:
    """None for what others have written there."""
    words = metadata.split(" ")
    if len(words) != 3 or words[0] != _MARK or not words[2].isdecimal():
        return None
    return BatchNote(words[1], int(words[2]))


def last_batch(metadata: Iterable[str], query: str) -> int | None:
    """The last batch of this query that the notes know of."""
    notes = [note for text in metadata if (note := read_note(text)) is not None]
    return max((note.batch_id for note in notes if note.query == query), default=None)
