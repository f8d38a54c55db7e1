"""AlterReplicaLogDirs and DescribeLogDirs, through the codec in every version."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.broker.handlers.conftest import Harness
from tests.unit.broker.storage.conftest import batch

from ottla.broker.controller.decisions import NewTopic
from ottla.model.errors import ErrorCode
from ottla.model.names import TopicPartition
from ottla.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from ottla.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse


@pytest.fixture
def two(start: Callable[..., Harness], tmp_path: Path) -> Harness:
    """A broker with two log directories, a topic of two partitions and ten records in the first."""
    harness = start(
        log_dirs=f"{tmp_path}/one,{tmp_path}/two", replica_alter_log_dirs_io_max_bytes_per_second="1"
    )  # fmt: skip
    asyncio.run(harness.broker.controller.create_topics([NewTopic("t", 2, 1)]))
    log = harness.logs.get(TopicPartition("t", 0))
    assert log is not None
    for _ in range(10):
        log.append_as_leader(batch(b"x"), 0, harness.clock.now_ms())
    return harness


def ask(harness: Harness, version: int, *wanted: tuple[str, str, int]) -> dict[tuple[str, int], int]:
    request = AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(topic, [number])])
            for path, topic, number in wanted
        ]
    )
    answer = harness.call(request, AlterReplicaLogDirsResponse, version)
    return {
        (topic.topic_name, partition.partition_index): partition.error_code
        for topic in answer.results
        for partition in topic.partitions
    }


def shown(harness: Harness, version: int) -> dict[tuple[str, int, bool], tuple[str, int]]:
    answer = harness.call(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, version)
    return {
        (topic.name, partition.partition_index, partition.is_future_key): (
            Path(directory.log_dir).name,
            partition.offset_lag,
        )
        for directory in answer.results
        for topic in directory.topics
        for partition in topic.partitions
    }


@pytest.mark.parametrize("version", [1, 2])
def test_a_copy_is_shown_until_it_takes_over(two: Harness, tmp_path: Path, version: int) -> None:
    places = shown(two, 4)
    assert places.keys() == {("t", 0, False), ("t", 1, False)}
    target = "two" if places["t", 0, False][0] == "one" else "one"
    assert ask(two, version, (f"{tmp_path}/{target}", "t", 0)) == {("t", 0): 0}
    places = shown(two, 4)
    assert places["t", 0, True][0] == target
    assert 0 < places["t", 0, True][1] <= 10
    assert places["t", 0, False][1] == 0
    back = "one" if target == "two" else "two"
    assert ask(two, version, (f"{tmp_path}/{back}", "t", 0)) == {("t", 0): 0}
    assert ("t", 0, True) not in shown(two, 4)


@pytest.mark.parametrize("version", [1, 2])
def test_each_partition_has_its_own_answer(two: Harness, tmp_path: Path, version: int) -> None:
    answers = ask(
        two, version, ("/nowhere", "t", 0), (f"{tmp_path}/two", "t", 9), (f"{tmp_path}/two", "unknown", 0),
        (f"{tmp_path}/one/../two", "t", 1), (f"{tmp_path}/two", "y" * 249, 0),
    )  # fmt: skip
    assert answers == {
        ("t", 0): ErrorCode.LOG_DIR_NOT_FOUND,
        ("t", 9): ErrorCode.REPLICA_NOT_AVAILABLE,
        ("unknown", 0): ErrorCode.REPLICA_NOT_AVAILABLE,
        ("t", 1): 0,
        ("y" * 249, 0): ErrorCode.INVALID_TOPIC_EXCEPTION,
    }


def test_a_topic_that_comes_later_goes_where_it_was_wanted(two: Harness, tmp_path: Path) -> None:
    for number in range(3):
        wanted = {("later", number): ErrorCode.REPLICA_NOT_AVAILABLE}
        assert ask(two, 2, (f"{tmp_path}/two", "later", number)) == wanted
    asyncio.run(two.broker.controller.create_topics([NewTopic("later", 3, 1)]))
    places = shown(two, 4)
    assert {places["later", number, False][0] for number in range(3)} == {"two"}


def test_an_offline_directory_takes_and_gives_nothing(two: Harness, tmp_path: Path) -> None:
    places = shown(two, 4)
    broken = next(directory for directory in two.logs.dirs if directory.path.endswith("two"))
    broken.fail(OSError("gone"))
    here = next(number for number in (0, 1) if places["t", number, False][0] == "one")
    there = 1 - here
    assert ask(two, 2, (f"{tmp_path}/two", "t", here)) == {("t", here): ErrorCode.KAFKA_STORAGE_ERROR}
    assert ask(two, 2, (f"{tmp_path}/one", "t", there)) == {("t", there): ErrorCode.KAFKA_STORAGE_ERROR}
    answer = two.call(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, 4)
    errors = {Path(directory.log_dir).name: directory.error_code for directory in answer.results}
    assert errors == {"one": 0, "two": ErrorCode.KAFKA_STORAGE_ERROR}
    assert all(directory.total_bytes > directory.usable_bytes > 0 for directory in answer.results[:1])
