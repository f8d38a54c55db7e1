"""Groups and transactions, as metrics."""

from collections import Counter
from collections.abc import Iterator

from ottla.broker.coordination.counts import CoordinatorCounts
from ottla.broker.coordination.groups.classic.group import ClassicGroup
from ottla.broker.coordination.runtime import GroupCoordinator
from ottla.broker.coordination.transaction_partitions import ClusterTransactionPartitions
from ottla.broker.coordination.transaction_runtime import TransactionCoordinator
from ottla.protocol.transaction_records import TransactionState
from ottla.telemetry.declared import groups, transactions
from ottla.telemetry.metric import Metric, Row
from ottla.telemetry.registry import Telemetry

_STATES = tuple(groups.NUM_GROUPS_IN)
_GROUPS = (groups.NUM_GROUPS, groups.NUM_OFFSETS, *groups.NUM_GROUPS_IN.values())
_CONSUMER_STATES = ("Empty", "Assigning", "Reconciling", "Stable")
_COUNTS = (groups.REBALANCES, groups.CONSUMER_REBALANCES, groups.COMMITS, groups.EXPIRED, groups.DELETED)


class _Census:
    """All groups, gone through once. Kept as long as one scrape reads."""

    def __init__(self, coordinator: GroupCoordinator) -> None:
        self.classic: Counter[str] = Counter()
        self.consumer: Counter[str] = Counter()
        self.offsets = 0
        for machine in coordinator.machines():
            for group in machine.all_groups():
                kind = self.classic if isinstance(group, ClassicGroup) else self.consumer
                kind[group.state.value] += 1
                self.offsets += sum(map(len, group.offsets.values()))


def show_groups(telemetry: Telemetry, coordinator: GroupCoordinator) -> None:
    def read_groups() -> Iterator[Row]:
        census = _Census(coordinator)
        yield (), (census.classic.total(), census.offsets, *(census.classic[state] for state in _STATES))

    def read_states(which: str, states: tuple[str, ...]) -> Iterator[tuple[tuple[str], int]]:
        counted: Counter[str] = getattr(_Census(coordinator), which)
        for state in states:
            yield (state,), counted[state]

    def read_protocols() -> Iterator[tuple[tuple[str], int]]:
        census = _Census(coordinator)
        yield ("classic",), census.classic.total()
        yield ("consumer",), census.consumer.total()

    def read_counts() -> Iterator[Row]:
        counts = coordinator.counts
        yield (), (counts.rebalances, counts.consumer_rebalances, counts.commits, counts.expirations, counts.deletions)

    telemetry.observe_together(_GROUPS, read_groups)
    telemetry.observe(groups.COUNT, read_protocols)
    telemetry.observe(groups.CLASSIC_COUNT, lambda: read_states("classic", _STATES))
    telemetry.observe(groups.CONSUMER_COUNT, lambda: read_states("consumer", _CONSUMER_STATES))
    telemetry.observe_together(_COUNTS, read_counts)
    _show_loads(telemetry, (groups.LOAD_TIME_MAX, groups.LOAD_TIME_AVG), coordinator.counts)


def show_transactions(
    telemetry: Telemetry, coordinator: TransactionCoordinator, partitions: ClusterTransactionPartitions
) -> None:
    def read_states() -> Iterator[tuple[tuple[str], int]]:
        counted: Counter[TransactionState] = Counter()
        for machine in coordinator.machines():
            counted.update(value.state for value in machine.transactions.values())
        for state in TransactionState:
            yield (state.name.replace("_", " ").title().replace(" ", ""),), counted[state]

    def read_outcomes() -> Iterator[tuple[tuple[str], int]]:
        yield ("commit",), coordinator.counts.committed_transactions
        yield ("abort",), coordinator.counts.aborted_transactions

    telemetry.observe(transactions.TRANSACTIONS, read_states)
    telemetry.observe(transactions.COMPLETED, read_outcomes)
    telemetry.observe_one(transactions.VERIFICATION_TIME, partitions.times.read)
    telemetry.observe_one(transactions.VERIFICATION_FAILURES, lambda: partitions.failures)
    _show_loads(telemetry, (transactions.LOAD_TIME_MAX, transactions.LOAD_TIME_AVG), coordinator.counts)


def _show_loads(telemetry: Telemetry, metrics: tuple[Metric, Metric], counts: CoordinatorCounts) -> None:
    telemetry.observe_together(metrics, lambda: (((), (counts.load_ms_max, counts.load_ms_mean)),))
