"""Which replica a consumer is sent to."""

import pytest

from ottla.broker.replication.read_replica import Candidate, preferred_reader

NEAR = Candidate(2, "b", 10, 100, 5.0)
FAR = Candidate(3, "c", 10, 100, 5.0)


def test_a_follower_in_the_clients_rack_is_preferred() -> None:
    assert preferred_reader("b", "a", [NEAR, FAR], 50) == 2
    assert preferred_reader("c", "a", [NEAR, FAR], 50) == 3


@pytest.mark.parametrize("rack", ["", "a", "elsewhere"])
def test_others_stay_with_the_leader(rack: str) -> None:
    assert preferred_reader(rack, "a", [NEAR, FAR, Candidate(4, "a", 0, 100, 9.0)], 50) is None


def test_a_leader_without_a_rack_is_in_none() -> None:
    assert preferred_reader("b", None, [NEAR, Candidate(4, None, 0, 100, 9.0)], 50) == 2


@pytest.mark.parametrize(("offset", "expected"), [(9, None), (10, 2), (100, 2), (101, None)])
def test_it_must_have_what_is_asked_for(offset: int, expected: int | None) -> None:
    assert preferred_reader("b", "a", [NEAR], offset) == expected


def test_the_one_that_is_furthest_wins() -> None:
    further = NEAR._replace(broker_id=5, end_offset=101)
    fresher = NEAR._replace(broker_id=6, caught_up_s=7.0)
    assert preferred_reader("b", "a", [NEAR, further, fresher], 50) == 5
    assert preferred_reader("b", "a", [NEAR, fresher], 50) == 6
    assert preferred_reader("b", "a", [NEAR._replace(broker_id=9), NEAR], 50) == 9
