"""Transactions against a list of batches: random producers, aborts, rolls, truncations, restarts, crashes and damage.

The model is the list alone. What is open, stable, aborted and visible is worked out from it every time.
"""

import tempfile
from pathlib import Path
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.unit.broker.storage.conftest import NOW_MS, LogKit, batch
from tests.unit.broker.storage.transactions import end, read_committed, refusal, send

from ottla.broker.storage.log import AbortedTransaction, Log
from ottla.model.errors import ErrorCode

PRODUCERS = st.integers(1, 4)
STEPS = st.tuples(
    st.sampled_from(["plain", "send", "send", "send outside", "commit", "abort", "abort"]), PRODUCERS, st.integers(1, 3)
)


class Batch(NamedTuple):
    """`commit` is None for data, else the batch is a marker."""

    base: int
    producer: int
    values: tuple[bytes, ...]
    transactional: bool = False
    commit: bool | None = None

    @property
    def end(self) -> int:
        return self.base + max(1, len(self.values))


class Seen(NamedTuple):
    """What the list of batches amounts to."""

    open: dict[int, int]
    aborted: list[AbortedTransaction]
    committed: list[tuple[int, bytes]]


def look_at(batches: list[Batch]) -> Seen:
    open_at: dict[int, int] = {}
    aborted: list[AbortedTransaction] = []
    lost: set[int] = set()
    inside: dict[int, list[int]] = {}
    for number, one in enumerate(batches):
        if one.commit is not None:
            first = open_at.pop(one.producer, None)
            if first is not None and not one.commit:
                stable = min(open_at.values(), default=one.base + 1)
                aborted.append(AbortedTransaction(one.producer, first, one.base, stable))
                lost.update(inside[one.producer])
            inside.pop(one.producer, None)
        elif one.transactional:
            open_at.setdefault(one.producer, one.base)
            inside.setdefault(one.producer, []).append(number)
    stable = min(open_at.values(), default=batches[-1].end if batches else 0)
    committed = [
        (one.base + position, value)
        for number, one in enumerate(batches)
        if number not in lost and one.base < stable
        for position, value in enumerate(one.values)
    ]
    return Seen(open_at, aborted, committed)


