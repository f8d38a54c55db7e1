"""All logs together: directories, checkpoints, clean stops and crashes, deletion, failing disks."""

import errno
import os
import resource
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.broker.storage.conftest import NOW_MS, ManagerKit, batch, read_records, values

from ottla.broker.storage.disk import Disk
from ottla.broker.storage.log import Log
from ottla.broker.storage.log_dir import PASSING_ERROR_TOLD_MS
from ottla.broker.storage.manager import LogManager
from ottla.config.broker import BrokerSettings
from ottla.config.topic import TopicSettings
from ottla.model.errors import ApiError, ErrorCode, OttlaError
from ottla.model.names import NO_TOPIC_ID, TopicPartition, format_topic_id
from ottla.testing.clock import ManualClock

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b-with-dash", 0)


def fill(log: Log, count: int) -> None:
    for number in range(log.end_offset, log.end_offset + count):
        log.append_as_leader(batch(b"%d" % number), 0, NOW_MS)


def fill_endlessly(log: Log) -> None:
    while True:
        fill(log, 1)


def found(manager: LogManager, tp: TopicPartition) -> Log:
    log = manager.get(tp)
    assert log is not None
    return log


def names(path: Path) -> set[str]:
    return {entry.name for entry in path.iterdir()}


def test_logs_come_back_after_a_clean_stop(managers: ManagerKit) -> None:
    manager = managers.open()
    ids = {tp: uuid.uuid4() for tp in (A0, A1, B0)}
    for number, (tp, topic_id) in enumerate(ids.items()):
        fill(manager.create(tp, topic_id), number + 2)
    manager.close()
    data = managers.root / "data"
    assert {".kafka_cleanshutdown", "meta.properties", ".lock", "recovery-point-offset-checkpoint"} <= names(data)
    assert (data / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":-1}'
    checkpoint = (data / "recovery-point-offset-checkpoint").read_text()
    assert checkpoint == "0\n3\na 0 2\na 1 3\nb-with-dash 0 4\n"
    assert (data / "replication-offset-checkpoint").read_text() == checkpoint
    manager = managers.open()
    assert not (data / ".kafka_cleanshutdown").exists()
    assert {log.tp: log.topic_id for log in manager.all()} == ids
    assert [len(read_records(found(manager, tp))) for tp in ids] == [2, 3, 4]
    assert manager.stored_high_watermark(A1) == 3


def test_a_crash_keeps_everything_written(managers: ManagerKit) -> None:
    manager = managers.open()
    log = manager.create(A0, uuid.uuid4())
    fill(log, 5)
    manager.checkpoint()
    fill(log, 5)
    manager.abandon()
    with open(managers.root / "data" / "a-0" / f"{0:020d}.log", "ab") as file:
        file.write(b"torn")
    log = found(managers.open(), A0)
    assert values(log) == [b"%d" % number for number in range(10)]


def test_a_clean_marker_vouches_once(managers: ManagerKit) -> None:
    manager = managers.open()
    fill(manager.create(A0, uuid.uuid4()), 5)
    manager.close()
    manager = managers.open()
    fill(found(manager, A0), 5)
    manager.abandon()
    file = managers.root / "data" / "a-0" / f"{0:020d}.log"
    file.write_bytes(file.read_bytes()[:-3])
    assert found(managers.open(), A0).end_offset == 9


def test_two_brokers_cannot_share_a_directory(managers: ManagerKit) -> None:
    managers.open()
    with pytest.raises(OttlaError, match="in use by another broker"):
        managers.manager().open()


def test_the_lock_ends_with_the_process(managers: ManagerKit) -> None:
    script = (
        "import os, sys; from ottla.broker.storage.log_dir import LogDir;"
        "from ottla.broker.storage.disk import Disk; from ottla.broker.storage.index import IndexCache;"
        "from ottla.broker.storage.open_files import OpenFiles;"
        "from ottla.testing.clock import ManualClock;"
        "LogDir(sys.argv[1], ManualClock(), Disk(), IndexCache(), OpenFiles()).claim(None, 1); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", script, str(managers.root / "data")], check=False).returncode == 9
    managers.open()


def test_a_failed_start_gives_the_locks_back(managers: ManagerKit) -> None:
    holder = managers.open("two")
    with pytest.raises(OttlaError):
        managers.manager("one", "two").open()
    managers.open("one")
    holder.close()


