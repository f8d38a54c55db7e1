"""Offsets translated exactly, over every kind of gap."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.producer import Appended
from ottla.model.names import TopicPartition
from ottla.pipelines.mirror.offset_map import RUNS_PER_NOTE, Entry, OffsetMap, from_record, to_notes, to_tombstone
from ottla.spark.writing.copied import Note, Run, UnknownPlaces, runs_of

HERE, THERE = TopicPartition("orders", 3), TopicPartition("east.orders", 3)


def read(note: Note) -> Entry:
    assert note.value is not None
    return from_record(note.key, note.value)


def offsets(gaps: list[int]) -> list[int]:
    return [int(at) for at in np.cumsum([gap + 1 for gap in gaps]) - 1]


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=8), min_size=1, max_size=6), st.data())
def test_every_offset_leads_to_the_next_unread_record(batches: list[list[int]], data: st.DataObject) -> None:
    source = offsets([gap for batch in batches for gap in batch])
    known, at, base = OffsetMap(), 0, 0
    target: list[int] = []
    for batch in batches:
        sizes, left = [], len(batch)
        while left:  # a micro-batch is appended as several record batches, others may write between them
            sizes.append(data.draw(st.integers(1, left)))
            left -= sizes[-1]
        appended = []
        for number, size in enumerate(sizes):
            base += data.draw(st.integers(0, 2))
            appended.append(Appended(number, base, size))
            target += range(base, base + size)
            base += size
        base += 1  # the marker of the transaction
        runs = runs_of(np.array(source[at : at + len(batch)]), appended[::-1])
        at += len(batch)
        notes = to_notes("map", Entry(HERE, THERE, runs))
        known.add(read(note) for note in notes)
    for offset in range(source[-1] + 3):
        unread = [there for here, there in zip(source, target, strict=True) if here >= offset]
        place = known.translate(HERE, offset, whole=True)
        assert place == (unread[0] if unread else target[-1] + 1)
    assert known.target_of(HERE) == THERE


def test_what_was_not_copied_is_not_translated() -> None:
    known = OffsetMap()
    assert known.translate(HERE, 5, whole=True) is None
    known.add([Entry(HERE, THERE, [Run(100, 0, 10)])])
    assert known.translate(HERE, 99, whole=False) is None
    assert known.translate(HERE, 99, whole=True) == 0
    assert known.translate(HERE, 104, whole=False) == 4


def test_a_source_that_was_made_anew_begins_anew() -> None:
    known = OffsetMap()
    known.add([Entry(HERE, THERE, [Run(100, 0, 10)]), Entry(HERE, THERE, [Run(0, 11, 5)])])
    assert known.translate(HERE, 2, whole=True) == 13
    assert known.last(HERE) == Run(0, 11, 5)


def test_a_broker_that_does_not_say_where_stops_the_batch() -> None:
    with pytest.raises(UnknownPlaces, match="does not know any more"):
        runs_of(np.arange(3), [Appended(0, -1, 3)])
    with pytest.raises(UnknownPlaces, match="3 records were handed over and 2"):
        runs_of(np.arange(3), [Appended(0, 7, 2)])
    assert runs_of(np.arange(0), []) == []


def test_many_gaps_are_several_notes() -> None:
    runs = [Run(2 * number, number, 1) for number in range(RUNS_PER_NOTE + 1)]
    notes = to_notes("map", Entry(HERE, THERE, runs))
    assert [len(read(note).runs) for note in notes] == [RUNS_PER_NOTE, 1]
    assert len({note.key for note in notes}) == 2


def test_what_the_target_has_deleted_is_forgotten() -> None:
    known = OffsetMap()
    entries = [Entry(HERE, THERE, [Run(at, at + at // 10, 10)]) for at in (0, 10, 20)]  # 0-9, 11-20, 22-31
    known.add(entries)
    assert known.forget(HERE, 9) == []
    assert known.forget(HERE, 21) == entries[:2]
    assert known.translate(HERE, 3, whole=True) == 22, "the first record that is left"
    assert known.translate(HERE, 25, whole=True) == 27
    assert known.forget(HERE, 1000) == []
    assert known.translate(HERE, 30, whole=True) == 32
    gone = to_tombstone("map", entries[0])
    assert (gone.key, gone.value) == (to_notes("map", entries[0])[0].key, None)