class TransactionMachine(RuleBasedStateMachine):
    log: Log

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.kit = LogKit(Path(self.folder.name))
        self.batches: list[Batch] = []
        self.end = 0
        # Once records were deleted, an index that is made anew may leave out aborts that have no records left.
        self.exact = True
        self.decided_to = 0  # what was deleted before here is decided for good: as the high watermark does in a cluster

    @initialize(
        segment_bytes=st.sampled_from([300, 700, 10**6]),
        interval=st.sampled_from([0, 200, 4096]),
        steps=st.lists(STEPS, min_size=15, max_size=50),
    )
    def create(self, segment_bytes: int, interval: int, steps: list[tuple[str, int, int]]) -> None:
        self.log = self.kit.create(segment_bytes=segment_bytes, index_interval_bytes=interval)
        self.work(steps)

    def add(self, one: Batch) -> None:
        self.batches.append(one)
        self.end = one.end

    def values(self, count: int) -> tuple[bytes, ...]:
        return tuple(b"%d" % (self.end + number) for number in range(count))

    def next_of(self, producer: int) -> tuple[int, int]:
        entry = self.log.producers.entries.get(producer)
        return (0, 0) if entry is None else (entry.epoch, entry.last_sequence + 1)

    @rule(steps=st.lists(STEPS, min_size=5, max_size=20))
    def work_on(self, steps: list[tuple[str, int, int]]) -> None:
        self.work(steps)

    @rule(steps=st.lists(STEPS, min_size=5, max_size=20), clean=st.booleans())
    def work_and_restart(self, steps: list[tuple[str, int, int]], clean: bool) -> None:
        self.work(steps)
        self.log = self.kit.reopen(self.log, clean=clean)
        if not clean:
            self.made_anew()

    def work(self, steps: list[tuple[str, int, int]]) -> None:
        for kind, producer, count in steps:
            if kind == "plain":
                values = self.values(count)
                self.log.append_as_leader(batch(*values), 0, NOW_MS)
                self.add(Batch(self.end, -1, values))
            elif kind in ("send", "send outside"):
                self.append(producer, count, idempotent=kind == "send outside")
            else:
                self.end_transaction(producer, commit=kind == "commit", version=1 + count % 2)

    def append(self, producer: int, count: int, *, idempotent: bool) -> None:
        values, (epoch, sequence) = self.values(count), self.next_of(producer)
        transactional = not idempotent or producer in look_at(self.batches).open
        result = send(self.log, producer, sequence, *values, epoch=epoch, transactional=transactional)
        assert (result.base_offset, result.duplicate) == (self.end, False)
        again = send(self.log, producer, sequence, *values, epoch=epoch, transactional=transactional)
        assert (again.base_offset, again.duplicate) == (self.end, True)
        self.add(Batch(self.end, producer, values, transactional))

    def end_transaction(self, producer: int, *, commit: bool, version: int) -> None:
        epoch, _ = self.next_of(producer)
        result = end(self.log, producer, commit=commit, epoch=epoch + (version == 2), version=version)
        assert result.base_offset == self.end
        self.add(Batch(self.end, producer, (), True, commit))

    @rule(producer=PRODUCERS)
    def a_zombie_is_refused(self, producer: int) -> None:
        epoch, _ = self.next_of(producer)
        if epoch > 0:
            assert refusal(self.log, producer, epoch=epoch - 1) is ErrorCode.INVALID_PRODUCER_EPOCH

    @rule(back=st.integers(1, 20))
    def truncate(self, back: int) -> None:
        target = max(self.decided_to, self.end - back)
        self.log.truncate_to(target)
        self.forget_from(self.log.end_offset)
        assert self.end <= target

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        stable = self.log.first_unstable_offset
        self.log.flush()
        self.log.delete_records_before(self.log.start_offset + int((stable - self.log.start_offset) * share))
        self.decided_to = self.end

    @rule()
    def flush(self) -> None:
        self.log.flush()

    @rule(lost=st.integers(1, 300))
    def power_cut(self, lost: int) -> None:
        active, flushed_to = self.log.segments.active, self.log.recovery_point
        position = active.find(flushed_to) if flushed_to > active.base_offset else 0
        kept = active.size if position is None else position
        self.log.release()
        file = self.kit.files(".log")[-1]
        file.write_bytes(file.read_bytes()[: max(kept, active.size - lost)])
        self.log = self.kit.open(clean=False, start_offset=self.log.start_offset, recovery_point=flushed_to)
        self.made_anew()
        self.forget_from(self.log.end_offset)

    def forget_from(self, end: int) -> None:
        self.batches = [one for one in self.batches if one.end <= end]
        self.end = end
        self.decided_to = min(self.decided_to, end)

    @rule(cut=st.integers(1, 33), which=st.integers(0, 5))
    def an_index_goes_bad(self, cut: int, which: int) -> None:
        self.log.close()
        files = self.kit.files(".txnindex")
        if files:
            file = files[which % len(files)]
            file.write_bytes(file.read_bytes()[:-cut])
        self.log = self.kit.open(clean=True, start_offset=self.log.start_offset)
        self.made_anew()

    def made_anew(self) -> None:
        self.exact = self.exact and self.log.start_offset == 0

    @rule(snapshots=st.booleans())
    def files_vanish_in_a_crash(self, snapshots: bool) -> None:
        self.log.release()
        suffixes = [".txnindex"]
        if snapshots and self.log.start_offset == 0:
            suffixes.append(".snapshot")
        for suffix in suffixes:
            for file in self.kit.files(suffix):
                if suffix == ".snapshot" or int(file.stem) >= self.log.recovery_point:
                    file.unlink()
        self.log = self.kit.open(
            clean=False, start_offset=self.log.start_offset, recovery_point=self.log.recovery_point
        )
        self.made_anew()

    @rule(start=st.floats(0, 1), length=st.floats(0, 1))
    def ask_for_a_range(self, start: float, length: float) -> None:
        first = self.log.start_offset + int((self.end - self.log.start_offset) * start)
        last = first + int((self.end - first) * length)
        stable = self.log.first_unstable_offset
        expected = [t for t in look_at(self.batches).aborted if t.last_offset >= first and t.first_offset < last]
        found = self.log.aborted_transactions(first, last)
        if last <= stable and self.exact:
            assert found == sorted(expected, key=lambda transaction: transaction.first_offset)

    @rule(start=st.floats(0, 1), max_bytes=st.integers(1, 1500))
    def read_committed_from(self, start: float, max_bytes: int) -> None:
        stable = self.log.first_unstable_offset
        first = self.log.start_offset + int((stable - self.log.start_offset) * start)
        expected = [value for offset, value in look_at(self.batches).committed if offset >= first]
        assert read_committed(self.log, first, max_bytes=max_bytes) == expected

    @invariant()
    def agrees_with_the_list(self) -> None:
        if not hasattr(self, "log"):
            return
        seen, log = look_at(self.batches), self.log
        assert log.end_offset == self.end
        assert log.first_unstable_offset == min(seen.open.values(), default=self.end)
        assert {producer: log.producers.open_transaction(producer) for producer in seen.open} == seen.open
        assert sum(e.current_txn_first_offset >= 0 for e in log.producers.entries.values()) == len(seen.open)
        for number, segment in enumerate(log.segments.all if self.exact else ()):
            following = log.segments.all[number + 1].base_offset if number + 1 < len(log.segments) else self.end
            inside = [t for t in seen.aborted if segment.base_offset <= t.last_offset < following]
            assert segment.transactions.entries() == inside
            file = Path(segment.transactions.path)
            assert (file.stat().st_size if file.exists() else 0) == 34 * len(inside)

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.log.release()
        self.folder.cleanup()


TestTransactions = TransactionMachine.TestCase
TestTransactions.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