def test_directories_know_their_owner(managers: ManagerKit) -> None:
    managers.open().close()
    properties = dict(
        line.split("=", 1) for line in (managers.root / "data" / "meta.properties").read_text().splitlines()
    )
    assert properties.keys() == {"version", "cluster.id", "node.id", "directory.id"}
    assert (properties["version"], properties["cluster.id"], properties["node.id"]) == ("1", "cluster", "1")
    with pytest.raises(OttlaError, match="belongs to cluster cluster"):
        managers.manager(cluster_id="other").open()
    with pytest.raises(OttlaError, match="belongs to node 1"):
        managers.manager(node_id=2).open()
    managers.open()


def test_new_partitions_go_where_the_fewest_are(managers: ManagerKit) -> None:
    manager = managers.open("one", "two", "three")
    for number in range(9):
        manager.create(TopicPartition("t", number), uuid.uuid4())
    assert [len(directory.logs) for directory in manager.dirs] == [3, 3, 3]
    manager.close()
    manager = managers.open("one", "two", "three")
    assert len(manager.all()) == 9
    with pytest.raises(ApiError) as caught:
        manager.create(TopicPartition("t", 3), uuid.uuid4())
    assert caught.value.code is ErrorCode.TOPIC_ALREADY_EXISTS


def test_a_partition_in_two_directories_is_refused(managers: ManagerKit) -> None:
    manager = managers.open("one")
    manager.create(A0, uuid.uuid4())
    manager.close()
    manager = managers.open("two")
    manager.create(A0, uuid.uuid4())
    manager.close()
    with pytest.raises(OttlaError, match="in another log directory"):
        managers.manager("one", "two").open()


def test_deletion_is_immediate_and_files_go_later(managers: ManagerKit) -> None:
    managers.topics["a"] = TopicSettings(file_delete_delay_ms=1000)
    manager = managers.open()
    log = manager.create(A0, uuid.uuid4())
    fill(log, 3)
    piece = log.read(0, 1000, 3, min_one_batch=True)
    manager.delete(A0)
    assert manager.get(A0) is None
    with pytest.raises(ApiError) as caught:
        log.append_as_leader(batch(), 0, NOW_MS)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    data = managers.root / "data"
    doomed = [name for name in names(data) if name.endswith("-delete")]
    assert len(doomed) == 1
    prefix, _, unique = doomed[0].removesuffix("-delete").partition(".")
    assert (prefix, len(unique)) == ("a-0", 32)
    manager.create(A0, uuid.uuid4())
    assert manager.remove_deleted(managers.clock.now_ms()) == 0
    managers.clock.advance(1000)
    assert manager.remove_deleted(managers.clock.now_ms()) == 1
    assert {name for name in names(data) if name.startswith("a-")} == {"a-0"}
    assert piece.read(), "a reader that was already sending is not cut off"


def test_directory_names_fit_the_file_system(managers: ManagerKit) -> None:
    manager = managers.open()
    long = TopicPartition("x" * 249, 12345)
    manager.create(long, uuid.uuid4())
    manager.delete(long)
    assert [len(name) for name in names(managers.root / "data") if name.endswith("-delete")] == [255]


def test_a_start_finishes_deletions(managers: ManagerKit) -> None:
    manager = managers.open()
    manager.create(A0, uuid.uuid4())
    manager.delete(A0)
    manager.close()
    manager = managers.open()
    assert manager.all() == []
    assert manager.remove_deleted(NOW_MS) == 1
    assert not [name for name in names(managers.root / "data") if "delete" in name]


def test_a_recreated_topic_does_not_inherit_offsets(managers: ManagerKit) -> None:
    manager = managers.open()
    log = manager.create(A0, uuid.uuid4())
    fill(log, 10)
    log.delete_records_before(8)
    manager.checkpoint()
    manager.delete(A0)
    fill(manager.create(A0, uuid.uuid4()), 3)
    manager.abandon()
    log = found(managers.open(), A0)
    assert (log.start_offset, log.end_offset) == (0, 3)


def test_the_start_of_a_log_is_remembered(managers: ManagerKit) -> None:
    manager = managers.open()
    log = manager.create(A0, uuid.uuid4())
    fill(log, 10)
    log.delete_records_before(7)
    manager.checkpoint()
    checkpoint = managers.root / "data" / "log-start-offset-checkpoint"
    assert checkpoint.read_text() == "0\n1\na 0 7\n"
    manager.abandon()
    assert found(managers.open(), A0).start_offset == 7


@pytest.mark.parametrize("content", ["", "0\n", "0\n5\na 0 1\n", "9\n0\n", "0\n1\na zero 1\n", "\x00\xff"])
def test_damaged_checkpoints_only_cost_time(managers: ManagerKit, content: str) -> None:
    manager = managers.open()
    fill(manager.create(A0, uuid.uuid4()), 4)
    manager.close()
    for file in (managers.root / "data").glob("*-checkpoint"):
        file.write_text(content, encoding="latin-1")
    (managers.root / "data" / ".kafka_cleanshutdown").unlink()
    assert len(read_records(found(managers.open(), A0))) == 4


