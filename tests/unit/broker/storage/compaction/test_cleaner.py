"""The broker's side: which logs are cleaned, and what happens when something comes between."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.unit.broker.storage.compaction.conftest import append
from tests.unit.broker.storage.conftest import NOW_MS, TOPIC_ID, ManagerKit, read_records

from ottla.broker.storage.compaction.cleaner import LogCleaner
from ottla.broker.storage.log import Log
from ottla.broker.storage.manager import LogManager
from ottla.config.broker import BrokerSettings
from ottla.config.topic import TopicSettings
from ottla.model.names import TopicPartition
from ottla.testing.waiting import wait_until

TABLE, OTHER, EVENTS = TopicPartition("table", 0), TopicPartition("other", 0), TopicPartition("events", 0)
SLOW_BYTES_PER_SECOND = 80_000.0


class CleanerKit:
    def __init__(self, managers: ManagerKit) -> None:
        self.managers = managers
        for topic, policy in (("table", "compact"), ("other", "compact"), ("events", "delete")):
            managers.topics[topic] = TopicSettings(cleanup_policy=(policy,), segment_bytes=4000)
        self.logs = managers.open()
        self.settings = BrokerSettings()
        self.cleaner = self.new_cleaner(self.logs)

    def new_cleaner(self, logs: LogManager) -> LogCleaner:
        return LogCleaner(logs, lambda: self.settings, self.managers.clock)

    def filled(self, tp: TopicPartition, records: int = 400) -> Log:
        log = self.logs.create(tp, TOPIC_ID)
        for number in range(records):
            append(log, (b"key-%d" % (number % 10), b"%d" % number + b"x" * 30))
        return log

    async def round(self) -> int:
        try:
            return await self.cleaner.run()
        finally:
            await self.cleaner.stop()

    async def in_the_middle(self, log: Log, interrupt: Callable[[], object]) -> int:
        """Begin a slow round, and do something once files are being written."""
        self.settings = BrokerSettings(log_cleaner_io_max_bytes_per_second=SLOW_BYTES_PER_SECOND)
        round_ = asyncio.create_task(self.round())
        folder = Path(log.directory)
        await asyncio.to_thread(wait_until, lambda: list(folder.glob("*.cleaned")), "files are written", seconds=30)
        interrupt()
        self.settings = BrokerSettings()
        return await round_


@pytest.fixture
def kit(managers: ManagerKit) -> Iterator[CleanerKit]:
    kit = CleanerKit(managers)
    yield kit
    assert not list(managers.root.rglob("*.cleaned"))
    assert not list(managers.root.rglob("*.swap"))


def keys(log: Log) -> list[bytes | None]:
    return [record.key for record in read_records(log) if record.offset < log.segments.active.base_offset]


def test_compacted_logs_are_cleaned_and_others_are_not(kit: CleanerKit) -> None:
    table, other, events = kit.filled(TABLE), kit.filled(OTHER), kit.filled(EVENTS)
    newest = {record.key: record.offset for record in read_records(table)}
    assert asyncio.run(kit.round()) == 2
    for log in (table, other):
        assert len(keys(log)) == 10
        assert log.cleaned_to == log.segments.active.base_offset
        assert {record.key: record.offset for record in read_records(log)} == newest
    assert len(read_records(events)) == 400
    assert asyncio.run(kit.round()) == 0


def test_where_a_log_is_clean_is_remembered(kit: CleanerKit) -> None:
    log = kit.filled(TABLE)
    asyncio.run(kit.round())
    cleaned_to, records = log.cleaned_to, read_records(log)
    kit.logs.close()
    text = (kit.managers.root / "data" / "cleaner-offset-checkpoint").read_text()
    assert text == f"0\n1\ntable 0 {cleaned_to}\n"
    again = kit.managers.open().get(TABLE)
    assert again is not None
    assert again.cleaned_to == cleaned_to
    assert read_records(again) == records


def test_a_log_is_dirty_again_after_it_was_truncated(kit: CleanerKit) -> None:
    log = kit.filled(TABLE)
    asyncio.run(kit.round())
    log.truncate_to(150)
    assert log.cleaned_to is not None
    assert log.cleaned_to <= 150
    for number in range(300):
        append(log, (b"key-%d" % (number % 10), b"again %d" % number + b"x" * 30))
    assert asyncio.run(kit.round()) == 1
    assert len(keys(log)) == 10


def test_nothing_is_started_for_nothing(kit: CleanerKit) -> None:
    kit.filled(EVENTS)
    kit.logs.create(TABLE, TOPIC_ID)
    assert asyncio.run(kit.cleaner.run()) == 0
    assert [process.pid for process in kit.cleaner._processes] == [None]
    kit.filled(OTHER)
    kit.settings = BrokerSettings(log_cleaner_enable=False)
    assert asyncio.run(kit.cleaner.run()) == 0


def test_several_processes(kit: CleanerKit) -> None:
    kit.settings = BrokerSettings(log_cleaner_threads=2)
    logs = [kit.filled(TABLE), kit.filled(OTHER)]
    assert asyncio.run(kit.round()) == 2
    assert [len(keys(log)) for log in logs] == [10, 10]


def test_a_stop_in_the_middle_leaves_the_log_as_it_was(kit: CleanerKit) -> None:
    log = kit.filled(TABLE, 1500)
    before = read_records(log)

    async def scenario() -> None:
        task = asyncio.current_task()
        assert task is not None
        with pytest.raises(asyncio.CancelledError):
            await kit.in_the_middle(log, lambda: next(t for t in asyncio.all_tasks() if t is not task).cancel())

    asyncio.run(scenario())
    assert [record for record in read_records(log) if record in before] == read_records(log)
    assert asyncio.run(kit.round()) == 1
    assert len(keys(log)) == 10


def test_a_deletion_in_the_middle(kit: CleanerKit) -> None:
    log = kit.filled(TABLE, 1500)

    def recreate() -> None:
        kit.logs.delete(TABLE)
        kit.filled(TABLE, 20)

    assert asyncio.run(kit.in_the_middle(log, recreate)) == 0
    new = kit.logs.get(TABLE)
    assert new is not None
    assert len(read_records(new)) == 20
    for path in kit.managers.root.rglob("*.cleaned"):
        assert "-delete" in str(path)
        path.unlink()


def test_retention_in_the_middle(kit: CleanerKit) -> None:
    log = kit.filled(TABLE, 1500)
    assert asyncio.run(kit.in_the_middle(log, lambda: log.delete_records_before(1000))) == 0
    assert log.start_offset == 1000
    assert asyncio.run(kit.round()) == 1
    assert len([key for key in keys(log) if key is not None]) == 10


def test_the_process_dies_in_the_middle(kit: CleanerKit) -> None:
    log = kit.filled(TABLE, 1500)

    def kill() -> None:
        pid = kit.cleaner._processes[0].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    assert asyncio.run(kit.in_the_middle(log, kill)) == 0
    assert asyncio.run(kit.round()) == 1
    assert len(keys(log)) == 10


def test_a_damaged_log_is_left_alone(kit: CleanerKit) -> None:
    damaged, sound = kit.filled(TABLE), kit.filled(OTHER)
    with open(damaged.segments.all[0].prefix + ".log", "r+b") as file:
        file.seek(200)
        file.write(b"\xff")
    before = damaged.size_bytes
    assert asyncio.run(kit.round()) == 1
    assert list(kit.cleaner.uncleanable) == [TABLE]
    assert damaged.size_bytes == before
    assert len(keys(sound)) == 10
    assert asyncio.run(kit.round()) == 0


def test_a_reader_keeps_what_it_was_given(kit: CleanerKit) -> None:
    log = kit.filled(TABLE)
    old = log.segments.all[0]
    piece = log.read(0, 1000, log.end_offset, min_one_batch=True)
    before = piece.read()
    asyncio.run(kit.round())
    assert log.segments.all[0] is not old
    assert piece.read() == before
    assert old.find(5) is not None
    old.rebuild_indexes()
    assert [record.offset for record in read_records(log, 0)][:1] != [0]
    assert log.offset_for_timestamp(NOW_MS) is not None


def test_the_broker_itself_does_without_numpy() -> None:
    """It would cost an idle broker as much memory again."""
    check = "import sys, ottla.broker.node; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
