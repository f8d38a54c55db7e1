"""What became of each record, against a plain model; service levels; the topic's layout."""

import math

from hypothesis import given
from hypothesis import strategies as st

from ottla.monitoring.endtoend.layout import Plan, Wanted, plan
from ottla.monitoring.endtoend.ledger import Ledger
from ottla.monitoring.endtoend.slo import Delays, Level, Objective
from ottla.monitoring.readings import PartitionPlace

SLA = 100


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, int]]:
    """Records with an outcome each: how they were acknowledged, whether the log kept them and how often."""
    return [
        (draw(st.sampled_from(["acked", "failed", "acked late"])), draw(st.sampled_from([0, 1, 1, 1, 2])))
        for _ in range(draw(st.integers(0, 25)))
    ]


@given(histories(), st.lists(st.integers(0, 3 * SLA), min_size=25, max_size=25))
def test_every_acknowledged_record_is_read_late_or_lost_and_just_once(
    history: list[tuple[str, int]], waits: list[int]
) -> None:
    """The log has the records in order, each as often as the history says; offsets are where they would be."""
    ledger = Ledger(SLA)
    totals = {"read": 0, "delayed": 0, "lost": 0, "duplicated": 0}

    def count(outcome: object) -> None:
        for name in totals:
            totals[name] += getattr(outcome, name)

    offset = 0
    now = 0
    expected = {"good": 0, "late": 0, "lost": 0, "duplicated": 0}
    for index, ((how, copies), wait) in enumerate(zip(history, waits, strict=False)):
        ledger.sent(index, now)
        place = offset
        offset += max(copies, 1)  # a lost record had an offset, which somebody else's record has now
        acked = how != "failed"
        if how == "acked":
            count(ledger.acknowledged(index, place))
        elif how == "failed":
            ledger.failed(index)
        now += wait
        count(ledger.tick(now))
        for _ in range(copies):
            count(ledger.read(index, now))
        if how == "acked late":
            count(ledger.acknowledged(index, place))
        count(ledger.passed(offset))
        expected["duplicated"] += max(0, copies - 1)
        if acked and not copies:
            expected["lost"] += 1
        elif acked:
            expected["good" if wait <= SLA else "late"] += 1
    assert totals["read"] == expected["good"]
    assert totals["duplicated"] == expected["duplicated"]
    # One that was late before it turned out to be lost is both.
    assert totals["lost"] == expected["lost"]
    assert expected["late"] <= totals["delayed"] <= expected["late"] + expected["lost"]
    assert ledger.unread == 0


def test_a_record_that_was_sent_again_may_be_there_twice_but_no_attempt_may() -> None:
    ledger = Ledger(SLA)
    ledger.sent(0, 0)
    assert ledger.read(0, 1, attempt=0) == ledger.passed(1), "nothing is decided before it is acknowledged"
    assert ledger.acknowledged(0, 4).read == 1
    assert ledger.read(0, 2, attempt=1).duplicated == 0
    assert ledger.read(0, 3, attempt=1).duplicated == 1


def test_a_log_that_was_cut_loses_what_was_behind_the_cut() -> None:
    ledger = Ledger(SLA)
    for index in range(3):
        ledger.sent(index, 0)
        ledger.acknowledged(index, index)
    ledger.read(0, 1)
    ledger.passed(1)
    ledger.rewound(1)
    ledger.sent(3, 2)
    ledger.acknowledged(3, 1)
    ledger.read(3, 3)
    assert ledger.passed(2).lost == 1, "record 1 had this offset"
    assert ledger.unread == 1, "record 2 may still come, as far as is known"


def test_budget_and_burn_rate() -> None:
    level = Level(Objective(0.99, 3600))
    for second in range(3600):
        level.note(1, 0, second)
    assert (level.budget_left(3599), level.burn_rate(300, 3599)) == (1.0, 0.0)
    level.note(0, 36, 3599)
    assert math.isclose(level.budget_left(3599), 1 - 36 / (3636 * 0.01))
    assert math.isclose(level.burn_rate(300, 3599), 36 / (36 + 300) / 0.01)
    assert level.recent(3599).bad == 36
    assert level.recent(3599 + 60).total == 0
    level.note(1, 0, 3599 + 7200)
    assert level.in_window(3599 + 7200).total == 1
    assert (level.good, level.bad) == (3601, 36)


def test_an_objective_without_budget() -> None:
    level = Level(Objective(1.0, 3600))
    level.note(10, 1, 0)
    assert level.budget_left(0) < 0
    assert level.burn_rate(300, 0) == math.inf


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1e6)), max_size=50))
def test_percentiles_are_of_the_last_minute(delays: list[tuple[int, float]]) -> None:
    kept = Delays()
    now = 0
    all_: list[tuple[int, float]] = []
    for step, delay in delays:
        now += step * 10
        kept.note(delay, now)
        all_.append((now, delay))
    recent = sorted(delay for at, delay in all_ if at > now - 60)
    found = kept.summary(now)
    assert bool(found) == bool(recent)
    if recent:
        assert found["max"] == recent[-1]
        assert found["50th"] == recent[min(len(recent) - 1, len(recent) // 2)]


def carried_out(found: Plan, places: dict[int, PartitionPlace], alive: list[int]) -> dict[int, PartitionPlace]:
    """What a cluster would make of a plan."""
    made = dict(places)
    for number, replicas in (found.create or found.move or {}).items():
        leader = made[number].leader if number in made and made[number].leader in replicas else replicas[0]
        made[number] = PartitionPlace(leader, tuple(replicas), tuple(each for each in replicas if each in alive))
    for replicas in found.add or ():
        made[len(made)] = PartitionPlace(replicas[0], tuple(replicas), tuple(replicas))
    for number in found.elect or ():
        made[number] = made[number]._replace(leader=made[number].replicas[0])
    return made


@given(
    st.sets(st.integers(1, 9), min_size=1, max_size=6),
    st.sets(st.integers(1, 9), min_size=1, max_size=6),
    st.sampled_from([0.5, 1.0, 2.0]),
    st.integers(1, 3),
)
def test_every_broker_comes_to_lead_a_partition(before: set[int], after: set[int], ratio: float, factor: int) -> None:
    """Also when other brokers were there before; after few steps nothing is left to do."""
    wanted = Wanted(ratio, replication_factor=factor)
    places: dict[int, PartitionPlace] = {}
    for alive in (sorted(before), sorted(after)):
        places = {
            number: place._replace(
                leader=place.leader if place.leader in alive else next((r for r in place.replicas if r in alive), None),
                in_sync=tuple(each for each in place.replicas if each in alive),
            )
            for number, place in places.items()
        }
        for _ in range(10):
            found = plan(alive, places, wanted)
            if found == Plan():
                break
            places = carried_out(found, places, alive)
        assert found == Plan()
        assert len(places) >= math.ceil(len(alive) * ratio)
        if ratio >= 1:
            assert {place.leader for place in places.values()} >= set(alive)


def test_what_is_not_allowed_is_a_problem() -> None:
    assert "may not be created" in plan([1], {}, Wanted(create=False)).problem
    one = {0: PartitionPlace(1, (1,), (1,))}
    assert "may not be added" in plan([1, 2], one, Wanted(add_partitions=False)).problem
    assert plan([1, 2], {**one, 1: one[0]}, Wanted(move=False)) == Plan()