def test_strays(managers: ManagerKit) -> None:
    manager = managers.open()
    ids = {tp: uuid.uuid4() for tp in (A0, A1, B0)}
    for tp, topic_id in ids.items():
        manager.create(tp, topic_id)
    assert manager.strays(ids) == []
    assert [log.tp for log in manager.strays({**ids, A1: uuid.uuid4()})] == [A1]
    assert [log.tp for log in manager.strays({A0: ids[A0], A1: NO_TOPIC_ID})] == [B0]
    moved = manager.mark_stray(B0)
    assert moved is not None
    assert moved.endswith("-stray")
    assert os.path.isdir(moved)
    manager.close()
    assert managers.open().get(B0) is None


def test_an_empty_partition_metadata_file(managers: ManagerKit) -> None:
    manager = managers.open()
    manager.create(A0, uuid.uuid4())
    manager.close()
    file = managers.root / "data" / "a-0" / "partition.metadata"
    file.write_bytes(b"")
    assert found(managers.open(), A0).topic_id == NO_TOPIC_ID


def test_foreign_directories_are_left_alone(managers: ManagerKit) -> None:
    data = managers.root / "data"
    for name in ("__cluster_metadata-0", "lost+found", "a-0.0123-future", "notes", "a-"):
        (data / name).mkdir(parents=True)
    manager = managers.open()
    assert manager.all() == []
    manager.close()
    assert {"__cluster_metadata-0", "lost+found", "a-0.0123-future", "notes", "a-"} <= names(data)


def test_one_broken_disk_leaves_the_others(managers: ManagerKit) -> None:
    manager = managers.open("one", "two")
    logs = [manager.create(TopicPartition("t", number), uuid.uuid4()) for number in range(4)]
    for log in logs:
        fill(log, 1)
    managers.disk.write_error = errno.EIO
    with pytest.raises(ApiError):
        fill(logs[0], 1)
    managers.disk.write_error = None
    broken = manager.directory_of(logs[0].tp)
    assert broken is not None
    assert broken.failure is not None
    for log in logs:
        if manager.directory_of(log.tp) is broken:
            with pytest.raises(ApiError) as caught:
                fill(log, 1)
            assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        else:
            fill(log, 1)
    assert manager.directory_of(manager.create(TopicPartition("t", 9), uuid.uuid4()).tp) is not broken
    manager.checkpoint()
    manager.close()
    clean = [".kafka_cleanshutdown" in names(managers.root / name) for name in ("one", "two")]
    assert sorted(clean) == [False, True]
    again = managers.open("one", "two")
    assert sorted(log.end_offset for log in again.all() if log.tp.partition < 4) == [1, 1, 2, 2]


def test_a_failed_sync_takes_the_directory_offline(managers: ManagerKit) -> None:
    managers.topics["a"] = TopicSettings(flush_messages=1)
    manager = managers.open()
    log = manager.create(A0, uuid.uuid4())
    fill(log, 1)
    managers.disk.sync_error = errno.EIO
    manager.flush_due(NOW_MS)
    with pytest.raises(ApiError):
        fill(log, 1)
    with pytest.raises(ApiError, match="every log directory is offline"):
        manager.create(A1, uuid.uuid4())


def test_flushing_a_log_that_is_being_deleted_is_no_disk_failure(managers: ManagerKit) -> None:
    manager = managers.open()
    log = manager.create(A0, uuid.uuid4())
    fill(log, 1)
    manager.delete(A0)
    with pytest.raises(ApiError):
        log.flush()
    assert manager.dirs[0].failure is None


def test_periodic_jobs(managers: ManagerKit) -> None:
    managers.topics["a"] = TopicSettings(segment_bytes=300, flush_messages=5, retention_ms=1000)
    manager = managers.open()
    log = manager.create(A0, uuid.uuid4())
    other = manager.create(B0, uuid.uuid4())
    fill(log, 10)
    log.append_as_leader(batch(producer_id=3, sequence=0), 0, NOW_MS)
    fill(other, 10)
    assert manager.flush_due(NOW_MS) == 1
    assert (log.unflushed_records, other.unflushed_records) == (0, 10)
    assert manager.expire_producers(NOW_MS) == 0
    assert manager.expire_producers(NOW_MS + 86_400_000) == 1
    assert manager.apply_retention(NOW_MS + 10_000) > 1
    assert (log.start_offset, other.start_offset) == (11, 0)
    managers.clock.advance(60_000)
    assert manager.remove_deleted(managers.clock.now_ms()) > 3
    assert not list((managers.root / "data" / "a-0").glob("*.deleted"))
    managers.topics["a"] = TopicSettings(max_message_bytes=10)
    manager.reconfigure(["a"])
    with pytest.raises(ApiError):
        fill(log, 1)


