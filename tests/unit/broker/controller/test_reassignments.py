"""A move, step by step."""

import pytest

from ottla.broker.controller.reassignments import begin, cancel, finish, next_state, origin_of, target_of
from ottla.cluster.image import PartitionImage
from ottla.model.errors import ApiError, ErrorCode

ALL = {1, 2, 3, 4, 5, 6}
HERE = PartitionImage(1, 5, (1, 2, 3), (1, 2, 3))


def test_a_move_keeps_the_old_replicas_until_the_new_ones_are_in_sync() -> None:
    moving = begin(HERE, (4, 5, 3), ALL)
    assert moving == PartitionImage(1, 5, (4, 5, 3, 1, 2), (1, 2, 3), adding=(4, 5), removing=(1, 2))
    assert (target_of(moving), origin_of(moving)) == ((4, 5, 3), (3, 1, 2))
    assert next_state(moving, ALL) is None
    almost = PartitionImage(1, 5, (4, 5, 3, 1, 2), (1, 2, 3, 4), adding=(4, 5), removing=(1, 2))
    assert next_state(almost, ALL) is None
    ready = PartitionImage(1, 5, (4, 5, 3, 1, 2), (1, 2, 3, 4, 5), adding=(4, 5), removing=(1, 2))
    assert next_state(ready, ALL) == PartitionImage(4, 6, (4, 5, 3), (3, 4, 5))


def test_a_leader_that_stays_goes_on_leading() -> None:
    ready = PartitionImage(3, 5, (4, 3, 1), (1, 3, 4), adding=(4,), removing=(1,))
    assert next_state(ready, ALL) == PartitionImage(3, 5, (4, 3), (3, 4))


def test_moving_to_where_it_is_changes_nothing() -> None:
    assert begin(HERE, (1, 2, 3), ALL) is None
    assert begin(HERE, (2, 1, 3), ALL) == PartitionImage(1, 5, (2, 1, 3), (1, 2, 3))


def test_fewer_replicas_are_a_move_that_is_done_at_once() -> None:
    shrinking = begin(HERE, (2, 3), ALL)
    assert shrinking is not None
    assert next_state(shrinking, ALL) == PartitionImage(2, 6, (2, 3), (2, 3))


def test_a_move_that_replaces_another_starts_from_the_same_brokers() -> None:
    first = begin(HERE, (4, 5, 6), ALL)
    assert first is not None
    caught_up = PartitionImage(1, 5, first.replicas, (1, 2, 3, 4), first.adding, first.removing)
    second = begin(caught_up, (1, 2, 5), ALL)
    assert second == PartitionImage(1, 5, (1, 2, 5, 3), (1, 2, 3), adding=(5,), removing=(3,))


def test_the_only_complete_copy_is_kept_when_a_move_is_replaced() -> None:
    """All old replicas are gone; the one that was being added has all the data."""
    moving = PartitionImage(4, 9, (4, 1, 2), (4,), adding=(4,), removing=(1, 2))
    again = begin(moving, (5,), {4, 5})
    assert again is not None
    assert (again.leader, again.isr, again.adding) == (4, (4,), (5,))
    assert 4 in again.removing
    with pytest.raises(ApiError) as refused:
        cancel(moving, {4, 5})
    assert refused.value.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_cancelling_goes_back() -> None:
    moving = begin(HERE, (4, 5, 3), ALL)
    assert moving is not None
    back = cancel(moving, ALL)
    assert (set(back.replicas), back.adding, back.removing) == ({1, 2, 3}, (), ())
    assert (back.leader, back.leader_epoch) == (1, 5)
    with pytest.raises(ApiError) as refused:
        cancel(back, ALL)
    assert refused.value.code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_a_new_leader_gives_way_when_the_move_is_cancelled() -> None:
    moving = PartitionImage(4, 9, (4, 1, 2), (4, 1, 2), adding=(4,), removing=(1, 2))
    assert cancel(moving, ALL) == PartitionImage(1, 10, (1, 2), (1, 2))


def test_a_move_waits_for_a_target_that_is_gone() -> None:
    ready = PartitionImage(1, 5, (4, 1), (1, 4), adding=(4,), removing=(1,))
    assert next_state(ready, {1}) == PartitionImage(1, 5, (4, 1), (1,), adding=(4,), removing=(1,))
    assert finish(ready, {1}) is None


def test_an_election_and_the_end_of_a_move_raise_the_epoch_once() -> None:
    ready = PartitionImage(9, 5, (4, 5, 1, 9), (1, 9, 4, 5), adding=(4, 5), removing=(1, 9))
    assert next_state(ready, {1, 4, 5}) == PartitionImage(4, 6, (4, 5), (4, 5))


def test_a_move_that_ends_while_a_broker_dies_gives_the_new_leader_a_new_epoch() -> None:
    """Two decisions at once: the dead one leaves the in-sync replicas, and the move changes the leader."""
    ready = PartitionImage(1, 5, (5, 4, 3, 1, 2), (1, 3, 2, 5, 4), adding=(5, 4), removing=(1, 2))
    assert next_state(ready, {1, 3, 4, 5}) == PartitionImage(5, 6, (5, 4, 3), (3, 5, 4))
    assert next_state(ready, {3, 4, 5}) == PartitionImage(5, 6, (5, 4, 3), (3, 5, 4))
    staying = PartitionImage(3, 5, (5, 4, 3, 1, 2), (1, 3, 2, 5, 4), adding=(5, 4), removing=(1, 2))
    assert next_state(staying, {3, 4, 5}) == PartitionImage(3, 5, (5, 4, 3), (3, 5, 4))
