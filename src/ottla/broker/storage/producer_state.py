"""What a partition remembers of its idempotent producers: enough to tell a retry from a gap.

The decisions are pure: `check` says what a batch is, `update` notes that it was appended. Snapshots are Kafka's
.snapshot files; they carry a checksum, so a torn one is recognised and the state is rebuilt from the log instead.
"""

import struct
from collections.abc import Iterable

import msgspec
from crc32c import crc32c

from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.records import CONTROL, NO_PRODUCER_ID, NO_SEQUENCE, TRANSACTIONAL, BatchHeader

BATCHES_REMEMBERED = 5
SEQUENCE_MAX = 2**31 - 1
NO_PRODUCER_EPOCH = -1
NO_OFFSET = -1

_SNAPSHOT_VERSION = 1
_SNAPSHOT_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")


class SentBatch(msgspec.Struct, frozen=True, gc=False):
    """One appended batch of a producer."""

    first_sequence: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def base_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerEntry:
    """What is known of one producer id. The transaction fields are kept for the transaction coordinator's markers."""

    __slots__ = ("batches", "coordinator_epoch", "current_txn_first_offset", "epoch", "last_timestamp", "producer_id")

    def __init__(
        self,
        producer_id: int,
        epoch: int = NO_PRODUCER_EPOCH,
        last_timestamp: int = -1,
        coordinator_epoch: int = -1,
        current_txn_first_offset: int = NO_OFFSET,
    ) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.last_timestamp = last_timestamp
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_first_offset = current_txn_first_offset
        self.batches: list[SentBatch] = []

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


