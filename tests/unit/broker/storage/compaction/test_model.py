"""A compacted log against a table: random records, deletions, transactions, cleanings and ends at every step."""

import tempfile
from pathlib import Path
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.unit.broker.storage.compaction.conftest import Crash, append, clean, compacted
from tests.unit.broker.storage.conftest import NOW_MS, LogKit, read_records

from ottla.broker.storage.log import Log
from ottla.broker.storage.markers import Marker, read_marker
from ottla.protocol.compression import Codec
from ottla.protocol.records import decode_batch, iterate_batches

RETENTION_MS = 1000
PLAIN = 7
Pair = tuple[bytes, bytes | None]


class Written(NamedTuple):
    key: bytes
    value: bytes | None
    producer: int
    """-1 outside of transactions."""


class CompactionMachine(RuleBasedStateMachine):
    log: Log

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.kit = LogKit(Path(self.folder.name))
        self.now_ms = NOW_MS
        self.written: dict[int, Written] = {}
        self.aborted: set[int] = set()
        self.open: dict[int, list[int]] = {}
        self.sequences: dict[int, int] = {}
        self.met: dict[int, int] = {}
        """When a cleaning first met a deletion."""

    @initialize(segment_bytes=st.sampled_from([350, 600, 2000]))
    def create(self, segment_bytes: int) -> None:
        self.log = compacted(self.kit, segment_bytes=segment_bytes, delete_retention_ms=RETENTION_MS)

    pairs = st.lists(
        st.tuples(st.sampled_from([b"a", b"b", b"c", b"d"]), st.one_of(st.none(), st.binary(max_size=40))),
        min_size=1,
        max_size=4,
    )

    @rule(pairs=pairs, codec=st.sampled_from(list(Codec)), idempotent=st.booleans())
    def write(self, pairs: list[Pair], codec: Codec, idempotent: bool) -> None:
        self._append(pairs, codec, PLAIN if idempotent else -1, transactional=False)

    @rule(pairs=pairs, codec=st.sampled_from(list(Codec)), producer=st.sampled_from([1, 2]))
    def write_in_a_transaction(self, pairs: list[Pair], codec: Codec, producer: int) -> None:
        base = self._append(pairs, codec, producer, transactional=True)
        self.open.setdefault(producer, []).extend(range(base, base + len(pairs)))

    def _append(self, pairs: list[Pair], codec: Codec, producer: int, *, transactional: bool) -> int:
        sequence = self.sequences.get(producer, 0) if producer >= 0 else -1
        base = append(
            self.log, *pairs, codec=codec, producer_id=producer, sequence=sequence, transactional=transactional,
            timestamp=self.now_ms,
        )  # fmt: skip
        if producer >= 0:
            self.sequences[producer] = sequence + len(pairs)
        for number, (key, value) in enumerate(pairs):
            self.written[base + number] = Written(key, value, producer if transactional else -1)
        return base

    @rule(producer=st.sampled_from([1, 2]), commit=st.booleans())
    def end_a_transaction(self, producer: int, commit: bool) -> None:
        offsets = self.open.pop(producer, None)
        if offsets is None:
            return
        self.log.append_marker(producer, 0, Marker(commit, 0), 0, self.now_ms, transaction_version=1)
        if not commit:
            self.aborted.update(offsets)

    @rule(elapsed_ms=st.integers(1, 2 * RETENTION_MS))
    def wait(self, elapsed_ms: int) -> None:
        self.now_ms += elapsed_ms

    @rule(map_bytes=st.sampled_from([1 << 10, 1 << 20]), read_bytes=st.sampled_from([64, 500, 1 << 20]))
    def clean(self, map_bytes: int, read_bytes: int) -> None:
        self._note_deletions()
        clean(self.log, self.now_ms, map_bytes=map_bytes, read_bytes=read_bytes)

    def _note_deletions(self) -> None:
        for offset, record in self.written.items():
            if record.value is None and offset < self.log.segments.active.base_offset:
                self.met.setdefault(offset, self.now_ms)

    @rule(steps=st.integers(0, 40))
    @precondition(lambda self: len(self.log.segments) > 1)
    def end_in_the_middle_of_a_swap(self, steps: int) -> None:
        self._note_deletions()
        left = steps

        def step(_: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Crash

        cleaned_to = self.log.cleaned_to
        try:
            clean(self.log, self.now_ms, step=step)
        except Crash:
            self._crash(cleaned_to)

    @rule(lose_snapshots=st.booleans())
    def crash(self, lose_snapshots: bool) -> None:
        if lose_snapshots:
            for file in self.kit.files(".snapshot"):
                file.unlink()
        self._crash(self.log.cleaned_to)

    def _crash(self, cleaned_to: int | None) -> None:
        end = self.log.end_offset
        self.log = self.kit.reopen(self.log, clean=False)
        self.log.cleaned_to = cleaned_to
        assert self.log.end_offset == end
        assert not [*self.kit.files(".cleaned"), *self.kit.files(".swap"), *self.kit.files(".deleted")]

    @rule()
    def stop_and_start(self) -> None:
        cleaned_to = self.log.cleaned_to
        self.log = self.kit.reopen(self.log, clean=True)
        self.log.cleaned_to = cleaned_to

    @rule(share=st.floats(0, 1))
    def read_from_anywhere(self, share: float) -> None:
        offset = int(share * self.log.end_offset)
        assert read_records(self.log, offset) == [r for r in read_records(self.log) if r.offset >= offset]

    @invariant()
    def what_is_there_was_written(self) -> None:
        for record in self._data():
            written = self.written[record[0]]
            assert (written.key, written.value) == record[1:]

    @invariant()
    def the_table_is_right(self) -> None:
        table: dict[bytes, bytes | None] = {}
        for _, key, value in self._committed():
            table[key] = value
        open_offsets = {offset for offsets in self.open.values() for offset in offsets}
        stable = min(open_offsets, default=self.log.end_offset)
        expected: dict[bytes, tuple[int, bytes | None]] = {}
        for offset, record in self.written.items():
            if offset < stable and offset not in self.aborted:
                expected[record.key] = offset, record.value
        alive = {key: value for key, (_, value) in expected.items() if value is not None}
        assert {key: value for key, value in table.items() if value is not None} == alive
        for key, (offset, value) in expected.items():
            if value is None and key not in table:
                assert self.now_ms >= self.met[offset] + RETENTION_MS

    @invariant()
    def open_transactions_are_whole(self) -> None:
        there = {record[0] for record in self._data()}
        assert all(offset in there for offsets in self.open.values() for offset in offsets)

    def _bytes(self) -> bytes:
        parts, offset = [], self.log.start_offset
        while offset < self.log.end_offset:
            data = bytes(self.log.read(offset, 1 << 20, self.log.end_offset, min_one_batch=True).read())
            headers = [header for _, header in iterate_batches(data)]
            if not headers:
                break
            parts.append(data)
            offset = headers[-1].next_offset
        return b"".join(parts)

    def _data(self) -> list[tuple[int, bytes | None, bytes | None]]:
        data = self._bytes()
        return [
            (record.offset, record.key, record.value)
            for position, header in iterate_batches(data)
            if not header.is_control
            for record in decode_batch(data, position)
        ]

    def _committed(self) -> list[tuple[int, bytes, bytes | None]]:
        """What a consumer with read_committed makes of a fetch."""
        data, found = self._bytes(), []
        stable = self.log.first_unstable_offset
        waiting = sorted(self.log.aborted_transactions(0, stable), key=lambda entry: entry.first_offset)
        aborting: set[int] = set()
        for position, header in iterate_batches(data):
            if header.base_offset >= stable:
                break
            while waiting and waiting[0].first_offset <= header.last_offset:
                aborting.add(waiting.pop(0).producer_id)
            if header.is_control:
                marker = read_marker(memoryview(data)[position:])
                if marker is not None and not marker.commit:
                    aborting.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborting):
                found += [(r.offset, r.key or b"", r.value) for r in decode_batch(data, position)]
        return found

    def teardown(self) -> None:
        self.log.release()
        self.folder.cleanup()


TestCompaction = CompactionMachine.TestCase
TestCompaction.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
