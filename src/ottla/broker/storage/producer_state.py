"""What a partition remembers of its producers: enough to tell a retry from a gap, and which transactions are open.

The decisions are pure: `check` says what a batch is, `update` notes that it was appended, `end` that a marker was.
Snapshots are Kafka's .snapshot files; they carry a checksum, so a torn one is recognised and the state is rebuilt from
the log instead.
"""

import struct
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec
from crc32c import crc32c

from ottla.broker.storage.markers import Marker
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.sentinels import NO_OFFSET
from ottla.protocol.records import CONTROL, NO_PRODUCER_ID, NO_SEQUENCE, TRANSACTIONAL, BatchHeader

BATCHES_REMEMBERED = 5
SEQUENCE_MAX = 2**31 - 1
NO_PRODUCER_EPOCH = -1
EPOCH_MAX = 2**15 - 1
EPOCH_BUMPED_BY_END = 2
"""From this transaction version on a marker carries an epoch above that of the records it ends."""

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


class EndedTransaction(NamedTuple):
    """A transaction that a marker has just ended."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class ProducerEntry:
    """What is known of one producer id."""

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


class Verification:
    """Held while the coordinator is asked whether a partition is part of a producer's transaction."""

    __slots__ = ("begins_at_zero", "epoch", "lowest_sequence", "noted_ms")

    def __init__(self, epoch: int, sequence: int, now_ms: int, *, begins_at_zero: bool) -> None:
        self.epoch = epoch
        self.lowest_sequence = sequence
        self.noted_ms = now_ms
        self.begins_at_zero = begins_at_zero
        """Every transaction of this producer has an epoch of its own, so its first batch here has sequence 0."""

    def is_over(self, marker_epoch: int) -> bool:
        """Whether a marker of this epoch may have ended the transaction that was asked about.

        With an epoch for each transaction the marker that ends one has a higher epoch than its records. One that has
        the same is the end of the transaction before, which producers do not wait for: it was only late.
        """
        return marker_epoch > self.epoch or (marker_epoch == self.epoch and not self.begins_at_zero)


