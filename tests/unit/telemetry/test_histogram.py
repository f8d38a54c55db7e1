"""Histograms: buckets, quantiles, intervals."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.telemetry.histogram import BUCKETS, INTERVALS, VALUE_MAX, Histogram, bucket_of, middle_of
from ottla.telemetry.metric import QUANTILES

values = st.integers(0, VALUE_MAX)


@given(values)
def test_a_bucket_stands_for_its_values(value: int) -> None:
    bucket = bucket_of(value)
    assert 0 <= bucket < BUCKETS
    assert abs(middle_of(bucket) - value) <= max(value / 62, 0)


@given(values, values)
def test_larger_values_are_in_no_lower_bucket(one: int, other: int) -> None:
    assert (bucket_of(one) <= bucket_of(other)) or one > other


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=200))
def test_quantiles_are_those_of_the_values(recorded: list[int]) -> None:
    histogram = Histogram()
    for value in recorded:
        histogram.record(value)
    found = histogram.read()
    assert found.number == found.recent == len(recorded)
    ordered = sorted(recorded)
    for quantile, at in zip(QUANTILES, found.quantiles, strict=True):
        position = next(
            n for n in range(len(ordered)) if n + 1 >= float(quantile) * len(ordered) or n + 1 == len(ordered)
        )
        assert abs(at - ordered[position]) <= ordered[position] / 62
    assert abs(found.most - ordered[-1]) <= ordered[-1] / 62
    assert abs(found.mean - sum(ordered) / len(ordered)) <= sum(ordered) / len(ordered) / 62 + 1e-9


def test_what_is_older_than_the_intervals_does_not_count_any_more() -> None:
    histogram = Histogram()
    histogram.record(1_000_000)
    histogram.fold()
    for _ in range(INTERVALS - 1):
        histogram.record(10)
        histogram.fold()
    assert histogram.read().most > 900_000
    histogram.fold()
    found = histogram.read()
    assert found.most == 10, "the largest value falls again, unlike in Kafka"
    assert found.number == INTERVALS
    for _ in range(INTERVALS):
        histogram.fold()
    assert histogram.read().quantiles == (0.0,) * len(QUANTILES)


def test_values_out_of_bounds_count_as_the_nearest() -> None:
    histogram = Histogram()
    histogram.record(-5)
    histogram.record(2**60)
    found = histogram.read()
    assert (found.least, found.number) == (0, 2)
    assert found.most > VALUE_MAX * 0.98


def test_several_are_read_as_one() -> None:
    one, other = Histogram(), Histogram()
    one.record(1)
    one.fold()
    other.record(3)
    found = Histogram.read_together([one, other])
    assert (found.number, found.mean, found.least, found.most) == (2, 2, 1, 3)
