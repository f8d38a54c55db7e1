"""Moves of replicas between the directories of a broker: who may ask, how fast they go, what they survive."""

import asyncio
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path

import pytest
from tests.unit.broker.storage.conftest import NOW_MS, FaultyDisk, batch, values

from ottla.broker.replication.moving import ReplicaMoves
from ottla.broker.storage.log import Log
from ottla.broker.storage.manager import LogManager
from ottla.config.broker import BrokerSettings
from ottla.config.topic import TopicSettings
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition

TP = TopicPartition("t", 0)
OTHER = TopicPartition("t", 1)


def in_a_loop(test: "Callable[[Kit], Coroutine[None, None, None]]") -> "Callable[[Kit], None]":
    def run(kit: "Kit") -> None:
        asyncio.run(test(kit))

    run.__name__ = test.__name__
    return run


class RealTime:
    def now_ms(self) -> int:
        return NOW_MS

    def monotonic(self) -> float:
        return time.monotonic()


class Kit:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.settings = BrokerSettings(log_dirs=tuple(str(root / name) for name in ("one", "two")))
        self.manager = self.open()
        self.moved: list[Log] = []
        self.limit: int | None = None

    def open(self) -> LogManager:
        manager = LogManager(
            self.settings, lambda _: TopicSettings(), RealTime(), cluster_id="c", disk=FaultyDisk()
        )  # fmt: skip
        manager.open()
        return manager

    def moves(self, **settings: int) -> ReplicaMoves:
        changed = BrokerSettings(log_dirs=self.settings.log_dirs, **settings)  # type: ignore[arg-type]
        return ReplicaMoves(self.manager, lambda: changed, RealTime(), self.moved.append)

    def path(self, name: str) -> str:
        return str(self.root / name)

    def place(self, tp: TopicPartition) -> str:
        directory = self.manager.directory_of(tp)
        assert directory is not None
        return Path(directory.path).name


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[Kit]:
    kit = Kit(tmp_path)
    yield kit
    kit.manager.abandon()


def fill(log: Log, count: int, size: int = 1) -> None:
    for number in range(log.end_offset, log.end_offset + count):
        log.append_as_leader(batch(b"%d" % number + b"." * size), 0, NOW_MS)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def refusal(moves: ReplicaMoves, tp: TopicPartition, path: str, *, assigned: bool = True) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        moves.request(tp, path, assigned=assigned)
    return caught.value.code


@in_a_loop
async def test_a_log_that_is_written_meanwhile_moves_whole(kit: Kit) -> None:
    log = kit.manager.create(TP, uuid.uuid4())
    fill(log, 2000, size=2000)
    moves = kit.moves()
    moves.request(TP, kit.path("two"), assigned=True)
    while not kit.moved:
        fill(log, 3, size=2000)
        await asyncio.sleep(0)
    (moved,) = kit.moved
    assert kit.manager.get(TP) is moved
    fill(moved, 10, size=2000)
    written = [b"%d" % number + b"." * 2000 for number in range(moved.end_offset)]
    assert values(moved) == written
    await until(lambda: not moves._tasks)
    assert sorted(path.name for path in (kit.root / "two").iterdir() if path.is_dir()) == ["t-0"]
    assert [path.name[-7:] for path in (kit.root / "one").iterdir() if path.is_dir()] == ["-delete"]
    await moves.stop()


@in_a_loop
async def test_a_limit_slows_the_move_and_nothing_else(kit: Kit) -> None:
    log = kit.manager.create(TP, uuid.uuid4())
    fill(log, 100, size=1000)
    moves = kit.moves(replica_alter_log_dirs_io_max_bytes_per_second=60_000)
    began = time.monotonic()
    moves.request(TP, kit.path("two"), assigned=True)
    await until(lambda: kit.moved)
    assert time.monotonic() - began > 0.8
    assert len(values(kit.moved[0])) == 100
    await moves.stop()


@in_a_loop
async def test_as_many_move_at_a_time_as_are_allowed(kit: Kit) -> None:
    logs = [kit.manager.create(TopicPartition("t", number), uuid.uuid4()) for number in range(4)]
    for log in logs:
        fill(log, 5)
    moves = kit.moves(num_replica_alter_log_dirs_threads=1)
    for log in logs:
        moves.request(log.tp, kit.path("two"), assigned=True)
    await until(lambda: len(kit.moved) == 2)
    await until(lambda: not moves._tasks)
    assert {kit.place(log.tp) for log in logs} == {"two"}
    await moves.stop()


@in_a_loop
async def test_who_asks_wrongly_is_told(kit: Kit) -> None:
    fill(kit.manager.create(TP, uuid.uuid4()), 5)
    moves = kit.moves()
    assert refusal(moves, TP, "/nowhere") == ErrorCode.LOG_DIR_NOT_FOUND
    assert refusal(moves, TP, "\0no path") == ErrorCode.LOG_DIR_NOT_FOUND
    assert refusal(moves, TopicPartition("x" * 240, 0), kit.path("two")) == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert refusal(moves, OTHER, kit.path("two"), assigned=False) == ErrorCode.REPLICA_NOT_AVAILABLE
    kit.manager.create(OTHER, uuid.uuid4())
    assert kit.place(OTHER) == "two"
    moves.request(TP, kit.path("one"), assigned=True)
    assert not kit.manager.moves
    kit.manager.dirs[1].fail(OSError("broken"))
    assert refusal(moves, TP, kit.path("two")) == ErrorCode.KAFKA_STORAGE_ERROR
    assert refusal(moves, OTHER, kit.path("one")) == ErrorCode.KAFKA_STORAGE_ERROR
    assert refusal(moves, TopicPartition("t", 9), kit.path("one")) == ErrorCode.KAFKA_STORAGE_ERROR
    assert refusal(moves, TopicPartition("t", 9), kit.path("one"), assigned=False) == ErrorCode.REPLICA_NOT_AVAILABLE


