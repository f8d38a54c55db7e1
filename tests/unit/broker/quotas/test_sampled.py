"""What was used in a sliding window, against a plain model of Kafka's samples."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.quotas.sampled import SampledSum


@dataclass
class _Sample:
    start: int
    last: int
    value: float = 0.0


class _Model:
    """Kafka's samples as its documentation tells them, with nothing remembered between two questions."""

    def __init__(self, windows: int, window_ms: int) -> None:
        self.windows, self.window_ms = windows, window_ms
        self.samples: list[_Sample] = []
        self.current = 0

    def record(self, value: float, now: int) -> None:
        if not self.samples:
            self.samples.append(_Sample(now, now))
        sample = self.samples[self.current]
        if now - sample.start >= self.window_ms:
            self.current = (self.current + 1) % (self.windows + 1)
            sample = _Sample(now, now)
            self.samples[self.current : self.current + 1] = [sample]
        sample.value += value
        sample.last = now

    def wait_ms(self, bound: float, now: int) -> int:
        for position, sample in enumerate(self.samples):
            if now - sample.last >= self.windows * self.window_ms:
                self.samples[position] = _Sample(now, now)
        elapsed = now - min(sample.start for sample in self.samples)
        full = elapsed // self.window_ms
        span = max(1, elapsed + max(0, self.windows - 1 - full) * self.window_ms)
        rate = sum(sample.value for sample in self.samples) / (span / 1000)
        return int((rate - bound) / bound * span + 0.5) if rate > bound else 0


@given(
    st.integers(1, 12),
    st.sampled_from([100, 1000, 7000]),
    st.integers(1, 10**6),
    st.lists(st.tuples(st.integers(0, 4000) | st.integers(0, 60_000), st.integers(0, 10**7)), max_size=80),
)
def test_it_says_what_the_model_says(windows: int, window_ms: int, bound: int, events: list[tuple[int, int]]) -> None:
    used, model, now = SampledSum(windows, window_ms), _Model(windows, window_ms), 1000
    for pause, size in events:
        now += pause
        used.record(size, now)
        model.record(size, now)
        assert abs(used.wait_ms(bound, now) - model.wait_ms(bound, now)) <= 1, "but for rounding"


def test_whoever_comes_back_may_use_ten_seconds_worth_at_once() -> None:
    used = SampledSum(11, 1000)
    used.record(10_000, 0)
    assert used.span_ms(0) == 10_000
    assert used.wait_ms(1000, 0) == 0
    used.record(1, 0)
    assert used.wait_ms(1000, 0) == 1
    used.record(4_999, 0)
    assert used.wait_ms(1000, 0) == 5_000
    assert used.wait_ms(1000, 500) == 4_500
    assert used.span_ms(999) == 10_999
    assert used.wait_ms(1000, 1000) == 5_000, "a window that is full counts as one of the ten"
    assert used.wait_ms(1000, 11_000) == 0


@given(st.integers(1_000, 10**6), st.floats(0.02, 0.5), st.integers(0, 40))
def test_who_waits_as_told_stays_at_the_bound(bound: int, seconds_worth: float, takes_ms: int) -> None:
    """Over five minutes, with requests of up to half a second's worth, the burst of the first ten seconds included."""
    used, now, sent, size = SampledSum(11, 1000), 0, 0, max(1, int(bound * seconds_worth))
    while now < 300_000:
        used.record(size, now)
        sent += size
        now += used.wait_ms(bound, now) + takes_ms + 1
    could = min(bound, size * 1000 // (takes_ms + 1))
    assert 0.9 * could <= sent * 1000 / now <= 1.1 * bound


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 1000)), min_size=1, max_size=40))
def test_what_is_given_back_was_never_used(events: list[tuple[int, int]]) -> None:
    with_it, without, now = SampledSum(11, 1000), SampledSum(11, 1000), 0
    for pause, size in events:
        now += pause
        with_it.record(size, now)
        with_it.record(5_000, now)
        with_it.record(-5_000, now)
        without.record(size, now)
        assert with_it.total(now) == without.total(now)
        assert with_it.wait_ms(700, now) == without.wait_ms(700, now)


def test_one_that_nobody_used_for_long_says_what_a_new_one_says() -> None:
    used = SampledSum(3, 1000)
    assert used.is_idle(0)
    used.record(100, 0)
    assert not used.is_idle(2_999)
    assert used.is_idle(3_000)
    used.record(100, 10_000)
    assert used.total(10_000) == 100


@pytest.mark.parametrize(("chunk", "pause_ms"), [(10_000, 1), (50_000, 1), (50_000, 20), (500_000, 1)])
def test_who_uses_all_it_may_comes_to_its_bound(chunk: int, pause_ms: int) -> None:
    """In waves, whose height is what a window holds; over many of them it is the bound."""
    rate, ends, now, moved = 1_000_000, 600_000, 0, 0
    used = SampledSum(11, 1000)
    while now < ends:
        used.record(chunk, now)
        moved += chunk
        now += max(pause_ms, used.wait_ms(rate, now))
    in_advance = 11 * rate  # what the first window lets through at once, before anything is paid for
    assert 0.97 < (moved - in_advance) / rate / (ends / 1000) < 1.03
