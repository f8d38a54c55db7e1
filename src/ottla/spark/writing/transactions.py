"""Names and notes of the sink's transactions. Pure; commit.py does the asking.

A streaming query writes each task attempt in a transaction of its own. Which of them count is decided once per batch,
in a transaction of the driver's own id: it stores a note (batch, transactions) as offset metadata of a group that has
the query's name. Whoever has a newer epoch of the driver's id decides; nobody else can.
"""

import base64
import hashlib
import re
import struct
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from ottla.client.transacting import ProducerId
from ottla.client.transactions import TransactionDescription
from ottla.model.errors import OttlaError

NOTE_BYTES_MAX = 4000
"""Brokers take 4096 bytes of metadata (offset.metadata.max.bytes)."""
ONGOING = "Ongoing"
ABORTED = frozenset({"PrepareAbort", "CompleteAbort"})
_MARK = "ottla-decision"
_ENTRY = struct.Struct(">IHHqh")
_ENTRIES_PER_NOTE = (NOTE_BYTES_MAX - 200) * 3 // 4 // _ENTRY.size
PREFIX_LENGTH_MAX = 200


class BadNote(OttlaError):
    """A note of this query that cannot be read: written by another version, or cut short."""


class TaskTransaction(NamedTuple):
    """One task attempt's transaction, prepared: everything is written, nothing is decided."""

    task: int
    attempt: int
    generation: int
    """Of the driver that started the task; a part of the id, so that tasks of two drivers never meet in one."""
    producer: ProducerId

    def transactional_id(self, prefix: str) -> str:
        return task_id(prefix, self.generation, self.task, self.attempt)


class Decision(NamedTuple):
    """These transactions are the batch. From here on they are committed, whoever has to do it."""

    query: str
    batch_id: int
    driver: ProducerId
    """Who decided. A later decision has a greater one, also that of another query under the same name."""
    transactions: tuple[TaskTransaction, ...]


def default_prefix(checkpoint: str) -> str:
    """A name for a query that has none: the same for the same checkpoint, whatever machine it runs on."""
    tail = re.sub(r"[^A-Za-z0-9._-]", "-", checkpoint.rstrip("/").rsplit("/", 1)[-1])[:40]
    digest = hashlib.sha256(checkpoint.rstrip("/").encode()).hexdigest()[:16]
    return f"ottla-sink-{tail}-{digest}"


def driver_id(prefix: str) -> str:
    return f"{prefix}.driver"


def given_up_id(prefix: str, job: str) -> str:
    """Taken when a batch job has failed: a task that is still at work finds that there is such an id."""
    return f"{prefix}.failed.{job}"


def task_id(prefix: str, generation: int, task: int, attempt: int) -> str:
    return f"{prefix}.task.{generation}.{task}.{attempt}"


def task_ids_pattern(prefix: str) -> str:
    """For brokers that filter by it (RE2): the ids of this query's tasks, of whatever driver."""
    return re.escape(f"{prefix}.task.") + r"[0-9]+\.[0-9]+\.[0-9]+"


def is_task_id(transactional_id: str, prefix: str) -> bool:
    return re.fullmatch(task_ids_pattern(prefix), transactional_id) is not None


def notes_group(prefix: str, index: int) -> str:
    """The group of a decision's notes. More transactions than fit in one note go to further groups."""
    return prefix if index == 0 else f"{prefix}.{index}"


def write_notes(decision: Decision) -> list[str]:
    """The notes of a decision, each short enough for the metadata of an offset; the first says how many there are."""
    entries = [
        _ENTRY.pack(one.task, one.attempt, one.generation, one.producer.id, one.producer.epoch)
        for one in decision.transactions
    ]
    parts = [entries[at : at + _ENTRIES_PER_NOTE] for at in range(0, len(entries), _ENTRIES_PER_NOTE)] or [[]]
    return [
        f"{_MARK} {decision.query} {decision.batch_id} {decision.driver.id}.{decision.driver.epoch} "
        f"{index}/{len(parts)} " + base64.b64encode(b"".join(part)).decode()
        for index, part in enumerate(parts)
    ]


class NoteHead(NamedTuple):
    query: str
    batch_id: int
    driver: ProducerId
    place: int
    of: int


def read_head(note: str) -> NoteHead | None:
    """None for what is no note of ours."""
    words = note.split(" ")
    if words[0] != _MARK:
        return None
    try:
        _, query, batch_id, driver, place, _ = words
        producer_id, epoch = driver.split(".")
        index, count = place.split("/")
        return NoteHead(query, int(batch_id), ProducerId(int(producer_id), int(epoch)), int(index), int(count))
    except ValueError:
        raise BadNote(f"the sink's note does not parse: {note[:100]!r}") from None


def read_notes(notes: Sequence[str]) -> Decision:
    """The decision of all its notes, in order."""
    heads = [read_head(note) for note in notes]
    first = heads[0]
    if first is None or heads != [first._replace(place=place) for place in range(first.of)]:
        raise BadNote(f"the sink's notes do not belong together: {[str(head) for head in heads]}")
    transactions = tuple(_entries(note.rsplit(" ", 1)[1] for note in notes))
    return Decision(first.query, first.batch_id, first.driver, transactions)


def last_note(notes: Iterable[str]) -> str | None:
    """The youngest of the notes in one group. They lie beside whatever partitions their batches wrote to."""
    ours = [(head.driver, note) for note in notes if (head := read_head(note)) is not None]
    return max(ours)[1] if ours else None


class TransactionState(Enum):
    """Where a decided transaction is, by what its coordinator says of the id."""

    OPEN = "open"
    DONE = "done"
    GONE = "gone"


def decided_state(one: TaskTransaction, now: TransactionDescription | None) -> TransactionState:
    """Aborted is what stayed open until its timeout. An id that has been taken since was taken by a later batch, and
    no batch begins before the one before it is done; one that is forgotten was at rest for days."""
    if now is None or now.producer_id != one.producer.id or now.producer_epoch > one.producer.epoch + 1:
        return TransactionState.DONE
    if now.producer_epoch == one.producer.epoch and now.state == ONGOING:
        return TransactionState.OPEN
    return TransactionState.GONE if now.state in ABORTED else TransactionState.DONE


def _entries(parts: Iterable[str]) -> Iterable[TaskTransaction]:
    for part in parts:
        try:
            packed = base64.b64decode(part, validate=True)
            for task, attempt, generation, producer_id, epoch in _ENTRY.iter_unpack(packed):
                yield TaskTransaction(task, attempt, generation, ProducerId(producer_id, epoch))
        except (ValueError, struct.error) as error:
            raise BadNote(f"the sink's note does not parse: {error}") from None
