"""Latencies of many records: counted cheaply while records fly, turned into percentiles when someone asks."""

from collections import Counter
from typing import Any, NamedTuple

from hdrh.histogram import HdrHistogram

LONGEST_US = 3_600_000_000
SIGNIFICANT_DIGITS = 3
MB = 1024 * 1024


class Summary(NamedTuple):
    records: int
    bytes: int
    seconds: float
    average_ms: float
    max_ms: float
    percentiles_ms: dict[float, float]

    @property
    def records_per_second(self) -> float:
        return self.records / self.seconds if self.seconds > 0 else 0.0

    @property
    def megabytes_per_second(self) -> float:
        return self.bytes / MB / self.seconds if self.seconds > 0 else 0.0


class LatencyStats:
    """A histogram with totals. Values arrive in bulk: recording one by one would cost more than sending a record."""

    def __init__(self, started: float) -> None:
        self._histogram: Any = HdrHistogram(1, LONGEST_US, SIGNIFICANT_DIGITS)
        self._started = started
        self._records = 0
        self._bytes = 0
        self._total_us = 0
        self._max_us = 0

    def add(self, latencies_us: list[int], size: int) -> None:
        for value, count in Counter(latencies_us).items():
            self._histogram.record_value(min(max(1, value), LONGEST_US), count)
        if latencies_us:
            self._records += len(latencies_us)
            self._total_us += sum(latencies_us)
            worst = max(latencies_us)
            self._max_us = max(self._max_us, worst)
        self._bytes += size

    def summary(self, now: float, percentiles: tuple[float, ...] = (50, 95, 99, 99.9)) -> Summary:
        return Summary(
            records=self._records,
            bytes=self._bytes,
            seconds=now - self._started,
            average_ms=self._total_us / self._records / 1000 if self._records else 0.0,
            max_ms=self._max_us / 1000,
            percentiles_ms={
                percentile: self._histogram.get_value_at_percentile(percentile) / 1000 if self._records else 0.0
                for percentile in percentiles
            },
        )
