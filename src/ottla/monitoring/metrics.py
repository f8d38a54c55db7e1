"""What the monitor measures, each declared once. docs/monitor-metrics.md is written from them.

Of lag under the names that Burrow itself and burrow_exporter have, so that their dashboards work; of records end to end
after the MBeans of Xinfra Monitor, whose names are labels here. What neither has begins with `ottla_monitor_`.
"""

from ottla.telemetry.metric import Kind, Metric

MONITOR_METRICS: dict[str, Metric] = {}

_GROUP = ("cluster", "consumer_group")
_GROUP_PARTITION = (*_GROUP, "topic", "partition")
_EXPORTED_GROUP = ("cluster", "group")
_EXPORTED_PARTITION = (*_EXPORTED_GROUP, "topic", "partition")
_PARTITION = ("cluster", "topic", "partition")
_STATUS = "0 to 6"


def _declare(metric: Metric) -> Metric:
    assert metric.name not in MONITOR_METRICS, f"{metric.name} is declared twice"
    MONITOR_METRICS[metric.name] = metric
    return metric


def _gauge(name: str, unit: str, doc: str, labels: tuple[str, ...], mbean: str = "", attribute: str = "") -> Metric:
    return _declare(Metric(name, mbean, attribute, Kind.GAUGE, unit, doc, labels))


def _counter(name: str, unit: str, doc: str, labels: tuple[str, ...], mbean: str = "", attribute: str = "") -> Metric:
    return _declare(Metric(name, mbean, attribute, Kind.COUNTER, unit, doc, labels))


# Lag, as Burrow serves it.

GROUP_LAG = _gauge("burrow_kafka_consumer_lag_total", "records", "Unread records of a group.", _GROUP)
GROUP_STATUS = _gauge(
    "burrow_kafka_consumer_status", _STATUS, "How a group is: 0 not found, 1 OK, 2 WARN, 3 ERR.", _GROUP
)
PARTITION_LAG = _gauge(
    "burrow_kafka_consumer_partition_lag", "records", "Unread records of a group in a partition.", _GROUP_PARTITION
)
PARTITION_OFFSET = _gauge(
    "burrow_kafka_consumer_current_offset", "offset", "What a group has committed last.", _GROUP_PARTITION
)
PARTITION_STATUS = _gauge(
    "burrow_kafka_topic_partition_status",
    _STATUS,
    "How a group is in a partition: 1 OK, 2 WARN, 4 STOP, 5 STALL, 6 REWIND. From when its window is full.",
    _GROUP_PARTITION,
)
TOPIC_END = _gauge("burrow_kafka_topic_partition_offset", "offset", "Where the log of a partition ends.", _PARTITION)

# The same, as burrow_exporter serves it: its numbers of states are one higher.

EXPORTED_GROUP_LAG = _gauge("kafka_burrow_total_lag", "records", "Unread records of a group.", _EXPORTED_GROUP)
EXPORTED_GROUP_STATUS = _gauge(
    "kafka_burrow_status", "1 to 7", "How a group is: 1 not found, 2 OK, 3 WARN, 4 ERR.", _EXPORTED_GROUP
)
EXPORTED_PARTITION_LAG = _gauge(
    "kafka_burrow_partition_lag", "records", "Unread records of a group in a partition.", _EXPORTED_PARTITION
)
EXPORTED_PARTITION_STATUS = _gauge(
    "kafka_burrow_partition_status",
    "1 to 7",
    "How a group is in a partition: 2 OK, 3 WARN, 5 STOP, 6 STALL, 7 REWIND.",
    _EXPORTED_PARTITION,
)
EXPORTED_PARTITION_OFFSET = _gauge(
    "kafka_burrow_partition_current_offset", "offset", "What a group has committed last.", _EXPORTED_PARTITION
)
EXPORTED_TOPIC_END = _gauge(
    "kafka_burrow_topic_partition_offset", "offset", "Where the log of a partition ends.", _PARTITION
)

# As kafka-lag-exporter serves it, and Grafana's kafka_exporter in milliseconds.

