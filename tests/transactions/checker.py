"""Judges a history of transactional clients: which guarantees of exactly once did the broker break?

The history has to end with readers that have read every partition to its end, in both isolations, after all
transactions were decided. A transaction counts as committed when its commit was acknowledged, or when the commit was
asked for, its answer never came, and a read_committed reader saw one of its records: then all of them must be there.
It counts as aborted when an abort was acknowledged or the commit refused. `copied` names topics whose records copiers
carry over, each exactly once, into another topic.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.transactions.history import Abort, AnyOperation, Assign, Commit, Outcome, Poll, Send

from ottla.model.names import TopicPartition

Place = tuple[TopicPartition, int]


@dataclass(frozen=True)
class Anomaly:
    """A broken guarantee, with its evidence."""


@dataclass(frozen=True)
class LostWrite(Anomaly):
    """Committed, and nobody ever read it (or, for a record that copiers were to carry over: nobody read a copy)."""

    value: int
    partition: TopicPartition
    offset: int | None
    transaction: int
    what: str = "the record"


@dataclass(frozen=True)
class Unseen(Anomaly):
    """A reader went past a record that it was to see without seeing it."""

    process: int
    partition: TopicPartition
    offset: int
    value: int
    read_before: int
    read_after: int


@dataclass(frozen=True)
class Duplicate(Anomaly):
    """One value stands in two places, or one value was carried over twice."""

    value: int
    places: tuple[Place, ...]


@dataclass(frozen=True)
class InconsistentOffset(Anomaly):
    """Two values were seen at one offset."""

    partition: TopicPartition
    offset: int
    values: tuple[int, ...]


@dataclass(frozen=True)
class AbortedRead(Anomaly):
    """A read_committed reader got a record of an aborted transaction (Adya's G1a)."""

    process: int
    partition: TopicPartition
    offset: int
    value: int
    transaction: int


@dataclass(frozen=True)
class PrecommittedRead(Anomaly):
    """A read_committed reader got a record before anyone had asked to commit its transaction."""

    process: int
    partition: TopicPartition
    offset: int
    value: int
    transaction: int
    read: int
    commit_invoked: int | None


@dataclass(frozen=True)
class NonMonotonicSend(Anomaly):
    """A process sent one record after another to a partition, and the second was put before the first."""

    process: int
    partition: TopicPartition
    values: tuple[int, int]
    offsets: tuple[int, int]


@dataclass(frozen=True)
class NonMonotonicPoll(Anomaly):
    """A process read an offset again, or an earlier one, without having gone back by itself."""

    process: int
    partition: TopicPartition
    offsets: tuple[int, int]


@dataclass(frozen=True)
class UnknownValue(Anomaly):
    """A record that nobody sent."""

    process: int
    partition: TopicPartition
    offset: int
    value: int


class Read(NamedTuple):
    process: int
    partition: TopicPartition
    offset: int
    value: int
    completed: int


@dataclass
class _Transaction:
    sends: list[Send] = field(default_factory=list)
    commit_invoked: int | None = None
    commit_outcome: Outcome | None = None
    aborted: bool = False
    seen: bool = False

    @property
    def is_aborted(self) -> bool:
        return self.commit_outcome is not Outcome.OK and (self.aborted or self.commit_outcome is Outcome.FAIL)

    @property
    def is_committed(self) -> bool:
        if self.commit_outcome is Outcome.OK:
            return True
        return self.seen and self.commit_invoked is not None and not self.is_aborted


@dataclass
class _Session:
    """What one process read of one partition between two assignments."""

    process: int
    partition: TopicPartition
    committed_only: bool
    offsets: list[int] = field(default_factory=list)


def _when(operation: AnyOperation) -> int:
    """Sends count from when they were invoked. A call for records may first be told of a new assignment, so reads count
    from when they came back."""
    if isinstance(operation, Poll | Assign) and operation.completed is not None:
        return operation.completed
    return operation.invoked


class _Evidence:
    """The history, looked up in the ways that the checks need."""

    def __init__(self, history: Iterable[AnyOperation]) -> None:
        self.transactions: dict[int, _Transaction] = defaultdict(_Transaction)
        self.sends: dict[int, Send] = {}
        self.polls: list[Poll] = []
        self.sessions: list[_Session] = []
        self.places: dict[int, set[Place]] = defaultdict(set)
        self.values_at: dict[Place, set[int]] = defaultdict(set)
        self.read_committed: set[int] = set()
        self._open_sessions: dict[tuple[int, TopicPartition], _Session] = {}
        for operation in sorted(history, key=_when):
            self._take(operation)
        for value in self.read_committed & self.sends.keys():
            self.transactions[self.sends[value].transaction].seen = True

    def _take(self, operation: AnyOperation) -> None:
        match operation:
            case Send():
                self.sends[operation.value] = operation
                self.transactions[operation.transaction].sends.append(operation)
                if operation.offset is not None:
                    self._place(operation.partition, operation.offset, operation.value)
            case Commit():
                transaction = self.transactions[operation.transaction]
                transaction.commit_invoked = operation.invoked
                transaction.commit_outcome = operation.outcome
            case Abort():
                self.transactions[operation.transaction].aborted |= operation.outcome is Outcome.OK
            case Assign():
                self._open_sessions.pop((operation.process, operation.partition), None)
            case Poll():
                self._take_poll(operation)

    def _take_poll(self, poll: Poll) -> None:
        self.polls.append(poll)
        key = (poll.process, poll.partition)
        session = self._open_sessions.get(key)
        if session is None:
            session = self._open_sessions[key] = _Session(poll.process, poll.partition, poll.committed_only)
            self.sessions.append(session)
        session.offsets += poll.offsets
        for offset, value in zip(poll.offsets, poll.values, strict=True):
            self._place(poll.partition, offset, value)
        if poll.committed_only:
            self.read_committed.update(poll.values)

    def _place(self, partition: TopicPartition, offset: int, value: int) -> None:
        place = (partition, offset)
        self.places[value].add(place)
        self.values_at[place].add(value)

    def reads(self) -> Iterator[Read]:
        """Every record that a read_committed reader got."""
        for poll in self.polls:
            if poll.committed_only:
                assert poll.completed is not None
                for offset, value in zip(poll.offsets, poll.values, strict=True):
                    yield Read(poll.process, poll.partition, offset, value, poll.completed)

    def committed_sends(self) -> Iterator[Send]:
        for transaction in self.transactions.values():
            if transaction.is_committed:
                yield from (send for send in transaction.sends if send.outcome is Outcome.OK)


def check(history: Iterable[AnyOperation], *, copied: Mapping[str, str] | None = None) -> list[Anomaly]:
    """Every anomaly of the history; none for a broker that keeps its word."""
    evidence = _Evidence(history)
    return [
        *_lost_writes(evidence),
        *_unseen(evidence),
        *_duplicates(evidence),
        *_inconsistent_offsets(evidence),
        *_wrong_reads(evidence),
        *_non_monotonic_sends(evidence),
        *_non_monotonic_polls(evidence),
        *_copies(evidence, copied or {}),
    ]


def _lost_writes(evidence: _Evidence) -> Iterator[LostWrite]:
    for send in evidence.committed_sends():
        if send.value not in evidence.read_committed:
            yield LostWrite(send.value, send.partition, send.offset, send.transaction)


def _unseen(evidence: _Evidence) -> Iterator[Unseen]:
    """Between the first and the last offset that a session read, it must have read everything that it may see."""
    committed: dict[TopicPartition, dict[int, int]] = defaultdict(dict)
    everything: dict[TopicPartition, dict[int, int]] = defaultdict(dict)
    for send in evidence.committed_sends():
        if send.offset is not None:
            committed[send.partition][send.offset] = send.value
    for (partition, offset), values in evidence.values_at.items():
        everything[partition][offset] = min(values)
    in_order = {
        committed_only: {partition: sorted(known) for partition, known in of.items()}
        for committed_only, of in ((True, committed), (False, everything))
    }
    for session in evidence.sessions:
        due = in_order[session.committed_only].get(session.partition, [])
        first, last = min(session.offsets), max(session.offsets)
        between = due[bisect_left(due, first) : bisect_right(due, last)]
        if missing := set(between).difference(session.offsets):
            seen = sorted(session.offsets)
            known = (committed if session.committed_only else everything)[session.partition]
            for offset in sorted(missing):
                after = bisect_left(seen, offset)
                yield Unseen(
                    session.process, session.partition, offset, known[offset], seen[after - 1], seen[after]
                )  # fmt: skip


def _duplicates(evidence: _Evidence) -> Iterator[Duplicate]:
    for value, places in evidence.places.items():
        if len(places) > 1:
            yield Duplicate(value, tuple(sorted(places)))


def _inconsistent_offsets(evidence: _Evidence) -> Iterator[InconsistentOffset]:
    for (partition, offset), values in evidence.values_at.items():
        if len(values) > 1:
            yield InconsistentOffset(partition, offset, tuple(sorted(values)))


def _wrong_reads(evidence: _Evidence) -> Iterator[AbortedRead | PrecommittedRead | UnknownValue]:
    for read in evidence.reads():
        send = evidence.sends.get(read.value)
        if send is None:
            yield UnknownValue(read.process, read.partition, read.offset, read.value)
            continue
        transaction = evidence.transactions[send.transaction]
        record = (read.process, read.partition, read.offset, read.value, send.transaction)
        if transaction.is_aborted:
            yield AbortedRead(*record)
        elif transaction.commit_invoked is None or read.completed < transaction.commit_invoked:
            yield PrecommittedRead(*record, read.completed, transaction.commit_invoked)


def _non_monotonic_sends(evidence: _Evidence) -> Iterator[NonMonotonicSend]:
    last: dict[tuple[int, TopicPartition], Send] = {}
    for send in evidence.sends.values():  # in the order in which they were invoked
        if send.offset is None:
            continue
        key = (send.process, send.partition)
        before = last.get(key)
        if before is not None and before.offset is not None and before.offset >= send.offset:
            yield NonMonotonicSend(*key, (before.value, send.value), (before.offset, send.offset))
        last[key] = send


def _non_monotonic_polls(evidence: _Evidence) -> Iterator[NonMonotonicPoll]:
    for session in evidence.sessions:
        for before, after in zip(session.offsets, session.offsets[1:], strict=False):
            if after <= before:
                yield NonMonotonicPoll(session.process, session.partition, (before, after))


def _copies(evidence: _Evidence, copied: Mapping[str, str]) -> Iterator[LostWrite | Duplicate]:
    """Each committed record of a copied topic has one committed copy."""
    copies: dict[int, list[Send]] = defaultdict(list)
    for value in evidence.read_committed:
        send = evidence.sends.get(value)
        if send is not None and send.source is not None:
            copies[send.source].append(send)
    for source, sends in copies.items():
        if len(sends) > 1:
            places = (place for send in sends for place in evidence.places[send.value])
            yield Duplicate(source, tuple(sorted(places)))
    for value in evidence.read_committed:
        send = evidence.sends.get(value)
        if send is not None and send.partition.topic in copied and value not in copies:
            yield LostWrite(value, send.partition, send.offset, send.transaction, "its copy")


def summary(anomalies: Sequence[Anomaly], *, shown_max: int = 5) -> str:
    """How many of each class, and the first few in full."""
    by_class: dict[str, list[Anomaly]] = defaultdict(list)
    for anomaly in anomalies:
        by_class[type(anomaly).__name__].append(anomaly)
    lines = []
    for name, found in sorted(by_class.items()):
        lines += [f"{name}: {len(found)}", *(f"  {anomaly}" for anomaly in found[:shown_max])]
    return "\n".join(lines) or "no anomalies"
