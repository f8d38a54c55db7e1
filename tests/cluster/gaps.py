"""A ledger that also knows how long nothing was acknowledged."""

import time
from dataclasses import dataclass, field

from ottla.testing.ledger import Ledger, Stamp


@dataclass
class Gap:
    """The time since the last acknowledgement, and the longest there was."""

    last: float = field(default_factory=time.monotonic)
    longest: float = 0.0

    def acknowledged(self, now: float) -> None:
        self.longest = max(self.longest, now - self.last)
        self.last = now


class TimedLedger(Ledger):
    """Gaps of all partitions together, and of each: one that has no leader shows only in its own."""

    def __init__(self) -> None:
        super().__init__()
        self.overall = Gap()
        self.by_partition: dict[int, Gap] = {}

    def acknowledged(self, stamp: Stamp, offset: int) -> None:
        super().acknowledged(stamp, offset)
        now = time.monotonic()
        self.overall.acknowledged(now)
        self.by_partition.setdefault(stamp.partition, Gap()).acknowledged(now)

    def begin_anew(self) -> None:
        """Forget the gaps there were."""
        self.overall = Gap()
        self.by_partition = {}

    @property
    def longest_gap(self) -> float:
        """In seconds, over all partitions."""
        return self.overall.longest

    @property
    def longest_gap_of_a_partition(self) -> float:
        return max((gap.longest for gap in list(self.by_partition.values())), default=0.0)