@in_a_loop
async def test_asking_for_where_it_is_ends_the_move(kit: Kit) -> None:
    log = kit.manager.create(TP, uuid.uuid4())
    fill(log, 100, size=1000)
    moves = kit.moves(replica_alter_log_dirs_io_max_bytes_per_second=1000)
    moves.request(TP, kit.path("two"), assigned=True)
    moves.request(TP, kit.path("two"), assigned=True)
    await until(lambda: kit.manager.moves[TP].copy.end_offset > 0)
    moves.request(TP, kit.path("one"), assigned=True)
    assert not kit.manager.moves
    await until(lambda: not moves._tasks)
    assert not kit.moved
    assert kit.place(TP) == "one"
    fill(log, 1)
    moves.request(TP, kit.path("two"), assigned=True)
    assert kit.manager.moves
    await moves.stop()


@in_a_loop
async def test_a_move_goes_on_after_a_clean_stop(kit: Kit) -> None:
    fill(kit.manager.create(TP, uuid.uuid4()), 100, size=1000)
    moves = kit.moves(replica_alter_log_dirs_io_max_bytes_per_second=1000)
    moves.request(TP, kit.path("two"), assigned=True)
    await until(lambda: kit.manager.moves[TP].copy.end_offset > 0)
    await moves.stop()
    copied = kit.manager.moves[TP].copy.end_offset
    kit.manager.close()
    kit.manager = kit.open()
    assert kit.manager.moves[TP].copy.end_offset == copied
    moves = kit.moves()
    moves.resume()
    await until(lambda: kit.moved)
    await until(lambda: not moves._tasks)
    assert len(values(kit.moved[0])) == 100
    await moves.stop()


@in_a_loop
async def test_a_move_begins_again_after_a_crash(kit: Kit) -> None:
    fill(kit.manager.create(TP, uuid.uuid4()), 100, size=1000)
    moves = kit.moves(replica_alter_log_dirs_io_max_bytes_per_second=1000)
    moves.request(TP, kit.path("two"), assigned=True)
    await until(lambda: kit.manager.moves[TP].copy.end_offset > 0)
    await moves.stop()
    kit.manager.abandon()
    kit.manager = kit.open()
    moves = kit.moves()
    moves.resume()
    await until(lambda: kit.moved)
    assert len(values(kit.moved[0])) == 100
    await moves.stop()


@in_a_loop
async def test_a_disk_that_fails_ends_the_move_and_not_the_log(kit: Kit) -> None:
    log = kit.manager.create(TP, uuid.uuid4())
    fill(log, 100, size=1000)
    moves = kit.moves(replica_alter_log_dirs_io_max_bytes_per_second=1000)
    moves.request(TP, kit.path("two"), assigned=True)
    kit.manager.dirs[1].fail(OSError("broken"))
    await until(lambda: not kit.manager.moves)
    assert not log.being_copied
    fill(log, 1)
    await moves.stop()


@in_a_loop
async def test_a_partition_deleted_on_its_way_is_gone(kit: Kit) -> None:
    fill(kit.manager.create(TP, uuid.uuid4()), 100, size=1000)
    moves = kit.moves(replica_alter_log_dirs_io_max_bytes_per_second=1000)
    moves.request(TP, kit.path("two"), assigned=True)
    await until(lambda: kit.manager.moves[TP].copy.end_offset > 0)
    kit.manager.delete(TP)
    await until(lambda: not moves._tasks)
    assert all(
        path.name.endswith("-delete")
        for name in ("one", "two")
        for path in (kit.root / name).iterdir()
        if path.is_dir()
    )
    await moves.stop()


@in_a_loop
async def test_what_is_cut_off_on_the_way_is_not_in_the_copy(kit: Kit) -> None:
    log = kit.manager.create(TP, uuid.uuid4())
    fill(log, 3000, size=2000)
    moves = kit.moves()
    moves.request(TP, kit.path("two"), assigned=True)
    await until(lambda: kit.moved or kit.manager.moves[TP].copy.end_offset > 0)
    for round_number in range(5):
        if kit.moved:
            break
        log.truncate_to(log.end_offset - 700)
        for _ in range(300):
            log.append_as_leader(batch(b"new %d" % log.end_offset), round_number + 1, NOW_MS)
        await asyncio.sleep(0.001)
    await until(lambda: kit.moved)
    moved = kit.moved[0]
    assert moved.end_offset == log.end_offset
    assert moved.leader_epochs.entries() == log.leader_epochs.entries()
    log.failure = None
    assert values(moved) == values(log)
    await moves.stop()