def test_progress_is_reported(managers: ManagerKit) -> None:
    manager = managers.open()
    for tp in (A0, A1, B0):
        manager.create(tp, uuid.uuid4())
    manager.abandon()
    seen: list[tuple[int, int]] = []
    watched = LogManager(
        BrokerSettings(log_dirs=(str(managers.root / "data"),)),
        lambda _: TopicSettings(),
        managers.clock,
        progress=lambda _, done, total: seen.append((done, total)),
    )
    watched.open()
    watched.close()
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_unchanged_checkpoints_are_not_written_again(managers: ManagerKit) -> None:
    manager = managers.open()
    fill(manager.create(A0, uuid.uuid4()), 1)
    manager.checkpoint()
    managers.disk.synced_paths.clear()
    manager.checkpoint()
    assert managers.disk.synced_paths == []


def test_a_really_full_disk(tmp_path: Path) -> None:
    """The kernel itself refuses to let files grow, as it does when the disk is full."""
    clock = ManualClock(NOW_MS)
    manager = LogManager(BrokerSettings(log_dirs=(str(tmp_path / "data"),)), lambda _: TopicSettings(), clock)
    manager.open()
    log = manager.create(A0, uuid.uuid4())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))
    acknowledged = 0
    try:
        while acknowledged < 20:
            log.append_as_leader(batch(b"%d" % acknowledged), 0, NOW_MS)
            acknowledged += 1
        with pytest.raises(ApiError) as caught:
            fill_endlessly(log)
        acknowledged = log.end_offset
        assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert values(log) == [b"%d" % number for number in range(acknowledged)]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert log.append_as_leader(batch(b"after"), 0, NOW_MS).base_offset == acknowledged
    manager.close()
    manager.open()
    assert values(found(manager, A0)) == [*(b"%d" % number for number in range(acknowledged)), b"after"]
    manager.close()


def test_two_thousand_partitions_hold_one_descriptor_each(
    managers: ManagerKit, open_descriptors: Callable[[], int]
) -> None:
    manager = managers.open()
    for number in range(2000):
        manager.create(TopicPartition("t", number), uuid.uuid4())
    for log in manager.all():
        fill(log, 1)
    manager.close()
    before = open_descriptors()
    manager.open()
    assert len(manager.all()) == 2000
    assert all(log.end_offset == 1 for log in manager.all())
    assert open_descriptors() - before <= 2001
    manager.close()


def test_a_real_disk_is_synced(tmp_path: Path) -> None:
    clock = ManualClock(NOW_MS)
    settings = BrokerSettings(log_dirs=(str(tmp_path),))
    manager = LogManager(settings, lambda _: TopicSettings(segment_bytes=300), clock, cluster_id="c", disk=Disk())
    manager.open()
    log = manager.create(A0, uuid.uuid4())
    fill(log, 10)
    assert manager.flush_due(NOW_MS) == 1
    assert log.recovery_point == 10
    manager.close()
    assert format_topic_id(log.topic_id) in (tmp_path / "a-0" / "partition.metadata").read_text()


def test_a_full_disk_is_told_once_in_a_while(managers: ManagerKit, caplog: pytest.LogCaptureFixture) -> None:
    manager = managers.open("one")
    log = manager.create(A0, uuid.uuid4())
    fill(log, 1)
    managers.disk.write_error = errno.ENOSPC

    def told_after(tries: int) -> int:
        for _ in range(tries):
            with pytest.raises(ApiError):
                fill(log, 1)
        return caplog.text.count("No space left on device. It stays online")

    assert told_after(5) == 1
    managers.clock.advance(PASSING_ERROR_TOLD_MS)
    assert told_after(5) == 2
    managers.disk.write_error = None
    fill(log, 1)


@pytest.mark.parametrize(("code", "offline"), [(errno.ENOSPC, False), (errno.EIO, True)])
def test_a_disk_that_takes_no_checkpoint_is_full_or_broken(managers: ManagerKit, code: int, offline: bool) -> None:
    manager = managers.open("one", "two")
    fill(manager.create(A0, uuid.uuid4()), 3)
    managers.disk.write_error = code
    manager.checkpoint()
    managers.disk.write_error = None
    assert [directory.failure is not None for directory in manager.dirs] == [offline, False]
    assert (manager.any_offline, manager.all_offline) == (offline, False)
    if not offline:
        manager.checkpoint()
        assert "a 0 3" in (managers.root / "one" / "replication-offset-checkpoint").read_text()
