"""One partition of a coordinator's topic with the machine that lives on it: write, replay, keep the log short."""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Iterable, Iterator
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from ottla.broker.coordination.log import CoordinatorLog
from ottla.broker.coordination.scheduler import TimerHandle
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.records import Codec, NewRecord, encode_batch

logger = logging.getLogger(__name__)

SNAPSHOT_LOG_BYTES_MIN = 16 * 1024 * 1024
SNAPSHOT_GROWTH = 4
"""A snapshot is due when the log behind it is this many times its size: load time stays in proportion to what there
is to load, and writing snapshots costs at most a quarter of what is written anyway."""
RECORDS_PER_BATCH_MAX = 500

T = TypeVar("T")


class LoggedMachine(Protocol):
    """A machine whose hard state is exactly what its log says."""

    def replay(self, key: Any, value: Any) -> None:
        """Take over what a record says; a value of None is a tombstone."""

    def snapshot(self) -> Iterator[tuple[Any, Any]]:
        """All live entries, each as it is when it is asked for, whatever changes in between."""

    def snapshot_size_bytes(self) -> int:
        """About how large a snapshot would be."""


M = TypeVar("M", bound=LoggedMachine)


def in_batches(entries: Iterable[T]) -> Iterator[list[T]]:
    remaining = iter(entries)
    while batch := list(itertools.islice(remaining, RECORDS_PER_BATCH_MAX)):
        yield batch


class MachineShard(Generic[M]):
    """What kind of machine it is, and how its entries are written, a subclass says."""

    TOPIC: ClassVar[str]
    """The coordinator's topic, as the log lines name it."""

    def __init__(self, partition: int, epoch: int, log: CoordinatorLog) -> None:
        self.partition = partition
        self.epoch = epoch
        """The leader epoch in which this broker leads the partition. In the next one there is another shard."""
        self.machine: M | None = None
        """None while the log is being read."""
        self.is_to_read = True
        self.failed = False
        """The log could not be read: this broker cannot answer for what lives here."""
        self.timers: dict[tuple[str, ...], TimerHandle] = {}
        self.last_commit: asyncio.Future[None] | None = None
        """The newest append that is not committed yet: later answers wait for it too."""
        self.unanswered: set[int] = set()
        """Tickets of those who wait for a commit."""
        self.readers: list[tuple[int, object]] = []
        """Tickets and answers of those who wait for the proof that this broker still leads."""
        self.is_proving = False
        self.snapshot_running = False
        self.bytes_since_snapshot = 0
        self._snapshot_due_at = SNAPSHOT_LOG_BYTES_MIN
        self._foreign: dict[bytes, bytes] = {}
        """Records that are not ours to interpret: a snapshot carries them on."""
        self._log = log

    @property
    def is_to_load(self) -> bool:
        return self.machine is None and not self.failed

    def encode(self, key: Any, value: Any, timestamp: int) -> NewRecord:
        raise NotImplementedError

    def write(self, entries: Iterable[tuple[Any, Any]], timestamp: int, codec: Codec) -> Awaitable[None] | None:
        """Append and replay. Raises, with nothing changed, if the append fails."""
        entries = list(entries)
        try:
            records = [self.encode(key, value, timestamp) for key, value in entries]
        except MalformedMessage as error:
            raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from None
        committed = self._append(records, codec)
        assert self.machine is not None
        for key, value in entries:
            self.machine.replay(key, value)
        return committed

    def _append(self, records: list[NewRecord], codec: Codec) -> Awaitable[None] | None:
        batch = encode_batch(records, codec=codec)
        committed = self._log.append(self.partition, batch, self.epoch)
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
        """
        assert self.machine is not None
        start = self._snapshot_start()
        before = self.bytes_since_snapshot
        own = 0
        for records in in_batches(NewRecord(key, value, timestamp) for key, value in self._foreign.items()):
            size = self.bytes_since_snapshot
            yield self._append(records, codec)
            own += self.bytes_since_snapshot - size
        for entries in in_batches(self.machine.snapshot()):
            size = self.bytes_since_snapshot
            committed = self._append_again(entries, timestamp, codec)
            own += self.bytes_since_snapshot - size
            yield committed
        yield self._log.truncate_before(self.partition, start, self.epoch)
        self.bytes_since_snapshot -= before + own
        self._snapshot_due_at = max(SNAPSHOT_LOG_BYTES_MIN, SNAPSHOT_GROWTH * own)
        logger.info(
            "%s-%d: Wrote a snapshot of %d bytes, log start offset is %d", self.TOPIC, self.partition, own, start
        )

    def _snapshot_start(self) -> int:
        """Where the log is to begin once the snapshot is written."""
        return self._log.end_offset(self.partition)

    def _append_again(self, entries: list[tuple[Any, Any]], timestamp: int, codec: Codec) -> Awaitable[None] | None:
        return self._append([self.encode(key, value, timestamp) for key, value in entries], codec)
