"""Files of a batch appear in a folder once, whatever is killed and when.

A batch goes through these steps. Notes and staged files live beside the folder, in `.<folder>.ottla/<writer>/`, where
no reader of the folder looks, not even one with a recursive pattern:

  1. staged     Spark writes all files to `staged/`
  2. decided    they are flushed, and `decided.json` names each with the place where it goes
  3. published  each is renamed to its place
  4. closed     `closed.json` names the batch, `decided.json` goes

A crash before 2 leaves nothing that counts: the replay throws the staged files away and writes them anew, even if the
rows came out differently. A crash after 2 leaves a decision: the replay finishes the renames and writes nothing. A
rename that was done is seen by its missing staged file. Names carry the writer's and the batch's id, so no two batches
ever meet.

What a reader of the folder sees: a batch in one file (or in one folder of its own) appears by one rename, hence as a
whole. Several files appear one after the other, within milliseconds; after a crash among those renames the rest follows
when the query runs again.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ottla.pipelines.connectors.durable_files import flush, flush_folder, read_note, replace_file, writer_id
from ottla.pipelines.connectors.moments import Reached, unwatched


class Move(msgspec.Struct, frozen=True):
    staged: str
    """Relative to the folder of staged files."""
    place: str
    """Relative to the published folder."""


class Decision(msgspec.Struct, frozen=True):
    batch: int
    rows: int | None
    moves: list[Move]


class PublishedBatch(msgspec.Struct, frozen=True):
    batch: int
    rows: int | None


class Publication:
    """One writer's way into a folder. Only one driver at a time may run a query, as Spark's checkpoint demands."""

    def __init__(self, folder: Path, query: str, sink: str, reached: Reached = unwatched) -> None:
        self.folder = folder
        self.writer = writer_id(query, sink)
        self._home = folder.with_name(f".{folder.name}.ottla") / self.writer
        self.staged = self._home / "staged"
        self._decided = self._home / "decided.json"
        self._closed = self._home / "closed.json"
        self._reached = reached
        """Told the name of each step that is done; tests make it fail there."""

    def finish_or_prepare(self, batch: int) -> PublishedBatch | None:
        """What was published for this batch, finishing it if need be; None: it is to be written, from scratch."""
        self._home.mkdir(parents=True, exist_ok=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        decision = read_note(self._decided, Decision)
        if decision is not None:
            self._publish(decision)
        closed = read_note(self._closed, PublishedBatch)
        if closed is not None and batch <= closed.batch:
            return closed
        if self.staged.exists():
            shutil.rmtree(self.staged)
        return None

    def publish(self, batch: int, rows: int | None, moves: Sequence[Move]) -> None:
        self._reached("staged")
        for move in moves:
            _flush_tree(self.staged / move.staged)
        decision = Decision(batch=batch, rows=rows, moves=list(moves))
        replace_file(self._decided, msgspec.json.encode(decision))
        self._reached("decided")
        self._publish(decision)

    def _publish(self, decision: Decision) -> None:
        touched = {self.folder}
        for move in decision.moves:
            staged, place = self.staged / move.staged, self.folder / move.place
            if not staged.exists():
                continue  # renamed before a crash
            place.parent.mkdir(parents=True, exist_ok=True)
            staged.rename(place)
            touched.add(place.parent)
            self._reached("published one")
        for folder in touched:
            flush_folder(folder)
        self._reached("published")
        replace_file(self._closed, msgspec.json.encode(PublishedBatch(batch=decision.batch, rows=decision.rows)))
        self._reached("closed")
        self._decided.unlink(missing_ok=True)
        shutil.rmtree(self.staged, ignore_errors=True)


def _flush_tree(path: Path) -> None:
    for part in [path, *path.rglob("*")] if path.is_dir() else [path]:
        flush(part)