class ProducerState:
    def __init__(self) -> None:
        self.entries: dict[int, ProducerEntry] = {}
        # First offsets of the open transactions, with their producers. A transaction begins at the end of the log, so
        # the order of arrival is the order of offsets and the oldest is always in front.
        self._open: OrderedDict[int, int] = OrderedDict()
        self.replicated = False
        """Whether the end of a transaction counts only once `committed_to` says that every replica has its marker."""
        self._ended: OrderedDict[int, int] = OrderedDict()  # first offsets by the offset of the marker
        self._first_ended: int | None = None
        self._verifying: dict[int, Verification] = {}
        self.of_another_cluster = False
        """Whether batches bear another cluster's producer ids: of those only open transactions are remembered. The same
        ids are given out here to other producers, whose batches must not be taken for theirs."""
        self.look_back: Callable[[], ProducerState] | None = None
        """What the end of the log tells of producers; asked once, when one of them may be known in part only."""

    def check(self, header: BatchHeader, *, from_client: bool) -> SentBatch | None:
        """Judge a batch before it is appended: None means append it, a SentBatch that it is a retry of that one.

        Raises INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER or INVALID_TXN_STATE. Coordinators write without
        sequence numbers, so only the epoch is judged for them.
        """
        entry = self.entries.get(header.producer_id)
        if entry is None:
            # Never seen, expired, or all its records deleted: any first sequence is believed, as in Kafka since 2.4.
            if from_client and self._verifying:
                self._check_first_of_transaction(header, entry)
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
            sent = _sent_before(batches, header)
            if sent is None and self.look_back is not None and not is_later(first, entry.last_sequence):
                self._recall()
                sent = _sent_before(batches, header)
            if sent is not None:
                return sent
        if epoch < entry.epoch:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"epoch {header.producer_epoch} of producer {header.producer_id} is fenced by {entry.epoch}",
            )
        if from_client:
            if self._verifying:
                self._check_first_of_transaction(header, entry)
            _check_sequence(header, entry)
        if not header.attributes & (TRANSACTIONAL | CONTROL) and entry.current_txn_first_offset != NO_OFFSET:
            raise ApiError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {header.producer_id} has an open transaction but sent a batch outside of it",
            )
        return None

    def _recall(self) -> None:
        """Remember the batches before the last one again, which is all that a snapshot holds of a producer.

        It may have had more of them on their way when the broker stopped, and sends all of them again. Told that the
        first is out of order, librdkafka would give up for good.
        """
        assert self.look_back is not None
        look_back, self.look_back = self.look_back, None
        for producer_id, past in look_back().entries.items():
            entry = self.entries.get(producer_id)
            if entry is not None and entry.epoch == past.epoch and entry.batches:
                oldest = entry.batches[0].base_offset
                earlier = [batch for batch in past.batches if batch.last_offset < oldest]
                entry.batches[:] = [*earlier, *entry.batches][-BATCHES_REMEMBERED:]

    def _check_first_of_transaction(self, header: BatchHeader, entry: ProducerEntry | None) -> None:
        """A batch that was sent behind one which could not be verified must not overtake it."""
        verification = self._verifying.get(header.producer_id)
        if verification is None:
            return
        first = header.base_sequence
        unknown = entry is None or not entry.batches
        expected = 0 if verification.begins_at_zero and unknown else verification.lowest_sequence
        if first > expected:
            raise _out_of_order(header, expected)

    def check_marker(
        self, producer_id: int, producer_epoch: int, coordinator_epoch: int, transaction_version: int
    ) -> None:
        """Refuse a marker of an older epoch (INVALID_PRODUCER_EPOCH) or coordinator (TRANSACTION_COORDINATOR_FENCED).

        From transaction version 2 on the epoch must be above that of the records; only a marker that comes again
        after the end has the same one, and so does one at the very last epoch, which cannot be raised.
        """
        entry = self.entries.get(producer_id)
        if entry is None:
            return
        stale = producer_epoch < entry.epoch
        if transaction_version >= EPOCH_BUMPED_BY_END and producer_epoch == entry.epoch:
            stale = entry.current_txn_first_offset != NO_OFFSET and producer_epoch != EPOCH_MAX
        if stale:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"a transaction marker of epoch {producer_epoch} of producer {producer_id} is fenced by {entry.epoch}",
            )
        if coordinator_epoch < entry.coordinator_epoch:
            raise ApiError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"producer {producer_id}: coordinator epoch {coordinator_epoch} is fenced by {entry.coordinator_epoch}",
            )

    def update(self, header: BatchHeader, base_offset: int, timestamp: int) -> None:
        """Note that the batch was appended at `base_offset`; used live and when reading a log alike."""
        producer_id = header.producer_id
        if producer_id == NO_PRODUCER_ID:
            return
        entry = self.entries.get(producer_id)
        if entry is None or entry.epoch != header.producer_epoch:
            if self.of_another_cluster and not header.attributes & TRANSACTIONAL:
                return
            entry = self._entry(header)
        entry.last_timestamp = timestamp
        delta = header.last_offset_delta
        batches = entry.batches
        if len(batches) == BATCHES_REMEMBERED:
            del batches[0]
        first = header.base_sequence
        batches.append(SentBatch(first, sequence_after(first, delta), base_offset + delta, delta, timestamp))
        if header.attributes & TRANSACTIONAL and entry.current_txn_first_offset == NO_OFFSET:
            entry.current_txn_first_offset = base_offset
            self._open[base_offset] = producer_id
            self._verifying.pop(producer_id, None)

    def end(self, header: BatchHeader, offset: int, marker: Marker) -> EndedTransaction | None:
        """Note that a marker was appended at `offset`; None if the producer had no records here to commit or abort."""
        entry = self._entry(header)
        entry.last_timestamp = header.max_timestamp
        entry.coordinator_epoch = max(entry.coordinator_epoch, marker.coordinator_epoch)
        verification = self._verifying.get(header.producer_id)
        if verification is not None and verification.is_over(header.producer_epoch):
            del self._verifying[header.producer_id]
        first = entry.current_txn_first_offset
        if first == NO_OFFSET:
            if self.of_another_cluster:
                del self.entries[header.producer_id]
            return None
        entry.current_txn_first_offset = NO_OFFSET
        self._open.pop(first, None)
        if self.of_another_cluster:
            del self.entries[header.producer_id]
        if self.replicated:
            self._ended[offset] = first
            if self._first_ended is None or first < self._first_ended:
                self._first_ended = first
        return EndedTransaction(header.producer_id, first, offset, next(iter(self._open), offset + 1))

    def _entry(self, header: BatchHeader) -> ProducerEntry:
        entry = self.entries.get(header.producer_id)
        if entry is None:
            entry = self.entries[header.producer_id] = ProducerEntry(header.producer_id)
        if entry.epoch != header.producer_epoch:
            entry.epoch = header.producer_epoch
            entry.batches.clear()
        return entry

    def restore(self, entries: Iterable[ProducerEntry]) -> None:
        """Take what a snapshot told."""
        self.entries = {entry.producer_id: entry for entry in entries}
        open_now = [e for e in self.entries.values() if e.current_txn_first_offset != NO_OFFSET]
        open_now.sort(key=lambda entry: entry.current_txn_first_offset)
        self._open = OrderedDict((entry.current_txn_first_offset, entry.producer_id) for entry in open_now)

    def belong_to_another_cluster(self, *, another: bool) -> None:
        """Take the log for a mirror of another cluster's, or no more for one."""
        if another:
            self.entries = {known: e for known, e in self.entries.items() if e.current_txn_first_offset != NO_OFFSET}
        self.of_another_cluster = another

    def first_unstable_offset(self) -> int | None:
        """The first offset of the oldest transaction that is open, or whose end is not known to be committed."""
        first = next(iter(self._open), None)
        if self._first_ended is None or (first is not None and first < self._first_ended):
            return first
        return self._first_ended

    def committed_to(self, high_watermark: int) -> None:
        """Markers below the high watermark stand for ever: their transactions are decided."""
        ended = self._ended
        if not ended or next(iter(ended)) >= high_watermark:
            return
        while ended and next(iter(ended)) < high_watermark:
            ended.popitem(last=False)
        self._first_ended = min(ended.values(), default=None)

    @property
    def undecided(self) -> bool:
        """Whether there are transactions whose end is not known to be committed."""
        return bool(self._ended)

    def open_transaction(self, producer_id: int, epoch: int | None = None) -> int | None:
        """Where the producer's open transaction begins, if it has one (of this epoch, when one is given)."""
        entry = self.entries.get(producer_id)
        if entry is None or entry.current_txn_first_offset == NO_OFFSET or epoch not in (None, entry.epoch):
            return None
        return entry.current_txn_first_offset

    def begin_verification(self, header: BatchHeader, now_ms: int, *, begins_at_zero: bool) -> Verification:
        """Note that the coordinator is asked about this batch's transaction; over when it begins here, or has ended."""
        known = self._verifying.get(header.producer_id)
        if known is None:
            known = self._verifying[header.producer_id] = Verification(
                header.producer_epoch, header.base_sequence, now_ms, begins_at_zero=begins_at_zero
            )
        elif header.producer_epoch > known.epoch:
            known.epoch, known.lowest_sequence = header.producer_epoch, header.base_sequence
            known.begins_at_zero = begins_at_zero
        elif header.producer_epoch == known.epoch:
            known.lowest_sequence = min(known.lowest_sequence, header.base_sequence)
        return known

    def is_verified(self, producer_id: int, verification: Verification) -> bool:
        """Whether nothing has ended the transaction since the question was put."""
        return self._verifying.get(producer_id) is verification

    def forget_verification(self, producer_id: int) -> None:
        """Whatever was asked about this producer's transaction, it has ended."""
        self._verifying.pop(producer_id, None)

    def is_fenced(self, producer_id: int, epoch: int) -> bool:
        """Whether a newer epoch of the producer is known here."""
        entry = self.entries.get(producer_id)
        return entry is not None and entry.epoch > epoch

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that have been silent for too long; returns how many. Open transactions are kept."""
        silent = [
            producer_id
            for producer_id, entry in self.entries.items()
            if now_ms - entry.last_timestamp >= expiration_ms and entry.current_txn_first_offset == NO_OFFSET
        ]
        for producer_id in silent:
            del self.entries[producer_id]
        if self._verifying:
            self._verifying = {
                producer_id: verification
                for producer_id, verification in self._verifying.items()
                if now_ms - verification.noted_ms < expiration_ms
            }
        return len(silent)

    def clear(self) -> None:
        self.entries.clear()
        self._open.clear()
        self._ended.clear()
        self._first_ended = None
        self._verifying.clear()


def _sent_before(batches: Iterable[SentBatch], header: BatchHeader) -> SentBatch | None:
    """The one among them that this is a retry of."""
    first = header.base_sequence
    for batch in batches:
        if batch.first_sequence == first and batch.last_sequence == sequence_after(first, header.last_offset_delta):
            return batch
    return None


def _check_sequence(header: BatchHeader, entry: ProducerEntry) -> None:
    if header.producer_epoch != entry.epoch:
        in_order = header.base_sequence == 0 or entry.epoch == NO_PRODUCER_EPOCH
        expected = 0
    else:
        expected = sequence_after(entry.last_sequence, 1) if entry.last_sequence != NO_SEQUENCE else 0
        in_order = header.base_sequence == expected
    if not in_order:
        raise _out_of_order(header, expected)


def _out_of_order(header: BatchHeader, expected: int) -> ApiError:
    return ApiError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"out of order sequence number of producer {header.producer_id}: {header.base_sequence}, not {expected}",
    )


def sequence_after(sequence: int, steps: int) -> int:
    """Sequence numbers count to 2^31 - 1 and begin again at 0. Batches without one keep having none."""
    if sequence < 0:
        return NO_SEQUENCE
    return (sequence + steps) & SEQUENCE_MAX


def is_later(sequence: int, other: int) -> bool:
    """Whether it comes behind the other one. They begin again at 0 after the last, so nearness decides."""
    return 0 < (sequence - other) & SEQUENCE_MAX <= SEQUENCE_MAX // 2


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
    entries = []
    for row in _ENTRY.iter_unpack(memoryview(data)[head + _COUNT.size :]):
        producer_id, epoch, last_sequence, last_offset, offset_delta, timestamp, coordinator_epoch, txn_first = row
        entry = ProducerEntry(producer_id, epoch, timestamp, coordinator_epoch, txn_first)
        if last_offset >= 0:
            first_sequence = sequence_before(last_sequence, offset_delta)
            entry.batches.append(SentBatch(first_sequence, last_sequence, last_offset, offset_delta, timestamp))
        entries.append(entry)
    state = ProducerState()
    state.restore(entries)
    return state
