"""Plans for moving replicas: what each goal promises, and that nothing moves without a reason."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.console import reassigning
from ottla.console.reassigning import CannotPlan, moves_of
from ottla.model.names import TopicPartition

RACKS = {1: "a", 2: "b", 3: "c", 4: "a"}


@st.composite
def clusters(draw: st.DrawFn) -> tuple[dict[TopicPartition, list[int]], dict[int, str | None]]:
    brokers = draw(st.lists(st.integers(0, 20), min_size=2, max_size=7, unique=True))
    with_racks = draw(st.booleans())
    racks = {broker: draw(st.sampled_from("abc")) if with_racks else None for broker in brokers}
    factor = draw(st.integers(1, len(brokers)))
    current = {
        TopicPartition("t", number): draw(st.permutations(brokers))[:factor]
        for number in range(draw(st.integers(1, 30)))
    }
    return current, racks


@given(clusters())
def test_spread_evens_out_and_keeps_what_is_promised(
    found: tuple[dict[TopicPartition, list[int]], dict[int, str | None]],
) -> None:
    current, racks = found
    plan = reassigning.spread(current, racks)
    assert plan.keys() == current.keys()
    for at, replicas in plan.items():
        assert len(set(replicas)) == len(replicas) == len(current[at])
        assert len({racks[each] for each in replicas}) >= len({racks[each] for each in current[at]})
    if len(set(racks.values())) == 1:
        held = Counter(dict.fromkeys(racks, 0))
        held.update(broker for replicas in plan.values() for broker in replicas)
        assert max(held.values()) - min(held.values()) <= 1
    assert reassigning.spread(plan, racks).keys() == plan.keys()


@given(clusters(), st.data())
def test_leaving_moves_what_was_there_and_nothing_else(
    found: tuple[dict[TopicPartition, list[int]], dict[int, str | None]], data: st.DataObject
) -> None:
    current, racks = found
    broker = data.draw(st.sampled_from(sorted(racks)))
    if any(len(replicas) == len(racks) for replicas in current.values()):
        with pytest.raises(CannotPlan, match="every other broker"):
            reassigning.leave(current, broker, racks)
        return
    plan = reassigning.leave(current, broker, racks)
    assert plan.keys() == {at for at, replicas in current.items() if broker in replicas}
    for at, replicas in plan.items():
        assert broker not in replicas
        assert len(set(replicas)) == len(current[at])
        assert set(current[at]) - {broker} <= set(replicas)


@given(clusters(), st.data())
def test_another_factor_keeps_as_many_replicas_as_it_can(
    found: tuple[dict[TopicPartition, list[int]], dict[int, str | None]], data: st.DataObject
) -> None:
    current, racks = found
    factor = data.draw(st.integers(1, len(racks)))
    for at, replicas in reassigning.change_factor(current, factor, racks).items():
        assert len(set(replicas)) == len(replicas) == factor
        assert replicas[: min(factor, len(current[at]))] == list(current[at][:factor])


def test_new_replicas_go_to_other_racks_first() -> None:
    current = {TopicPartition("t", 0): [1]}
    assert reassigning.change_factor(current, 3, RACKS)[TopicPartition("t", 0)] == [1, 2, 3]


def test_placing_anew_puts_replicas_on_different_racks() -> None:
    current = {TopicPartition("t", number): [1, 4] for number in range(6)}
    for replicas in reassigning.anew(current, RACKS).values():
        assert len({RACKS[each] for each in replicas}) == 2


def test_what_cannot_be_planned_says_why() -> None:
    current = {TopicPartition("t", 0): [1]}
    with pytest.raises(CannotPlan, match="there are 2"):
        reassigning.change_factor(current, 3, {1: None, 2: None})
    with pytest.raises(CannotPlan, match="no broker but 1"):
        reassigning.leave(current, 1, {1: None})


def test_bytes_that_move() -> None:
    at, stays = TopicPartition("t", 0), TopicPartition("t", 1)
    (move,) = moves_of({at: [2, 3], stays: [1]}, {at: [1, 2], stays: [1]}, {at: 100}.__getitem__)
    assert (move.added, move.bytes_to_move) == ((3,), 100)


def test_tens_of_thousands_of_replicas_are_spread_at_once() -> None:
    """Once a look for each move made this take minutes."""
    current = {
        TopicPartition("t", number): tuple((number + each) % 3 + 1 for each in range(3)) for number in range(20_000)
    }
    plan = reassigning.spread(current, dict.fromkeys((1, 2, 3, 4)))
    held = Counter(broker for replicas in plan.values() for broker in replicas)
    assert held == dict.fromkeys((1, 2, 3, 4), 15_000)
    assert all(len(set(replicas)) == 3 for replicas in plan.values())