_NAMED_GROUP = ("cluster_name", "group")
_NAMED_GROUP_PARTITION = (*_NAMED_GROUP, "topic", "partition")
LAG_EXPORTER_END = _gauge(
    "kafka_partition_latest_offset",
    "offset",
    "Where the log of a partition ends.",
    ("cluster_name", "topic", "partition"),
)
LAG_EXPORTER_OFFSET = _gauge(
    "kafka_consumergroup_group_offset", "offset", "What a group has committed last.", _NAMED_GROUP_PARTITION
)
LAG_EXPORTER_LAG = _gauge(
    "kafka_consumergroup_group_lag", "records", "Unread records of a group in a partition.", _NAMED_GROUP_PARTITION
)
LAG_EXPORTER_SECONDS = _gauge(
    "kafka_consumergroup_group_lag_seconds",
    "seconds",
    "How old the oldest unread record of a group in a partition is. Absent while that is not known.",
    _NAMED_GROUP_PARTITION,
)
LAG_EXPORTER_MAX_LAG = _gauge(
    "kafka_consumergroup_group_max_lag", "records", "The lag of a group's worst partition.", _NAMED_GROUP
)
LAG_EXPORTER_MAX_SECONDS = _gauge(
    "kafka_consumergroup_group_max_lag_seconds",
    "seconds",
    "How old the oldest unread record of a group is. Absent while that is not known.",
    _NAMED_GROUP,
)
LAG_MILLIS = _gauge(
    "kafka_consumer_lag_millis",
    "milliseconds",
    "How old the oldest unread record of a group in a partition is. Absent while that is not known.",
    ("cluster", "consumergroup", "topic", "partition"),
)

# Lag in seconds.

GROUP_WAITING = _gauge(
    "ottla_monitor_consumer_lag_seconds",
    "seconds",
    "How old the oldest unread record of a group is. Absent while that is not known.",
    _GROUP,
)
GROUP_CAUGHT_UP = _gauge(
    "ottla_monitor_consumer_caught_up_seconds",
    "seconds",
    "In how long a group will have read everything, at the speeds of its window. Absent if never.",
    _GROUP,
)
GROUP_MEMBERS = _gauge("ottla_monitor_consumer_members", "members", "Members of a group.", _GROUP)

# The cluster, as a client sees it.

LOOKS = _counter("ottla_monitor_looks_total", "looks", "How often the cluster was looked at.", ("cluster",))
LOOKS_FAILED = _counter(
    "ottla_monitor_looks_failed_total", "looks", "Looks at which a broker did not answer.", ("cluster",)
)
LOOK_SECONDS = _gauge("ottla_monitor_look_seconds", "seconds", "How long the last look took.", ("cluster",))
BROKERS = _gauge("ottla_monitor_brokers", "brokers", "Brokers that the metadata names.", ("cluster",))
LEADERLESS = _gauge(
    "ottla_monitor_partitions_without_leader", "partitions", "Partitions without a leader.", ("cluster",)
)
UNDER_REPLICATED = _gauge(
    "ottla_monitor_partitions_under_replicated",
    "partitions",
    "Partitions whose replicas are not all in sync.",
    ("cluster",),
)
DIRECTORY_TOTAL = _gauge(
    "ottla_monitor_log_directory_bytes",
    "bytes",
    "Size of the disk that a log directory is on. Kafka tells it since 3.3.",
    ("cluster", "broker", "directory"),
)
DIRECTORY_FREE = _gauge(
    "ottla_monitor_log_directory_free_bytes",
    "bytes",
    "What is free on the disk that a log directory is on.",
    ("cluster", "broker", "directory"),
)
NOTICES = _counter(
    "ottla_monitor_notices_total", "notices", "Notices sent by each notifier, `open` and `close`.", ("notifier", "kind")
)
NOTICES_FAILED = _counter(
    "ottla_monitor_notices_failed_total", "notices", "Notices that could not be sent.", ("notifier", "kind")
)

# End to end, as Xinfra Monitor has it.

_PRODUCE = "kmf.services:type=produce-service,name={name}"
_CONSUME = "kmf.services:type=consume-service,name={name}"
_COMMIT = "kmf.services:type=offset-commit-service,name={name}"
_LATENCY = "kmf.services:type=commit-latency-service,name={name}"
_MANIPULATION = "kmf.services:type=cluster-topic-manipulation-service,name={name}"
_NAME = ("name",)
_BY_PARTITION = ("name", "partition")
_AT = ("name", "quantile")


def _kmf(mbean: str, attribute: str, kind: Kind, unit: str, doc: str, labels: tuple[str, ...] = _NAME) -> Metric:
    service = mbean.partition("type=")[2].partition(",")[0]
    name = f"kmf_services_{service}_{attribute}".replace("-", "_")
    return _declare(Metric(name, mbean, attribute, kind, unit, doc, labels))


