"""The map of offsets: where each record of a source partition is in the target, and so where a group goes on. Pure.

Every batch of a flow adds, in its own transaction, entries for each partition that it wrote: runs of records that have
no gap on either side. So a translation is exact, however far behind a group is.
"""

import json
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ottla.model.names import TopicPartition
from ottla.spark.writing.copied import Note, Run


@dataclass(frozen=True)
class Entry:
    source: TopicPartition
    target: TopicPartition
    runs: Sequence[Run]


RUNS_PER_NOTE = 10_000
"""More would make records that brokers refuse as too large."""


def to_notes(topic: str, entry: Entry) -> list[Note]:
    return [
        _to_note(topic, Entry(entry.source, entry.target, entry.runs[at : at + RUNS_PER_NOTE]))
        for at in range(0, len(entry.runs), RUNS_PER_NOTE)
    ]


def _to_note(topic: str, entry: Entry) -> Note:
    value = {"topic": entry.target.topic, "runs": entry.runs}
    return Note(topic, _key(entry), _json(value))


def to_tombstone(topic: str, entry: Entry) -> Note:
    return Note(topic, _key(entry), None)


def _key(entry: Entry) -> bytes:
    """It names the first record: an entry is replaced by nothing but itself."""
    return _json({"topic": entry.source.topic, "partition": entry.source.partition, "first": entry.runs[0].source})


def from_record(key: bytes, value: bytes) -> Entry:
    named, said = json.loads(key), json.loads(value)
    partition = int(named["partition"])
    return Entry(
        TopicPartition(named["topic"], partition),
        TopicPartition(said["topic"], partition),
        [Run(*run) for run in said["runs"]],
    )


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


@dataclass
class _Runs:
    target: TopicPartition
    firsts: list[int] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)


class OffsetMap:
    """All entries of a flow, by the partitions of the source."""

    def __init__(self) -> None:
        self._known: dict[TopicPartition, _Runs] = {}

    def add(self, entries: Iterable[Entry]) -> None:
        """In the order in which they were written."""
        for entry in entries:
            known = self._known.get(entry.source)
            begins_anew = known is not None and known.runs and entry.runs[0].source <= known.runs[-1].source
            if known is None or begins_anew or known.target != entry.target:
                # The source was made anew, or is copied once more: what was known is about other records.
                known = self._known[entry.source] = _Runs(entry.target)
            known.firsts += [run.source for run in entry.runs]
            known.runs += entry.runs
            known.entries.append(entry)

    def forget(self, source: TopicPartition, log_start: int) -> list[Entry]:
        """Let go of entries whose records are no longer in the target, which begins at `log_start`. The last one stays:
        it says where the next record will be."""
        known = self._known[source]
        ends = [entry.runs[-1].target + entry.runs[-1].records for entry in known.entries[:-1]]
        gone = next((number for number, end in enumerate(ends) if end > log_start), len(ends))
        let_go, known.entries = known.entries[:gone], known.entries[gone:]
        runs = sum(len(entry.runs) for entry in let_go)
        del known.runs[:runs], known.firsts[:runs]
        return let_go

    def partitions(self) -> list[TopicPartition]:
        return sorted(self._known)

    def target_of(self, source: TopicPartition) -> TopicPartition | None:
        known = self._known.get(source)
        return None if known is None else known.target

    def last(self, source: TopicPartition) -> Run | None:
        known = self._known.get(source)
        return None if known is None else known.runs[-1]

    def translate(self, source: TopicPartition, offset: int, *, whole: bool) -> int | None:
        """The offset in the target of the first record that a group at `offset` has not read.

        Behind the last copied record it is the place right after it. Before the first one nothing is said unless the
        flow copied the `whole` of the log: records in between may be missing in the target.
        """
        known = self._known.get(source)
        if known is None:
            return None
        if offset < known.firsts[0] and not whole:
            return None
        at = bisect_right(known.firsts, offset) - 1
        if at < 0:
            return known.runs[0].target
        run = known.runs[at]
        if offset < run.source + run.records:
            return run.target + offset - run.source
        if at + 1 < len(known.runs):
            return known.runs[at + 1].target
        return run.target + run.records
