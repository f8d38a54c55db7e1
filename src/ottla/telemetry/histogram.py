"""How values are distributed, in buckets that grow with the value: plain integers, folded into rolling intervals.

A value of n is in the bucket of its highest bits, 32 buckets to a power of two, so a quantile is wrong by 1.6 %
at most. `counts` may be added to in place: whoever records often does so without a call (`bucket_of` says which
bucket).
Nothing decays: a reading is about the last minutes, all of them and nothing else.
"""

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from ottla.telemetry.metric import NOTHING, QUANTILES, Distribution

SUB_BITS = 5
LINEAR = 1 << SUB_BITS
VALUE_MAX = (1 << 36) - 1
"""Larger values count as this one: in microseconds 19 hours, in bytes 64 GiB."""
BUCKETS = ((VALUE_MAX.bit_length() - SUB_BITS) << SUB_BITS) + LINEAR
INTERVALS = 10
_SHARES = tuple(float(quantile) for quantile in QUANTILES)


def bucket_of(value: int) -> int:
    """Values up to 31 have a bucket each."""
    shift = value.bit_length() - SUB_BITS - 1
    return value if shift <= 0 else (shift << SUB_BITS) + (value >> shift)


def middle_of(bucket: int) -> float:
    """The value that stands for all those of a bucket."""
    shift = (bucket >> SUB_BITS) - 1
    if shift <= 0:
        return float(bucket)
    low = (LINEAR + (bucket & (LINEAR - 1))) << shift
    return low + ((1 << shift) - 1) / 2


class Histogram:
    """`fold` is called at the end of each interval; what is read covers the last `INTERVALS` of them and this one."""

    __slots__ = ("_folded", "_intervals", "_unit", "counts")

    def __init__(self, unit: float = 1.0) -> None:
        """`unit` is what a value of 1 stands for in what is read."""
        self.counts = [0] * BUCKETS
        """How many values of this interval are in which bucket."""
        self._unit = unit
        self._intervals: deque[Mapping[int, int]] = deque(maxlen=INTERVALS)
        self._folded = 0

    def record(self, value: int, weight: int = 1) -> None:
        self.counts[bucket_of(min(max(value, 0), VALUE_MAX))] += weight

    def fold(self) -> None:
        """An interval is over."""
        ended = {bucket: count for bucket, count in enumerate(self.counts) if count}
        self._intervals.append(ended)
        if ended:
            self._folded += sum(ended.values())
            for bucket in ended:
                self.counts[bucket] = 0

    def read(self) -> Distribution:
        return self.read_together([self])

    @staticmethod
    def read_together(histograms: "Sequence[Histogram]") -> Distribution:
        """How they are now, as if they were one."""
        parts: list[Mapping[int, int]] = []
        count = 0
        for each in histograms:
            current = {bucket: number for bucket, number in enumerate(each.counts) if number}
            parts += [*each._intervals, current]
            count += each._folded + sum(current.values())
        return distribution(parts, count, histograms[0]._unit)


def distribution(parts: Iterable[Mapping[int, int]], count: int, unit: float) -> Distribution:
    total: dict[int, int] = {}
    for part in parts:
        for bucket, number in part.items():
            total[bucket] = total.get(bucket, 0) + number
    recent = sum(total.values())
    if not recent:
        return NOTHING._replace(number=count)
    found = sorted((middle_of(bucket) * unit, number) for bucket, number in total.items())
    mean = sum(value * number for value, number in found) / recent
    deviation = math.sqrt(sum((value - mean) ** 2 * number for value, number in found) / recent)
    return Distribution(count, recent, mean, deviation, found[0][0], found[-1][0], _quantiles(found, recent))


def _quantiles(found: list[tuple[float, int]], recent: int) -> tuple[float, ...]:
    """The smallest value that this share of all values does not exceed."""
    results: list[float] = []
    passed, position = 0, -1
    for share in _SHARES:
        while position < 0 or (passed < share * recent and position < len(found) - 1):
            position += 1
            passed += found[position][1]
        results.append(found[position][0])
    return tuple(results)
