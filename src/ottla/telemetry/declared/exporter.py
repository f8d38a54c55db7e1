"""Offsets and lag under the names of kafka_exporter, as far as this broker knows them by itself.

Partitions are told by their leader and groups by their coordinator, so that each series comes from one broker. Lag
needs both: it is there where the coordinator has a replica of the partition.
"""

from ottla.telemetry.declaring import own
from ottla.telemetry.metric import Kind, Metric

_PARTITION = ("topic", "partition")
_GROUP = ("consumergroup", "topic", "partition")


def _gauge(name: str, unit: str, doc: str, labels: tuple[str, ...] = (), also: tuple[str, ...] = ()) -> Metric:
    return own(f"kafka_{name}", Kind.GAUGE, unit, doc, labels, also=also)


BROKERS = _gauge("brokers", "brokers", "Brokers that are registered, as the controller knows; not told elsewhere.")
BROKER_INFO = _gauge("broker_info", "1", "Where brokers are, as the controller knows.", ("id", "address"))
TOPIC_PARTITIONS = _gauge(
    "topic_partitions", "partitions", "Partitions of a topic, as the controller knows; not told elsewhere.", ("topic",)
)
CURRENT_OFFSET = _gauge(
    "topic_partition_current_offset", "offset", "Up to where a partition led here can be read.", _PARTITION
)
OLDEST_OFFSET = _gauge(
    "topic_partition_oldest_offset", "offset", "The first offset of a partition led here.", _PARTITION
)
REPLICAS = _gauge("topic_partition_replicas", "replicas", "Replicas of a partition led here.", _PARTITION)
IN_SYNC = _gauge("topic_partition_in_sync_replica", "replicas", "In-sync replicas of a partition led here.", _PARTITION)
PREFERRED = _gauge(
    "topic_partition_leader_is_preferred", "0 or 1", "1 if a partition is led by its first replica.", _PARTITION
)
UNDER_REPLICATED = _gauge(
    "topic_partition_under_replicated_partition",
    "0 or 1",
    "1 if not all replicas of a partition led here are in sync, alive and keeping up.",
    _PARTITION,
)
GROUP_OFFSET = _gauge(
    "consumergroup_current_offset", "offset", "What a group of this coordinator has committed.", _GROUP
)
GROUP_LAG = _gauge(
    "consumergroup_lag",
    "records",
    "How far a group is behind the end of a partition; only of partitions that this broker has a replica of.",
    _GROUP,
    also=("kafka_consumergroup_uncommitted_offsets",),
)
GROUP_OFFSET_SUM = _gauge(
    "consumergroup_current_offset_sum",
    "offset",
    "What a group of this coordinator has committed, over the partitions of a topic.",
    ("consumergroup", "topic"),
)
GROUP_LAG_SUM = _gauge(
    "consumergroup_lag_sum",
    "records",
    "How far a group is behind in a topic, over those partitions that this broker has a replica of.",
    ("consumergroup", "topic"),
)
GROUP_MEMBERS = _gauge(
    "consumergroup_members", "members", "Members of a group of this coordinator.", ("consumergroup",)
)
SERIES_LEFT_OUT = own(
    "ottla_metrics_left_out",
    Kind.GAUGE,
    "partitions",
    "How many partitions and committed offsets are not told under kafka_exporter's names, because there are more than "
    "`metrics.offsets.max` of them.",
    ("kind",),
)
