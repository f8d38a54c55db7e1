"""Rates over a sliding window, and limits on them."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ottla.broker.quotas.rates import NO_LIMIT, ByteQuota, WindowedRate


def test_a_rate_is_measured_over_at_least_one_piece() -> None:
    rate = WindowedRate(windows=11, window_s=1.0)
    assert rate.per_second(5.0) == 0.0
    rate.note(1000, 5.0)
    assert rate.per_second(5.0) == 1000.0
    assert rate.per_second(5.5) == 1000.0
    assert rate.per_second(9.0) == 250.0
    rate.note(1000, 9.0)
    assert rate.per_second(10.0) == 400.0


def test_what_is_older_than_the_window_is_forgotten() -> None:
    rate = WindowedRate(windows=3, window_s=2.0)
    rate.note(600, 0.0)
    rate.note(60, 3.0)
    assert rate.per_second(5.9) == pytest.approx(660 / 5.9)
    assert rate.per_second(6.0) == pytest.approx(60 / 3.0)
    assert rate.per_second(9.0) == 0.0


def test_how_long_to_wait_is_told() -> None:
    rate = WindowedRate(windows=11, window_s=1.0)
    rate.note(5000, 0.0)
    assert rate.seconds_until(1000, 0.0) == 5.0
    assert rate.seconds_until(1000, 4.0) == 1.0
    assert rate.seconds_until(1000, 5.0) == 0.0
    assert rate.seconds_until(0, 1.0) == 10.0
    rate.note(10**9, 5.0)
    assert rate.seconds_until(1000, 6.0) == 5.0, "then the first piece is forgotten"


@given(
    st.lists(st.tuples(st.floats(0, 3), st.integers(0, 10_000)), max_size=60),
    st.integers(1, 12),
    st.floats(0.5, 3),
    st.integers(0, 20_000),
)
@example([(1.0, 0), (0.9868451471301461, 1)], 1, 0.9868451471301461, 0)
def test_whoever_waits_as_told_gets_through(
    notes: list[tuple[float, int]], windows: int, window_s: float, limit: int
) -> None:
    rate = WindowedRate(windows, window_s)
    now = 0.0
    for pause, count in notes:
        now += pause
        rate.note(count, now)
        assert rate.per_second(now) >= 0
    for _ in range(windows + 2):
        wait = rate.seconds_until(limit, now)
        if wait == 0:
            break
        assert wait <= windows * window_s + 1e-6
        now += wait + 1e-6
    assert rate.per_second(now) <= limit


def test_a_quota_follows_its_limit() -> None:
    limit = NO_LIMIT
    quota = ByteQuota(lambda: limit, 11, 1.0)
    quota.note(10**12, 0.0)
    assert not quota.is_used_up(0.0)
    assert quota.seconds_to_wait(0.0) == 0.0
    limit = 1000
    assert not quota.is_used_up(0.0)
    quota.note(3000, 0.0)
    assert quota.is_used_up(0.0)
    assert quota.seconds_to_wait(1.0) == 2.0
    assert not quota.is_used_up(3.0)
    limit = 100
    assert quota.is_used_up(3.0)