class ProducerState:
    def __init__(self) -> None:
        self.entries: dict[int, ProducerEntry] = {}

    def check(self, header: BatchHeader, *, from_client: bool) -> SentBatch | None:
        """Judge a batch before it is appended: None means append it, a SentBatch that it is a retry of that one.

        Raises INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER or INVALID_TXN_STATE. Coordinators write without
        sequence numbers, so only the epoch is judged for them.
        """
        entry = self.entries.get(header.producer_id)
        if entry is None:
            # Never seen, expired, or all its records deleted: any first sequence is believed, as in Kafka since 2.4.
            return None
        epoch = header.producer_epoch
        if from_client and epoch == entry.epoch:
            first = header.base_sequence
            batches = entry.batches
            if batches and not header.attributes & TRANSACTIONAL and entry.current_txn_first_offset == NO_OFFSET:
                # The common case, judged first: the next batch in line.
                last = batches[-1].last_sequence
                if first == last + 1 and last >= 0:
                    return None
            for batch in batches:
                if batch.first_sequence == first and batch.last_sequence == sequence_after(
                    first, header.last_offset_delta
                ):
                    return batch
        if epoch < entry.epoch:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {header.producer_id} has epoch {entry.epoch} here, {header.producer_epoch} is fenced off",
            )
        if from_client:
            _check_sequence(header, entry)
        if not header.attributes & (TRANSACTIONAL | CONTROL) and entry.current_txn_first_offset != NO_OFFSET:
            raise ApiError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {header.producer_id} has an open transaction but sent a batch outside of it",
            )
        return None

    def update(self, header: BatchHeader, base_offset: int, timestamp: int, coordinator_epoch: int = -1) -> None:
        """Note that the batch was appended at `base_offset`; used live and when reading a log alike."""
        producer_id = header.producer_id
        if producer_id == NO_PRODUCER_ID:
            return
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id)
        if entry.epoch != header.producer_epoch:
            entry.epoch = header.producer_epoch
            entry.batches.clear()
        entry.last_timestamp = timestamp
        attributes = header.attributes
        if attributes & CONTROL:
            entry.current_txn_first_offset = NO_OFFSET
            entry.coordinator_epoch = max(entry.coordinator_epoch, coordinator_epoch)
            return
        delta = header.last_offset_delta
        batches = entry.batches
        if len(batches) == BATCHES_REMEMBERED:
            del batches[0]
        first = header.base_sequence
        batches.append(SentBatch(first, sequence_after(first, delta), base_offset + delta, delta, timestamp))
        if attributes & TRANSACTIONAL and entry.current_txn_first_offset == NO_OFFSET:
            entry.current_txn_first_offset = base_offset

    def first_unstable_offset(self) -> int | None:
        """The first offset of the oldest open transaction."""
        open_at = [e.current_txn_first_offset for e in self.entries.values() if e.current_txn_first_offset != NO_OFFSET]
        return min(open_at, default=None)

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that have been silent for too long; returns how many. Open transactions are kept."""
        silent = [
            producer_id
            for producer_id, entry in self.entries.items()
            if now_ms - entry.last_timestamp >= expiration_ms and entry.current_txn_first_offset == NO_OFFSET
        ]
        for producer_id in silent:
            del self.entries[producer_id]
        return len(silent)

    def clear(self) -> None:
        self.entries.clear()


def _check_sequence(header: BatchHeader, entry: ProducerEntry) -> None:
    if header.producer_epoch != entry.epoch:
        in_order = header.base_sequence == 0 or entry.epoch == NO_PRODUCER_EPOCH
        expected = 0
    else:
        expected = sequence_after(entry.last_sequence, 1) if entry.last_sequence != NO_SEQUENCE else 0
        in_order = header.base_sequence == expected
    if not in_order:
        raise ApiError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id} sent sequence {header.base_sequence}, {expected} comes next",
        )


def sequence_after(sequence: int, steps: int) -> int:
    """Sequence numbers count to 2^31 - 1 and begin again at 0. Batches without one keep having none."""
    if sequence < 0:
        return NO_SEQUENCE
    return (sequence + steps) & SEQUENCE_MAX


def sequence_before(sequence: int, steps: int) -> int:
    if sequence < 0:
        return NO_SEQUENCE
    return (sequence - steps) & SEQUENCE_MAX


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    rows = [_encode_entry(entry) for entry in entries]
    body = _COUNT.pack(len(rows)) + b"".join(rows)
    return _SNAPSHOT_HEAD.pack(_SNAPSHOT_VERSION, crc32c(body)) + body


def _encode_entry(entry: ProducerEntry) -> bytes:
    last = entry.batches[-1] if entry.batches else None
    return _ENTRY.pack(
        entry.producer_id, entry.epoch,
        last.last_sequence if last else NO_SEQUENCE,
        last.last_offset if last else NO_OFFSET,
        last.offset_delta if last else 0,
        entry.last_timestamp, entry.coordinator_epoch, entry.current_txn_first_offset,
    )  # fmt: skip


def decode_snapshot(data: bytes) -> ProducerState | None:
    """The state a snapshot holds, or None when the file is damaged or of an unknown version."""
    head = _SNAPSHOT_HEAD.size
    if len(data) < head + _COUNT.size:
        return None
    version, crc = _SNAPSHOT_HEAD.unpack_from(data)
    (count,) = _COUNT.unpack_from(data, head)
    if version != _SNAPSHOT_VERSION or crc32c(memoryview(data)[head:]) != crc:
        return None
    if len(data) != head + _COUNT.size + count * _ENTRY.size:
        return None
    state = ProducerState()
    for row in _ENTRY.iter_unpack(memoryview(data)[head + _COUNT.size :]):
        producer_id, epoch, last_sequence, last_offset, offset_delta, timestamp, coordinator_epoch, txn_first = row
        entry = ProducerEntry(producer_id, epoch, timestamp, coordinator_epoch, txn_first)
        if last_offset >= 0:
            first_sequence = sequence_before(last_sequence, offset_delta)
            entry.batches.append(SentBatch(first_sequence, last_sequence, last_offset, offset_delta, timestamp))
        state.entries[producer_id] = entry
    return state
