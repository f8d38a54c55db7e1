"""One partition of the offsets topic with the groups that live on it: writing, replaying, keeping the log short."""

import itertools
import logging
from collections.abc import Awaitable, Iterable, Iterator
from typing import NamedTuple, TypeVar

from ottla.broker.coordination.groups.machine import GroupMachine
from ottla.broker.coordination.groups.offsets import Entry
from ottla.broker.coordination.loading import LoadedLog
from ottla.broker.coordination.log import CoordinatorLog
from ottla.broker.coordination.scheduler import TimerHandle
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.consumer_group_records import ConsumerKey, encode_consumer_key, encode_consumer_value
from ottla.protocol.coordinator_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    Key,
    OffsetCommitKey,
    OffsetCommitValue,
    OtherKey,
    encode_group_metadata_key,
    encode_group_metadata_value,
    encode_offset_commit_key,
    encode_offset_commit_value,
)
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.records import Codec, NewRecord, encode_batch

logger = logging.getLogger(__name__)

SNAPSHOT_LOG_BYTES_MIN = 16 * 1024 * 1024
SNAPSHOT_GROWTH = 4
"""A snapshot is due when the log behind it is this many times its size: load time stays in proportion to what there
is to load, and writing snapshots costs at most a quarter of what is written anyway."""
RECORDS_PER_BATCH_MAX = 500
MARKER_BYTES = 78

T = TypeVar("T")


def encode_entry(entry: Entry, timestamp: int) -> NewRecord:
    key, value = entry
    if isinstance(key, OffsetCommitKey):
        assert value is None or isinstance(value, OffsetCommitValue)
        return NewRecord(
            encode_offset_commit_key(key.group, key.topic, key.partition),
            None if value is None else encode_offset_commit_value(value),
            timestamp,
        )
    if isinstance(key, GroupMetadataKey):
        assert value is None or isinstance(value, GroupMetadataValue)
        return NewRecord(
            encode_group_metadata_key(key.group),
            None if value is None else encode_group_metadata_value(value),
            timestamp,
        )
    assert not isinstance(key, OtherKey)
    assert value is None or not isinstance(value, GroupMetadataValue | OffsetCommitValue)
    return NewRecord(encode_consumer_key(key), None if value is None else encode_consumer_value(value), timestamp)


def in_batches(entries: Iterable[T]) -> Iterator[list[T]]:
    remaining = iter(entries)
    while batch := list(itertools.islice(remaining, RECORDS_PER_BATCH_MAX)):
        yield batch


class Producer(NamedTuple):
    """Who writes in a transaction."""

    id: int
    epoch: int


