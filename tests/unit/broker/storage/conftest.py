"""Logs and managers in a temporary directory, batches to put into them, and a disk that can be told to fail."""

import errno
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.broker.storage.disk import Disk
from ottla.broker.storage.index import IndexCache
from ottla.broker.storage.log import Log, LogEnvironment
from ottla.broker.storage.manager import LogManager
from ottla.broker.storage.recovery import KnownOffsets, create_log, open_log
from ottla.config.broker import BrokerSettings
from ottla.config.topic import TopicSettings
from ottla.model.names import TopicPartition
from ottla.protocol.compression import Buffer, Codec
from ottla.protocol.records import NewRecord, Record, decode_batch, encode_batch, iterate_batches
from ottla.testing.clock import ManualClock

NOW_MS = 1_700_000_000_000
TP = TopicPartition("events", 0)
TOPIC_ID = uuid.UUID(int=0x1234567890ABCDEF)


def batch(
    *values: bytes | None,
    timestamp: int = NOW_MS,
    key: bytes | None = b"k",
    codec: Codec = Codec.NONE,
    producer_id: int = -1,
    producer_epoch: int = 0,
    sequence: int = -1,
    base_offset: int = 0,
    leader_epoch: int = 0,
    transactional: bool = False,
    control: bool = False,
) -> bytearray:
    """One batch with these values, a millisecond apart."""
    return encode_batch(
        [NewRecord(key, value, timestamp + number) for number, value in enumerate(values or (b"v",))],
        codec=codec, producer_id=producer_id, producer_epoch=producer_epoch if producer_id >= 0 else -1,
        base_sequence=sequence, base_offset=base_offset, leader_epoch=leader_epoch,
        transactional=transactional, control=control,
    )  # fmt: skip


class FaultyDisk(Disk):
    """Real files that can be made to fail; syncs are counted instead of done, which keeps the tests quick.

    `room` is how many bytes the disk still takes before it is full.
    """

    def __init__(self) -> None:
        self.room: int | None = None
        self.write_error: int | None = None
        self.sync_error: int | None = None
        self.longest_write: int | None = None
        self.syncs: list[int] = []
        self.synced_paths: list[str] = []

    def pwrite(self, fd: int, data: Buffer, position: int, /) -> int:  # type: ignore[override]
        if self.write_error is not None:
            raise OSError(self.write_error, os.strerror(self.write_error))
        view = memoryview(data)
        if self.longest_write is not None:
            view = view[: self.longest_write]
        if self.room is not None:
            if self.room == 0 and len(view):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            view = view[: self.room]
            self.room -= len(view)
        return os.pwrite(fd, view, position)

    def fdatasync(self, fd: int, /) -> None:  # type: ignore[override]
        if self.sync_error is not None:
            raise OSError(self.sync_error, os.strerror(self.sync_error))
        self.syncs.append(fd)

    def sync_path(self, path: str) -> None:
        os.stat(path)
        self.synced_paths.append(path)


class LogKit:
    """One log that can be closed, crashed and opened again."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / str(TP)
        self.disk = FaultyDisk()
        self.doomed: list[str] = []
        self.failures: list[OSError] = []
        self.config = TopicSettings()

    def create(self, **settings: object) -> Log:
        self.config = TopicSettings(**settings)  # type: ignore[arg-type]
        return create_log(TP, TOPIC_ID, str(self.directory), self.config, self._environment(), NOW_MS)

    def open(
        self,
        *,
        clean: bool,
        start_offset: int = 0,
        recovery_point: int = 0,
        now_ms: int = NOW_MS,
        tails_may_be_lost: bool = False,
    ) -> Log:
        known = KnownOffsets(start_offset, recovery_point, clean, tails_may_be_lost)
        return open_log(TP, str(self.directory), self.config, self._environment(), known, now_ms)

    def reopen(self, log: Log, *, clean: bool) -> Log:
        if clean:
            log.close()
        else:
            log.release()
        return self.open(clean=clean, start_offset=log.start_offset, recovery_point=0 if clean else log.recovery_point)

    def _environment(self) -> LogEnvironment:
        def discard(paths: list[str], _: int) -> None:
            self.doomed.extend(paths)

        return LogEnvironment(self.disk, IndexCache(), discard, self.failures.append)

    def files(self, suffix: str) -> list[Path]:
        return sorted(self.directory.glob(f"*{suffix}"))


def read_records(log: Log, offset: int | None = None, end: int | None = None) -> list[Record]:
    """Everything from `offset` on, as a consumer would put it together from slices."""
    found: list[Record] = []
    next_offset = log.start_offset if offset is None else offset
    end = log.end_offset if end is None else end
    while next_offset < end:
        data = log.read(next_offset, 1 << 20, end, min_one_batch=True).read()
        before = next_offset
        for position, header in iterate_batches(data):
            found += [record for record in decode_batch(data, position) if record.offset >= next_offset]
            next_offset = header.next_offset
        if next_offset == before:
            break
    return found


def values(log: Log, offset: int | None = None) -> list[bytes | None]:
    return [record.value for record in read_records(log, offset)]


@pytest.fixture
def kit(tmp_path: Path) -> LogKit:
    return LogKit(tmp_path)


class ManagerKit:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = ManualClock(NOW_MS)
        self.topics: dict[str, TopicSettings] = {}
        self.disk = FaultyDisk()
        self.opened: list[LogManager] = []

    def manager(self, *names: str, cluster_id: str | None = "cluster", node_id: int = 1) -> LogManager:
        paths = tuple(str(self.root / name) for name in (names or ("data",)))
        manager = LogManager(
            BrokerSettings(log_dirs=paths, node_id=node_id, broker_id=node_id),
            lambda topic: self.topics.get(topic, TopicSettings()),
            self.clock, cluster_id=cluster_id, disk=self.disk,
        )  # fmt: skip
        self.opened.append(manager)
        return manager

    def open(self, *names: str) -> LogManager:
        manager = self.manager(*names)
        manager.open()
        return manager


@pytest.fixture
def managers(tmp_path: Path) -> Iterator[ManagerKit]:
    kit = ManagerKit(tmp_path)
    yield kit
    for manager in kit.opened:
        manager.abandon()


@pytest.fixture
def open_descriptors() -> Callable[[], int]:
    return lambda: len(os.listdir("/proc/self/fd"))
