"""A log against a list: random appends, rolls, truncations, deletions, restarts, crashes and damaged indexes."""

import tempfile
from collections.abc import Iterable
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.unit.broker.storage.conftest import NOW_MS, LogKit, batch, read_records

from ottla.broker.storage.log import Log
from ottla.protocol.compression import Codec

PRODUCER = 5


class LogMachine(RuleBasedStateMachine):
    """`records` is what the log must hold: (offset, timestamp, value) from the start on."""

    log: Log

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.kit = LogKit(Path(self.folder.name))
        self.records: list[tuple[int, int, bytes]] = []
        self.start = 0
        self.end = 0
        self.batches: list[int] = []  # base offsets
        self.sequence = 0
        self.sent: list[tuple[int, int, int]] = []  # sequence, base offset, count
        self.epoch = 0

    @initialize(segment_bytes=st.sampled_from([400, 1500, 10**6]), interval=st.sampled_from([0, 200, 4096]))
    def create(self, segment_bytes: int, interval: int) -> None:
        self.log = self.kit.create(segment_bytes=segment_bytes, index_interval_bytes=interval)

    @rule(
        sizes=st.lists(st.integers(0, 80), min_size=1, max_size=4),
        timestamp=st.integers(0, 5000),
        codec=st.sampled_from(list(Codec)),
        idempotent=st.booleans(),
    )
    def append(self, sizes: list[int], timestamp: int, codec: Codec, idempotent: bool) -> None:
        values = [b"%d:" % (self.end + number) + b"x" * size for number, size in enumerate(sizes)]
        records = batch(
            *values, timestamp=NOW_MS + timestamp, codec=codec,
            producer_id=PRODUCER if idempotent else -1, sequence=self.sequence if idempotent else -1,
        )  # fmt: skip
        result = self.log.append_as_leader(records, self.epoch, NOW_MS)
        assert (result.base_offset, result.duplicate) == (self.end, False)
        if idempotent:
            self.sent.append((self.sequence, self.end, len(sizes)))
            self.sequence += len(sizes)
        self.batches.append(self.end)
        self.records += [(self.end + number, NOW_MS + timestamp + number, value) for number, value in enumerate(values)]
        self.end += len(values)

    @rule()
    def retry_the_last_batch(self) -> None:
        if self.sent and self.sent[-1][1] >= self.start:
            sequence, base_offset, count = self.sent[-1]
            records = batch(*[b"retry"] * count, producer_id=PRODUCER, sequence=sequence)
            result = self.log.append_as_leader(records, self.epoch, NOW_MS)
            assert (result.duplicate, result.base_offset) == (True, base_offset)

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        target = self.start + int((self.end - self.start) * share)
        if target >= self.end:
            return
        base = max(base for base in self.batches if base <= target)
        self.log.truncate_to(target)
        if target <= self.log.segments.first_base_offset:
            base = target
        self.end = base
        self.start = min(self.start, base)
        self.batches = [offset for offset in self.batches if offset < base]
        self.records = [record for record in self.records if record[0] < base]
        self.sent = [entry for entry in self.sent if entry[1] < base]
        if self.sent:
            self.sequence = self.sent[-1][0] + self.sent[-1][2]
        else:
            self.sequence = 0
        self.epoch += 1

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        target = self.start + int((self.end - self.start) * share)
        self.log.delete_records_before(target)
        self.start = target
        self.records = [record for record in self.records if record[0] >= target]

    @rule()
    def flush(self) -> None:
        self.log.flush()
        assert self.log.recovery_point == self.end

    @rule()
    def stop_and_start(self) -> None:
        self.log = self.kit.reopen(self.log, clean=True)

    @rule(garbage=st.binary(max_size=200))
    def crash_with_a_torn_tail(self, garbage: bytes) -> None:
        self.log.release()
        with open(self.kit.files(".log")[-1], "ab") as file:
            file.write(garbage)
        self.log = self.kit.open(clean=False, start_offset=self.start, recovery_point=self.log.recovery_point)

    @rule(lost=st.integers(1, 400))
    def power_cut_loses_what_was_not_flushed(self, lost: int) -> None:
        active, flushed_to = self.log.segments.active, self.log.recovery_point
        position = active.find(flushed_to) if flushed_to > active.base_offset else 0
        kept = active.size if position is None else position
        self.log.release()
        file = self.kit.files(".log")[-1]
        size = max(kept, active.size - lost)
        file.write_bytes(file.read_bytes()[:size])
        self.log = self.kit.open(clean=False, start_offset=self.start, recovery_point=flushed_to)
        assert self.log.end_offset >= flushed_to
        self.forget_from(self.log.end_offset)

    def forget_from(self, end: int) -> None:
        self.end = end
        self.start = min(self.start, end) if not self.records or end >= self.start else end
        self.start = self.log.start_offset
        self.batches = [offset for offset in self.batches if offset < end]
        self.records = [record for record in self.records if record[0] < end]
        self.sent = [entry for entry in self.sent if entry[1] < end]
        self.sequence = self.sent[-1][0] + self.sent[-1][2] if self.sent else 0

    @rule(suffix=st.sampled_from([".index", ".timeindex"]), position=st.integers(0, 300), bit=st.integers(0, 7))
    def index_goes_bad(self, suffix: str, position: int, bit: int) -> None:
        self.log.close()
        for file in self.kit.files(suffix):
            data = bytearray(file.read_bytes())
            if position < len(data):
                data[position] ^= 1 << bit
                file.write_bytes(data)
        self.log = self.kit.open(clean=True, start_offset=self.start)

    @rule(suffix=st.sampled_from([".index", ".timeindex", ".snapshot", "leader-epoch-checkpoint"]), clean=st.booleans())
    def files_vanish(self, suffix: str, clean: bool) -> None:
        self.log.close()
        for file in self.kit.files(suffix):
            file.unlink()
        self.log = self.kit.open(clean=clean, start_offset=self.start, recovery_point=self.log.recovery_point)

    @rule(timestamp=st.integers(-10, 5010))
    def search_by_time(self, timestamp: int) -> None:
        wanted = NOW_MS + timestamp
        expected = next(((at, offset) for offset, at, _ in self.records if at >= wanted), None)
        answer = self.log.offset_for_timestamp(wanted)
        assert (answer[:2] if answer else None) == expected

    @rule(share=st.floats(0, 1), max_bytes=st.integers(1, 2000), bound=st.floats(0, 1))
    def read(self, share: float, max_bytes: int, bound: float) -> None:
        offset = self.start + int((self.end - self.start) * share)
        limit = self.start + int((self.end - self.start) * bound)
        data = self.log.read(offset, max_bytes, limit, min_one_batch=True)
        if data.length:
            head = data.read()[:27]
            base = int.from_bytes(head[:8])
            assert base <= offset <= base + int.from_bytes(head[23:27])

    @invariant()
    def holds_exactly_its_records(self) -> None:
        if not hasattr(self, "log"):
            return
        assert (self.log.start_offset, self.log.end_offset) == (self.start, self.end)
        assert as_rows(read_records(self.log)) == self.records
        assert self.log.size_bytes == sum(segment.size for segment in self.log.segments.all)

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.log.release()
        self.folder.cleanup()


def as_rows(records: Iterable[object]) -> list[tuple[int, int, bytes]]:
    return [(record.offset, record.timestamp, record.value) for record in records]  # type: ignore[attr-defined]


TestLog = LogMachine.TestCase
TestLog.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
