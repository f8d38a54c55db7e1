"""More partitions than files may be open: every one can be written and read, and nobody's file closes under them."""

import resource
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

from tests.unit.broker.storage.conftest import NOW_MS, LogKit, batch, values

from ottla.broker.storage.log import Log
from ottla.broker.storage.manager import LogManager
from ottla.broker.storage.open_files import SHARE, OpenFiles, for_segments
from ottla.config.broker import BrokerSettings
from ottla.config.topic import TopicSettings
from ottla.model.names import TopicPartition
from ottla.testing.clock import ManualClock

LIMIT = 5
LOGS = 40


def manager_of(folder: Path, limit: int = LIMIT) -> LogManager:
    settings = BrokerSettings(log_dirs=(str(folder / "data"),))
    manager = LogManager(settings, lambda _: TopicSettings(), ManualClock(NOW_MS), open_files_max=limit)
    manager.open()
    return manager


def create(manager: LogManager, count: int = LOGS) -> list[Log]:
    return [manager.create(TopicPartition("t", number), uuid.uuid4()) for number in range(count)]


def test_segments_share_the_files_that_may_be_open(tmp_path: Path, open_descriptors: Callable[[], int]) -> None:
    manager = manager_of(tmp_path)
    before = open_descriptors()
    logs = create(manager)
    assert open_descriptors() - before <= LIMIT
    for value in (b"first", b"second"):
        for log in logs:
            log.append_as_leader(batch(value), 0, NOW_MS)
            assert open_descriptors() - before <= LIMIT
    assert [values(log) for log in logs] == [[b"first", b"second"]] * LOGS
    manager.close()
    manager.open()
    assert [values(log) for log in manager.all()] == [[b"first", b"second"]] * LOGS
    assert open_descriptors() - before <= LIMIT
    manager.close()
    assert len(manager.files) == 0
    assert open_descriptors() <= before


def test_a_slice_that_is_being_sent_keeps_its_file(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    logs = create(manager)
    logs[0].append_as_leader(batch(b"sent"), 0, NOW_MS)
    found = logs[0].read(0, 1 << 20, 1, min_one_batch=True)
    for log in logs[1:]:
        log.append_as_leader(batch(b"other"), 0, NOW_MS)
    assert b"sent" in found.read()
    manager.close()


def test_a_log_that_goes_takes_its_file_along(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    logs = create(manager, LIMIT)
    assert len(manager.files) == LIMIT
    manager.delete(logs[0].tp)
    assert len(manager.files) == LIMIT - 1
    manager.close()


def test_a_segment_whose_name_another_takes_keeps_its_file(kit: LogKit) -> None:
    log = kit.create()
    log.append_as_leader(batch(b"kept"), 0, NOW_MS)
    segment, files = log.segments.active, log.environment.files
    segment.release_file()
    segment.detach()
    assert len(files) == 0
    (path,) = kit.files(".log")
    path.unlink()
    path.write_bytes(b"another's")
    assert b"kept" in segment.read_batch(0)


def test_files_are_let_go_while_others_write(tmp_path: Path) -> None:
    """A number that is closed under a write is soon another file's: what is read back would not be one's own."""
    manager = manager_of(tmp_path, limit=2)
    logs = create(manager, 8)
    rounds = 200

    def write(own: list[Log]) -> None:
        for number in range(rounds):
            for log in own:
                log.append_as_leader(batch(b"%d of %d" % (number, log.tp.partition)), 0, NOW_MS)

    threads = [threading.Thread(target=write, args=(logs[first::4],)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for log in logs:
        assert values(log) == [b"%d of %d" % (number, log.tp.partition) for number in range(rounds)]
    manager.close()


def test_connections_keep_a_share_of_the_descriptors() -> None:
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert 0 < for_segments() <= allowed * SHARE


def test_the_last_one_is_not_told_to_let_go() -> None:
    class Owner:
        released = 0

        def release_file(self) -> None:
            self.released += 1

    files, first, second = OpenFiles(0), Owner(), Owner()
    files.opened(first)
    files.opened(second)
    assert (first.released, second.released, len(files)) == (1, 0, 1)
