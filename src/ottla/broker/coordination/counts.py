"""What coordinators count, as plain integers. Read when somebody asks for metrics."""

import msgspec


class CoordinatorCounts(msgspec.Struct):
    """Since this broker started."""

    loads: int = 0
    load_ms_sum: float = 0.0
    load_ms_max: float = 0.0
    rebalances: int = 0
    consumer_rebalances: int = 0
    commits: int = 0
    expirations: int = 0
    deletions: int = 0
    committed_transactions: int = 0
    aborted_transactions: int = 0

    def loaded(self, ms: float) -> None:
        """A partition was read."""
        self.loads += 1
        self.load_ms_sum += ms
        self.load_ms_max = max(self.load_ms_max, ms)

    @property
    def load_ms_mean(self) -> float:
        return self.load_ms_sum / self.loads if self.loads else 0.0
