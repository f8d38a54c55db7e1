"""The cost of a request does not grow with what it does not touch. Counted in function calls: no clock is involved."""

from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from tests.unit.counting import calls_of

from ottla.broker.storage.log import Log
from ottla.broker.storage.manager import LogManager
from ottla.config.broker import BrokerSettings
from ottla.config.topic import TopicSettings
from ottla.model.names import TopicPartition
from ottla.protocol.records import NewRecord, encode_batch
from ottla.testing.clock import ManualClock

CLOCK = ManualClock()


def open_logs(directory: Path, count: int, settings: TopicSettings) -> tuple[LogManager, Log]:
    directory.mkdir()
    manager = LogManager(replace(BrokerSettings(), log_dirs=(str(directory),)), lambda _: settings, CLOCK)
    manager.open()
    for number in range(count):
        manager.create(TopicPartition("t", number), uuid4(), settings)
    log = manager.get(TopicPartition("t", 0))
    assert log is not None
    return manager, log


def append(log: Log) -> None:
    log.append_as_leader(encode_batch([NewRecord(b"k", b"v" * 100, CLOCK.now_ms())]), 0, CLOCK.now_ms())


@pytest.mark.parametrize("offset_share", [0.0, 0.5])
def test_appends_and_reads_cost_the_same_with_many_partitions(tmp_path: Path, offset_share: float) -> None:
    costs = []
    for count in (1, 2_000):
        manager, log = open_logs(tmp_path / str(count), count, TopicSettings())
        for _ in range(50):
            append(log)
        offset = int(log.end_offset * offset_share)

        def read(log: Log = log, offset: int = offset) -> object:
            return log.read(offset, 1000, log.end_offset, min_one_batch=True)

        read()
        costs.append((calls_of(lambda log=log: append(log)), calls_of(read)))  # type: ignore[misc]
        manager.close()
    assert costs[0] == costs[1]


def test_appends_cost_the_same_with_many_segments(tmp_path: Path) -> None:
    costs = []
    for segments in (1, 400):
        manager, log = open_logs(tmp_path / str(segments), 1, replace(TopicSettings(), segment_bytes=8_000))
        while len(log.segments) < segments:
            append(log)
        for _ in range(3):
            append(log)
        costs.append(calls_of(lambda log=log: append(log)))  # type: ignore[misc]
        manager.close()
    assert costs[0] == costs[1]


def test_a_read_costs_about_the_same_with_many_segments(tmp_path: Path) -> None:
    """Finding the segment is a search by halves: 400 segments cost a few comparisons inside one call, no more calls."""
    manager, log = open_logs(tmp_path / "logs", 1, replace(TopicSettings(), segment_bytes=8_000))
    costs = []
    for segments in (10, 400):
        while len(log.segments) < segments:
            append(log)
        middle = log.end_offset // 2

        def read(offset: int = middle) -> object:
            return log.read(offset, 1000, log.end_offset, min_one_batch=True)

        read()
        costs.append(calls_of(read))
    manager.close()
    assert abs(costs[0] - costs[1]) <= 8
