"""Compacted logs on their way to another directory: what was cleaned stays clean, and cleaning waits."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.broker.storage.compaction.conftest import append, clean
from tests.unit.broker.storage.conftest import NOW_MS, TOPIC_ID, ManagerKit, read_records

from ottla.broker.storage.compaction.cleaner import LogCleaner
from ottla.broker.storage.compaction.swapping import SegmentsChanged, swap_in
from ottla.broker.storage.log import Log
from ottla.broker.storage.manager import LogManager
from ottla.config.broker import BrokerSettings
from ottla.config.topic import TopicSettings
from ottla.model.names import TopicPartition

TABLE = TopicPartition("table", 0)


def opened(managers: ManagerKit) -> tuple[LogManager, Log]:
    managers.topics["table"] = TopicSettings(
        cleanup_policy=("compact",), segment_bytes=400, index_interval_bytes=100, min_cleanable_dirty_ratio=0.01
    )
    manager = managers.open("one", "two")
    return manager, manager.create(TABLE, TOPIC_ID)


def moved(manager: LogManager) -> Log:
    move = manager.moves[TABLE]
    while not move.is_complete:
        move.take_note()
        move.advance(NOW_MS, 300)
    log = manager.finish_move(TABLE)
    move.make_durable()
    manager.retire_old_directory(TABLE)
    move.forget_mark()
    return log


def test_a_cleaned_log_moves_with_its_gaps(managers: ManagerKit) -> None:
    manager, log = opened(managers)
    for number in range(60):
        append(log, (b"k%d" % (number % 7), b"%d" % number))
    assert clean(log) is not None
    log.cleaned_to = log.segments.active.base_offset
    before = [(record.offset, record.key, record.value) for record in read_records(log)]
    assert len(before) < 60
    cleaned_to = log.cleaned_to
    manager.begin_move(TABLE, manager.dirs[1])
    log = moved(manager)
    assert [(record.offset, record.key, record.value) for record in read_records(log)] == before
    assert (log.cleaned_to, log.end_offset) == (cleaned_to, 60)
    append(log, (b"k0", None))
    clean(log)
    manager.abandon()
    reopened = managers.open("one", "two").get(TABLE)
    assert reopened is not None
    assert {record.key for record in read_records(reopened)} == {b"k%d" % number for number in range(7)}


def test_cleaning_waits_until_the_move_is_over(managers: ManagerKit) -> None:
    manager, log = opened(managers)
    for number in range(60):
        append(log, (b"k%d" % (number % 7), b"%d" % number))
    cleaner = LogCleaner(manager, BrokerSettings, managers.clock)

    async def round_of_cleaning() -> int:
        try:
            return await cleaner.run()
        finally:
            await cleaner.stop()

    manager.begin_move(TABLE, manager.dirs[1])
    assert asyncio.run(round_of_cleaning()) == 0
    with pytest.raises(SegmentsChanged, match="on its way"):
        swap_in(log, log.segments.all[:1], [log.segments.all[0].size], 0)
    moved(manager)
    assert asyncio.run(round_of_cleaning()) == 1


STEP = st.one_of(
    st.tuples(st.just("append"), st.integers(0, 4)),
    st.tuples(st.just("delete"), st.integers(0, 4)),
    st.tuples(st.just("copy"), st.integers(1, 900)),
    st.tuples(st.just("clean"), st.just(0)),
    st.tuples(st.just("cut"), st.integers(1, 6)),
)


@settings(max_examples=60, deadline=None)
@given(before=st.lists(STEP, max_size=25), during=st.lists(STEP, max_size=40))
def test_whatever_happens_meanwhile_the_copy_is_the_log(
    before: list[tuple[str, int]], during: list[tuple[str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    managers = ManagerKit(Path(tmp_path_factory.mktemp("move")))
    manager, log = opened(managers)
    append(log, (b"first", b"1"))
    for number, (what, amount) in enumerate(before):
        play(manager, log, number, what, amount)
    manager.begin_move(TABLE, manager.dirs[1])
    for number, (what, amount) in enumerate(during):
        if what != "clean":  # the cleaner leaves logs alone that are on their way
            play(manager, log, number, what, amount)
    log = manager.moves[TABLE].source
    expected = [(record.offset, record.key, record.value) for record in read_records(log)]
    epochs = log.leader_epochs.entries()
    log = moved(manager)
    assert [(record.offset, record.key, record.value) for record in read_records(log)] == expected
    assert log.leader_epochs.entries() == epochs
    manager.abandon()
    manager = managers.open("one", "two")
    found = manager.get(TABLE)
    assert found is not None
    assert [(record.offset, record.key, record.value) for record in read_records(found)] == expected
    manager.abandon()


def play(manager: LogManager, log: Log, number: int, what: str, amount: int) -> None:
    move = manager.moves.get(TABLE)
    if what == "append":
        append(log, (b"k%d" % amount, b"%d" % number))
    elif what == "delete":
        append(log, (b"k%d" % amount, None))
    elif what == "clean":
        clean(log, NOW_MS + 10**12)
    elif what == "cut":
        log.truncate_to(max(log.cleaned_to or 0, log.segments.first_base_offset, log.end_offset - amount))
    elif move is not None:
        move.take_note()
        move.advance(NOW_MS, amount)
