"""Groups, of the partitions of `__consumer_offsets` that this broker leads."""

from ottla.telemetry.declaring import attribute, gauge, rate
from ottla.telemetry.metric import Kind, Metric

_GROUPS = "kafka.server:type=group-coordinator-metrics"
_MANAGER = "kafka.server:type=GroupMetadataManager,name="
_STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Empty")

COUNT = attribute(
    _GROUPS + ",protocol={protocol}", "group-count", Kind.GAUGE, "groups", "Groups by the protocol of their members."
)
CLASSIC_COUNT = attribute(
    _GROUPS + ",state={state}", "classic-group-count", Kind.GAUGE, "groups", "Classic groups by state."
)
CONSUMER_COUNT = attribute(
    _GROUPS + ",state={state}",
    "consumer-group-count",
    Kind.GAUGE,
    "groups",
    "Groups of the consumer protocol by state.",
)
REBALANCES = attribute(
    _GROUPS,
    "group-completed-rebalance-count",
    Kind.COUNTER,
    "rebalances",
    "Rebalances of classic groups that came to an end.",
)
REBALANCE_RATE = rate(REBALANCES, "group-completed-rebalance-rate")
CONSUMER_REBALANCES = attribute(
    _GROUPS,
    "consumer-group-rebalance-count",
    Kind.COUNTER,
    "rebalances",
    "New epochs of groups of the consumer protocol.",
)
CONSUMER_REBALANCE_RATE = rate(CONSUMER_REBALANCES, "consumer-group-rebalance-rate")
COMMITS = attribute(_GROUPS, "offset-commit-count", Kind.COUNTER, "offsets", "Offsets that were committed.")
COMMIT_RATE = rate(COMMITS, "offset-commit-rate")
EXPIRED = attribute(
    _GROUPS, "offset-expiration-count", Kind.COUNTER, "offsets", "Offsets that were let go because nobody used them."
)
EXPIRATION_RATE = rate(EXPIRED, "offset-expiration-rate")
DELETED = attribute(
    _GROUPS, "offset-deletion-count", Kind.COUNTER, "offsets", "Offsets that were deleted, with their group or alone."
)
LOAD_TIME_MAX = attribute(
    _GROUPS, "partition-load-time-max", Kind.GAUGE, "milliseconds", "The longest time it took to read a partition."
)
LOAD_TIME_AVG = attribute(
    _GROUPS, "partition-load-time-avg", Kind.GAUGE, "milliseconds", "The mean time it took to read a partition."
)


def _manager(name: str, unit: str, doc: str) -> Metric:
    """Kafka moved these MBeans to kafka.coordinator.group: dashboards ask for one or the other."""
    return gauge(_MANAGER + name, unit, doc, also=(f"kafka_coordinator_group_groupmetadatamanager_{name.lower()}",))


NUM_GROUPS = _manager("NumGroups", "groups", "Classic groups, and those that only keep offsets.")
NUM_GROUPS_IN = {
    state: _manager(f"NumGroups{state}", "groups", f"Classic groups in state {state}.") for state in _STATES
}
NUM_OFFSETS = _manager("NumOffsets", "offsets", "Offsets that are kept.")
