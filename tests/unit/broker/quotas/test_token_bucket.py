"""Tokens of the quota for creating and deleting partitions."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.quotas.token_bucket import TokenBucket


def test_a_burst_is_let_through_whole_and_paid_for_afterwards() -> None:
    bucket = TokenBucket(window_s=100, rate=5.0)
    assert bucket.tokens(0) == 500
    bucket.take(560, 0)
    assert bucket.tokens(0) == -60
    assert bucket.wait_ms(0) == 12_000
    assert bucket.wait_ms(6_000) == 6_000
    assert bucket.wait_ms(12_000) == 0
    assert bucket.tokens(10**9) == 500, "it holds no more than the window's worth"


def test_another_rate_acts_at_once() -> None:
    bucket = TokenBucket(window_s=10, rate=10.0)
    bucket.take(120, 0)
    assert bucket.wait_ms(0) == 2_000
    bucket.rate = 1.0
    assert bucket.wait_ms(0) == 20_000
    assert bucket.tokens(10**6) == 10


def test_one_that_is_full_says_what_a_new_one_says() -> None:
    bucket = TokenBucket(window_s=10, rate=1.0)
    assert bucket.is_idle(0)
    bucket.take(3, 0)
    assert not bucket.is_idle(2_999)
    assert bucket.is_idle(3_000)


@given(
    st.integers(1, 100),
    st.integers(1, 20),
    st.lists(st.tuples(st.integers(0, 5_000), st.integers(1, 300)), max_size=60),
)
def test_tokens_are_what_came_less_what_was_taken(rate: int, window_s: int, events: list[tuple[int, int]]) -> None:
    bucket, full = TokenBucket(window_s, rate), window_s * rate * 1000
    now, thousandths = 0, full  # the model counts in thousandths, without fractions
    for pause, count in events:
        now += pause
        thousandths = min(full, thousandths + pause * rate)
        assert abs(bucket.tokens(now) * 1000 - thousandths) < 1e-3
        wait_ms = bucket.wait_ms(now)
        assert (wait_ms == 0) == (thousandths > -rate / 2)
        if not wait_ms:
            bucket.take(count, now)
            thousandths -= count * 1000