class Shard:
    def __init__(self, partition: int, log: CoordinatorLog) -> None:
        self.partition = partition
        self.machine: GroupMachine | None = None
        """None while the log is being read."""
        self.failed = False
        """The log could not be read: this broker cannot answer for these groups."""
        self.timers: dict[tuple[str, ...], TimerHandle] = {}
        self.last_commit: Awaitable[None] | None = None
        """The newest append that is not committed yet: later answers wait for it too."""
        self.snapshot_running = False
        self.bytes_since_snapshot = 0
        self._snapshot_due_at = SNAPSHOT_LOG_BYTES_MIN
        self._foreign: dict[bytes, bytes] = {}
        self._log = log

    def install(self, loaded: LoadedLog) -> None:
        self.machine = loaded.machine
        self.bytes_since_snapshot = loaded.size_bytes
        self._foreign = loaded.foreign

    def write(
        self, entries: list[Entry], timestamp: int, codec: Codec, producer: Producer | None = None
    ) -> Awaitable[None] | None:
        """Append and replay, as part of a producer's transaction if one is given.

        Raises, with nothing changed, if the append fails.
        """
        try:
            records = [encode_entry(entry, timestamp) for entry in entries]
        except MalformedMessage as error:
            raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from None
        base_offset = self._log.end_offset(self.partition) if producer is not None else 0
        committed = self._append(records, codec, producer)
        assert self.machine is not None
        if producer is None:
            for key, value in entries:
                self.machine.replay(key, value)
        else:
            self.machine.pending.begin(producer.id, base_offset, producer.epoch)
            for key, value in entries:
                assert isinstance(key, OffsetCommitKey)
                assert isinstance(value, OffsetCommitValue)
                self.machine.replay_pending(producer.id, key, value)
        return committed

    def end_transaction(self, producer: Producer, *, commit: bool, coordinator_epoch: int) -> Awaitable[None] | None:
        """Append the marker and replay it."""
        committed = self._log.append_marker(
            self.partition, producer.id, producer.epoch, commit=commit, coordinator_epoch=coordinator_epoch
        )
        self.bytes_since_snapshot += MARKER_BYTES
        assert self.machine is not None
        self.machine.replay_marker(producer.id, commit=commit)
        return committed

    def _append(
        self, records: list[NewRecord], codec: Codec, producer: Producer | None = None
    ) -> Awaitable[None] | None:
        if producer is None:
            batch = encode_batch(records, codec=codec)
        else:
            batch = encode_batch(
                records,
                codec=codec,
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                base_sequence=0,
                transactional=True,
            )
        committed = self._log.append(self.partition, batch)
        self.bytes_since_snapshot += len(batch)
        return committed

    # Snapshots: all live records again, and the log before them can go

    def is_snapshot_due(self) -> bool:
        if self.bytes_since_snapshot <= self._snapshot_due_at or self.snapshot_running or self.machine is None:
            return False
        size = self.machine.snapshot_size_bytes()
        self._snapshot_due_at = max(SNAPSHOT_LOG_BYTES_MIN, SNAPSHOT_GROWTH * size)
        return self.bytes_since_snapshot > self._snapshot_due_at

    def put_off_snapshot(self) -> None:
        self._snapshot_due_at = self.bytes_since_snapshot + SNAPSHOT_LOG_BYTES_MIN

    def snapshot(self, timestamp: int, codec: Codec) -> Iterator[Awaitable[None] | None]:
        """Write a snapshot batch by batch; the caller waits for each and may do other work in between.

        Every record is written as it is at that moment, so what is committed meanwhile is never overwritten by
        something older: the log read from `start` on always ends in the newest value of every key. These records
        are not replayed, they say what is known. At whatever point this is cut off, the log before it is still there.

        The log is kept from the first record of every transaction that is open when this begins: its offsets are
        nowhere else until its marker comes. And where a key has pending offsets, they are written again behind the
        key's own record, so that it does not seem to have overtaken them.
        """
        assert self.machine is not None
        begin = self._log.end_offset(self.partition)
        start = min([begin, *(opened.first_offset for opened in self.machine.pending.open.values())])
        before = self.bytes_since_snapshot
        own = 0
        for records in in_batches(NewRecord(key, value, timestamp) for key, value in self._foreign.items()):
            size = self.bytes_since_snapshot
            yield self._append(records, codec)
            own += self.bytes_since_snapshot - size
        for entries in in_batches(self.machine.snapshot()):
            size = self.bytes_since_snapshot
            committed = self._append([encode_entry(entry, timestamp) for entry in entries], codec)
            committed = self._append_pending([key for key, _ in entries], timestamp, codec) or committed
            own += self.bytes_since_snapshot - size
            yield committed
        yield self._log.truncate_before(self.partition, start)
        self.bytes_since_snapshot -= before + own
        self._snapshot_due_at = max(SNAPSHOT_LOG_BYTES_MIN, SNAPSHOT_GROWTH * own)
        logger.info("offsets partition %d: snapshot of %d bytes, log starts at %d", self.partition, own, start)

    def _append_pending(self, keys: list[Key | ConsumerKey], timestamp: int, codec: Codec) -> Awaitable[None] | None:
        assert self.machine is not None
        pending = self.machine.pending
        committed = None
        for key in keys if pending.open else ():
            for producer_id, value in pending.values(key) if isinstance(key, OffsetCommitKey) else ():
                producer = Producer(producer_id, pending.open[producer_id].epoch)
                committed = self._append([encode_entry((key, value), timestamp)], codec, producer) or committed
        return committed
