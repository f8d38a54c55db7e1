"""The small parts of the benchmark tools: throttle, statistics, dates, patterns."""

import time

import pytest

from ottla.cli.common.output import CommandError
from ottla.cli.data.java_dates import DEFAULT_PATTERN, DatePattern
from ottla.cli.data.kafka_clients import whole_name_pattern
from ottla.cli.data.latency_stats import LatencyStats
from ottla.cli.data.throttle import Throttle


def test_throttle_keeps_the_average() -> None:
    throttle = Throttle(100, started=10.0)
    assert throttle.wait_s(50, now=10.0) == 0.5
    assert throttle.wait_s(50, now=10.6) == 0.0
    assert throttle.allowance(50, now=11.0) == 51
    assert throttle.allowance(200, now=11.0) == 0


def test_throttle_without_limit_never_waits() -> None:
    assert Throttle(-1, started=0.0).unlimited
    assert Throttle(-1, started=0.0).wait_s(10**9, now=0.0) == 0.0


def test_latency_summary() -> None:
    stats = LatencyStats(started=0.0)
    stats.add([1000] * 98 + [5000, 20_000], size=1024 * 1024)
    stats.add([], size=0)
    summary = stats.summary(now=2.0)
    assert (summary.records, summary.records_per_second, summary.megabytes_per_second) == (100, 50.0, 0.5)
    assert summary.average_ms == pytest.approx(1.23)
    assert summary.max_ms == 20.0
    assert summary.percentiles_ms[50] == pytest.approx(1.0, rel=0.001)
    assert summary.percentiles_ms[99] == pytest.approx(5.0, rel=0.001)
    assert summary.percentiles_ms[99.9] == pytest.approx(20.0, rel=0.001)


def test_an_empty_summary_has_no_figures() -> None:
    summary = LatencyStats(started=1.0).summary(now=1.0)
    assert (summary.records_per_second, summary.average_ms, summary.percentiles_ms[99]) == (0.0, 0.0, 0.0)


def test_java_date_patterns() -> None:
    moment = time.mktime((2026, 3, 4, 15, 6, 7, 0, 0, -1)) + 0.089
    assert DatePattern(DEFAULT_PATTERN).format(moment) == "2026-03-04 15:06:07:089"
    assert DatePattern("d.M.yy 'at' h:mm a, EEE MMM ''").format(moment) == "4.3.26 at 3:06 PM, Wed Mar '"


@pytest.mark.parametrize("pattern", ["yyyy 'open", "Q"])
def test_bad_date_patterns(pattern: str) -> None:
    with pytest.raises(CommandError):
        DatePattern(pattern)


@pytest.mark.parametrize(
    ("given", "pattern"),
    [("news", "^(news)$"), ("a,b", "^(a|b)$"), ("'a.*'", "^(a.*)$"), ("a{1,2},b", "^(a{1,2}|b)$")],
)
def test_patterns_match_whole_names(given: str, pattern: str) -> None:
    assert whole_name_pattern(given) == pattern


def test_a_bad_pattern_is_refused() -> None:
    with pytest.raises(CommandError, match="regular expression"):
        whole_name_pattern("a(")
