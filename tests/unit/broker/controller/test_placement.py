"""Replicas spread evenly, over brokers and over racks."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.placement import place, start_of

BROKERS = st.sets(st.integers(0, 50), min_size=1, max_size=9)


def without_racks(brokers: set[int]) -> dict[int, str | None]:
    return dict.fromkeys(brokers)


@given(brokers=BROKERS, count=st.integers(1, 60), start=st.integers(0, 20), data=st.data())
def test_leaders_are_even_and_replicas_distinct(brokers: set[int], count: int, start: int, data: st.DataObject) -> None:
    factor = data.draw(st.integers(1, len(brokers)))
    placed = place(range(count), factor, without_racks(brokers), start=start)
    assert all(len(set(replicas)) == factor and set(replicas) <= brokers for replicas in placed)
    leaders = Counter(replicas[0] for replicas in placed)
    assert max(leaders.values()) - min(leaders[broker] for broker in brokers) <= 1


@given(size=st.integers(2, 9), start=st.integers(0, 20), data=st.data())
def test_full_rounds_give_every_broker_the_same(size: int, start: int, data: st.DataObject) -> None:
    factor = data.draw(st.integers(1, size))
    placed = place(range(size * 3), factor, without_racks(set(range(size))), start=start)
    held = Counter(broker for replicas in placed for broker in replicas)
    assert set(held.values()) == {3 * factor}


def test_what_one_broker_leads_is_followed_by_all_others() -> None:
    placed = place(range(5 * 4), 2, without_racks({1, 2, 3, 4, 5}))
    followers = Counter(replicas[1] for replicas in placed if replicas[0] == 3)
    assert followers == {1: 1, 2: 1, 4: 1, 5: 1}


@given(
    sizes=st.lists(st.integers(1, 4), min_size=2, max_size=4),
    count=st.integers(1, 40),
    start=st.integers(0, 10),
    data=st.data(),
)
def test_a_partition_is_on_as_many_racks_as_there_are(
    sizes: list[int], count: int, start: int, data: st.DataObject
) -> None:
    racks: dict[int, str | None] = {}
    for rack, size in enumerate(sizes):
        racks |= {len(racks) + number: f"rack-{rack}" for number in range(size)}
    factor = data.draw(st.integers(1, len(racks)))
    placed = place(range(count), factor, racks, start=start)
    available = Counter(racks.values())
    for replicas in placed:
        assert len(set(replicas)) == factor
        held = Counter(racks[broker] for broker in replicas)
        assert len(held) == min(factor, len(sizes))
        # No rack has two more than another that still has a broker to give.
        with_room = [held[rack] for rack in available if held[rack] < available[rack]]
        assert not with_room or max(held.values()) - min(with_room) <= 1


@given(racks=st.integers(2, 4), per_rack=st.integers(1, 4), start=st.integers(0, 10), data=st.data())
def test_racks_of_one_size_share_leaders_and_replicas(
    racks: int, per_rack: int, start: int, data: st.DataObject
) -> None:
    brokers: dict[int, str | None] = {number: f"rack-{number % racks}" for number in range(racks * per_rack)}
    factor = data.draw(st.integers(1, racks))
    size = len(brokers)
    placed = place(range(size * size), factor, brokers, start=start)
    assert set(Counter(replicas[0] for replicas in placed).values()) == {size}
    held_by_rack = Counter(brokers[broker] for replicas in placed for broker in replicas)
    assert max(held_by_rack.values()) - min(held_by_rack.values()) <= size
    held = Counter(broker for replicas in placed for broker in replicas)
    assert max(held.values()) <= 2 * min(held.values())


def test_brokers_without_a_rack_count_as_one_rack() -> None:
    placed = place(range(30), 2, {1: "a", 2: "a", 3: None, 4: None})
    assert all({1, 2} & set(replicas) and {3, 4} & set(replicas) for replicas in placed)


def test_added_partitions_go_on_with_the_round() -> None:
    brokers = without_racks({1, 2, 3})
    for start in range(3):
        first = place(range(2), 2, brokers, start=start)
        assert place(range(5), 2, brokers, start=start)[:2] == first
        assert start_of(first[0], brokers) == start
    assert start_of((9,), brokers) == 0


def test_more_replicas_than_brokers_are_refused() -> None:
    with pytest.raises(ApiError) as refused:
        place(range(1), 3, without_racks({1, 2}))
    assert refused.value.code == ErrorCode.INVALID_REPLICATION_FACTOR
