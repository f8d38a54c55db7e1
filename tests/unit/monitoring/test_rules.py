"""Burrow's rules against a plain model of the table: each row written down by itself, the first one decides."""

import tracemalloc
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from ottla.monitoring.lag.rules import Judged, Rules, Status, judge, judge_group
from ottla.monitoring.lag.window import Commit, Commits, Ends

OFFSETS = st.integers(0, 12)


@st.composite
def windows(draw: st.DrawFn) -> list[Commit]:
    steps = draw(st.lists(st.tuples(OFFSETS, st.integers(0, 5), st.none() | st.integers(0, 6)), max_size=10))
    now = 0
    commits = []
    for offset, step, lag in steps:
        now += step
        commits.append(Commit(offset, now, now, lag))
    return commits


def by_the_table(commits: Sequence[Commit], ends: Sequence[int], lag: int, now: int, rules: Rules) -> Status:
    """Each row as a sentence over the whole window, without short cuts."""
    n = len(commits)
    if n == 0:
        return Status.OK
    known = [each.lag for each in commits if each.lag is not None]
    first_back = next((i for i in range(1, n) if commits[i].offset < commits[i - 1].offset), None)
    rows = [
        (n / rules.intervals < rules.minimum_complete, Status.OK),
        (lag <= rules.allowed_lag, Status.OK),
        (
            now - commits[-1].timestamp_ms > commits[-1].timestamp_ms - commits[0].timestamp_ms
            and all(end > commits[-1].offset for end in ends),
            Status.STOP,
        ),
        (
            first_back is not None
            and max(each.offset for each in commits[first_back:]) < commits[first_back - 1].offset,
            Status.REWIND,
        ),
        (min(known, default=rules.allowed_lag + 1) <= rules.allowed_lag, Status.OK),
        (len({each.offset for each in commits}) == 1, Status.STALL),
        (known == sorted(known), Status.WARN),
    ]
    return next((status for applies, status in rows if applies), Status.OK)


@given(
    windows(),
    st.lists(OFFSETS, max_size=10),
    st.integers(0, 6),
    st.integers(0, 60),
    st.integers(0, 3),
    st.sampled_from([0.0, 0.3, 1.0]),
)
def test_the_first_rule_that_applies_decides(
    commits: list[Commit], ends: list[int], lag: int, later: int, allowed: int, minimum: float
) -> None:
    rules = Rules(allowed_lag=allowed, minimum_complete=minimum)
    now = (commits[-1].timestamp_ms if commits else 0) + later
    found = judge(commits, ends, lag, now, rules)
    assert found.status is by_the_table(commits, ends, lag, now, rules)
    assert found.complete == len(commits) / 10


@given(st.lists(st.tuples(st.sampled_from(Status), st.sampled_from([0.1, 0.9, 1.0]))))
def test_a_group_is_as_bad_as_its_worst_partition_and_never_worse_than_err(found: list[tuple[Status, float]]) -> None:
    status, complete = judge_group([Judged(*each) for each in found])
    worst = max([Status.OK, *(each for each, _ in found)]) if found else Status.OK
    assert status == min(max((each for each, _ in found), default=Status.OK), Status.ERR)
    assert status <= worst
    assert complete == (sum(share == 1.0 for _, share in found) / len(found) if found else 0)


def _commits(*offsets: int, every: int = 10, lag: int | None = 5) -> list[Commit]:
    return [Commit(offset, n * every, n * every, lag) for n, offset in enumerate(offsets)]


def test_each_state_by_an_example() -> None:
    rules = Rules()
    same = _commits(*[7] * 10)
    moving = _commits(*range(10))
    now = 95
    assert judge(moving, [3, 99], 0, now, rules).status is Status.OK
    assert judge(moving, [50, 99], 90, 90 + 91, rules).status is Status.STOP
    assert judge(moving, [9, 99], 90, 90 + 91, rules).status is Status.WARN, "it was at the end of late: not stopped"
    assert judge(_commits(5, 6, 7, 1, 2, 3), [99], 90, now, rules).status is Status.REWIND
    assert judge(_commits(5, 6, 7, 1, 2, 8), [99], 90, now, rules).status is Status.WARN, "it is where it was again"
    assert judge(same, [99], 92, now, rules).status is Status.STALL
    assert judge(moving, [99], 90, now, rules).status is Status.WARN
    falling = [each._replace(lag=20 - n) for n, each in enumerate(moving)]
    assert judge(falling, [99], 90, now, rules).status is Status.OK


@given(st.lists(st.tuples(st.integers(0, 30), OFFSETS, st.none() | OFFSETS), max_size=30), st.integers(0, 10))
def test_the_ring_keeps_the_last_commits_apart(steps: list[tuple[int, int, int | None]], distance: int) -> None:
    ring = Commits(4, distance)
    model: list[Commit] = []
    now = 0
    for step, offset, end in steps:
        now += step
        ring.add(offset, now, now, end)
        lag = None if end is None else max(0, end - offset)
        if model and now - model[-1].timestamp_ms < distance:
            model[-1] = Commit(offset, model[-1].timestamp_ms, now, lag)
        else:
            model.append(Commit(offset, now, now, lag))
        assert list(ring.all) == model[-4:]


@given(st.lists(st.tuples(OFFSETS, st.integers(0, 30)), max_size=12))
def test_the_ring_keeps_the_last_ends(steps: list[tuple[int, int]]) -> None:
    ring = Ends(4)
    assert not ring
    for offset, now in steps:
        ring.add(offset, now)
        assert ring.last == (offset, now)
    assert [tuple(each) for each in ring.all] == steps[-4:]


def test_full_windows_are_small() -> None:
    """A console of a cluster with 50,000 partitions has as many of them, and of each group its own."""
    rounds, count, start = 10, 100, 1_700_000_000_000
    rings = [(Ends(rounds), Commits(rounds, 0)) for _ in range(count)]
    tracemalloc.start()
    try:
        for number in range(5 * rounds):
            for ends, commits in rings:
                ends.add(start + number, start + number)
                commits.add(start + number, start + number, start + number, start + 2 * number)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used / count < 1.5 * 8 * rounds * (2 + 4), "more than the numbers themselves, and some room"


def test_a_commit_that_was_overtaken_is_not_taken() -> None:
    ring = Commits(4, 0)
    ring.add(5, 100, 100, 9)
    ring.add(4, 90, 110, 9)
    assert [each.offset for each in ring.all] == [5]