PRODUCE_AVAILABILITY = _kmf(
    _PRODUCE,
    "produce-availability-avg",
    Kind.GAUGE,
    "0 to 1",
    "Share of records that were acknowledged, of each partition in the last minute, on average of the partitions.",
)
PRODUCED = _kmf(_PRODUCE, "records-produced-total", Kind.COUNTER, "records", "Records that were acknowledged.")
PRODUCE_ERRORS = _kmf(
    _PRODUCE, "produce-error-total", Kind.COUNTER, "records", "Records that were refused, or not acknowledged in time."
)
PRODUCE_DELAY = _kmf(
    _PRODUCE,
    "produce-delay-ms",
    Kind.GAUGE,
    "milliseconds",
    "From sending a record to its acknowledgement, in the last minute.",
    _AT,
)
CONSUME_AVAILABILITY = _kmf(
    _CONSUME,
    "consume-availability-avg",
    Kind.GAUGE,
    "0 to 1",
    "Share of acknowledged records that were read in time, in the last minute.",
)
CONSUMED = _kmf(_CONSUME, "records-consumed-total", Kind.COUNTER, "records", "Records that were read.")
CONSUME_ERRORS = _kmf(_CONSUME, "consume-error-total", Kind.COUNTER, "requests", "Fetches that failed.")
LOST = _kmf(
    _CONSUME, "records-lost-total", Kind.COUNTER, "records", "Acknowledged records that are not where they should be."
)
DUPLICATED = _kmf(_CONSUME, "records-duplicated-total", Kind.COUNTER, "records", "Records that were read twice.")
DELAYED = _kmf(
    _CONSUME,
    "records-delayed-total",
    Kind.COUNTER,
    "records",
    "Records that were read later than consume.latency.sla.ms.",
)
CONSUME_DELAY = _kmf(
    _CONSUME,
    "records-delay-ms",
    Kind.GAUGE,
    "milliseconds",
    "From sending a record to reading it, in the last minute.",
    _AT,
)
COMMIT_AVAILABILITY = _kmf(
    _COMMIT,
    "offset-commit-availability-avg",
    Kind.GAUGE,
    "0 to 1",
    "Share of offset commits that were taken, in the last minute.",
)
COMMITS = _kmf(
    _COMMIT, "offset-commit-service-success-total", Kind.COUNTER, "commits", "Offset commits that were taken."
)
COMMITS_FAILED = _kmf(
    _COMMIT, "offset-commit-service-failure-total", Kind.COUNTER, "commits", "Offset commits that were not."
)
COMMIT_DELAY = _kmf(
    _LATENCY, "commit-offset-latency-ms", Kind.GAUGE, "milliseconds", "How long a commit took, in the last minute.", _AT
)
TOPIC_CREATION = _kmf(
    _MANIPULATION,
    "topic-creation-metadata-propagation-ms",
    Kind.GAUGE,
    "milliseconds",
    "From asking for a topic until every broker knows it, the last time.",
)
TOPIC_DELETION = _kmf(
    _MANIPULATION,
    "topic-deletion-metadata-propagation-ms",
    Kind.GAUGE,
    "milliseconds",
    "From deleting a topic until no broker knows it, the last time.",
)
TOPIC_FAILURES = _kmf(
    _MANIPULATION,
    "topic-manipulation-failure-total",
    Kind.COUNTER,
    "attempts",
    "Topics that could not be created, or not deleted.",
)
PARTITION_AVAILABILITY = _gauge(
    "ottla_monitor_partition_availability",
    "0 to 1",
    "Share of the records of one partition that were acknowledged in the last minute.",
    (*_BY_PARTITION, "leader"),
)

# Service levels.

_SLI = ("name", "sli")
SLI_GOOD = _counter(
    "ottla_monitor_sli_good_total", "records", "Records that kept the objective: `write`, `read`.", _SLI
)
SLI_BAD = _counter("ottla_monitor_sli_bad_total", "records", "Records that did not.", _SLI)
SLI_RATIO = _gauge("ottla_monitor_sli_ratio", "0 to 1", "Share of good records in the window of the objective.", _SLI)
SLO_OBJECTIVE = _gauge("ottla_monitor_slo_objective_ratio", "0 to 1", "The objective.", _SLI)
BUDGET_LEFT = _gauge(
    "ottla_monitor_error_budget_remaining_ratio",
    "ratio",
    "What is left of the bad records that the objective allows: 1 is all, below 0 it is broken.",
    _SLI,
)
BURN_RATE = _gauge(
    "ottla_monitor_burn_rate",
    "ratio",
    "How fast the budget is used up: at 1 it lasts for just the objective's window. By length of the look back.",
    (*_SLI, "window"),
)
