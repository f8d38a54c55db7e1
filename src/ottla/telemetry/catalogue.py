"""Every metric, declared once. docs/metrics.md is written from here.

Names are those that jmx_exporter makes of Kafka's MBeans, which is what dashboards ask for.
"""

from ottla.telemetry.declared import (
    clients,
    controller,
    exporter,
    groups,
    host,
    limits,
    logins,
    logs,
    network,
    replicas,
    topics,
    transactions,
    waiting,
    zookeeper,
)
from ottla.telemetry.declaring import METRICS
from ottla.telemetry.declaring import declare as _declare
from ottla.telemetry.declaring import rate as _rate
from ottla.telemetry.metric import Kind

__all__ = [
    "METRICS",
    "clients",
    "controller",
    "exporter",
    "groups",
    "host",
    "limits",
    "logins",
    "logs",
    "network",
    "replicas",
    "topics",
    "transactions",
    "waiting",
    "zookeeper",
]

_REQUESTS = "kafka.network:type=RequestMetrics"
_SOCKETS = "kafka.server:type=socket-server-metrics,listener={listener},networkProcessor=0"

REQUESTS = _declare(
    "kafka_network_requestmetrics_requests_total",
    _REQUESTS + ",name=RequestsPerSec,request={request},version={version}",
    "Count",
    Kind.COUNTER,
    "requests",
    "Requests that came, by API and version; fetches once more as `FetchConsumer` and `FetchFollower`.",
    ("request", "version"),
)
ERRORS = _declare(
    "kafka_network_requestmetrics_errors_total",
    _REQUESTS + ",name=ErrorsPerSec,request={request},error={error}",
    "Count",
    Kind.COUNTER,
    "errors",
    "Error codes in responses, each partition's and each group's among them; `NONE` is not counted.",
    ("request", "error"),
)
CONNECTIONS = _declare(
    "kafka_server_socket_server_metrics_connection_count",
    _SOCKETS,
    "connection-count",
    Kind.GAUGE,
    "connections",
    "Connections that are open.",
    ("listener",),
    also=("kafka_server_socketservermetrics_connection_count",),
)
CONNECTIONS_CREATED = _declare(
    "kafka_server_socket_server_metrics_connection_creation_total",
    _SOCKETS,
    "connection-creation-total",
    Kind.COUNTER,
    "connections",
    "Connections that were let in; those refused by a limit are not counted.",
    ("listener",),
)
CONNECTIONS_CLOSED = _declare(
    "kafka_server_socket_server_metrics_connection_close_total",
    _SOCKETS,
    "connection-close-total",
    Kind.COUNTER,
    "connections",
    "Connections that were closed, by whichever side.",
    ("listener",),
)
BYTES_IN = _declare(
    "kafka_server_socket_server_metrics_incoming_byte_total",
    _SOCKETS,
    "incoming-byte-total",
    Kind.COUNTER,
    "bytes",
    "Bytes received from clients and other brokers.",
    ("listener",),
)
BYTES_OUT = _declare(
    "kafka_server_socket_server_metrics_outgoing_byte_total",
    _SOCKETS,
    "outgoing-byte-total",
    Kind.COUNTER,
    "bytes",
    "Bytes sent to clients and other brokers.",
    ("listener",),
)
CONNECTION_CREATION_RATE = _rate(
    CONNECTIONS_CREATED, "connection-creation-rate", also=("kafka_server_socketservermetrics_connection_creation_rate",)
)
CONNECTION_CLOSE_RATE = _rate(
    CONNECTIONS_CLOSED, "connection-close-rate", also=("kafka_server_socketservermetrics_connection_close_rate",)
)
BYTES_IN_RATE = _rate(BYTES_IN, "incoming-byte-rate")
BYTES_OUT_RATE = _rate(BYTES_OUT, "outgoing-byte-rate")
AUDIT_DROPPED = _declare(
    "kafka_server_auditlog_dropped_total",
    "kafka.server:type=AuditLog,name=Dropped",
    "Count",
    Kind.COUNTER,
    "decisions",
    "Decisions of the authorizer that are missing in the audit log: it was behind, or could not write. Ottla's own.",
)

_WHO = ",user={user},client-id={client_id}"
_SHARERS = ("user", "client_id")
_ONLY = "Only of those that have a quota; without a user, or a client id, for all who share it."

QUOTA_PRODUCED = _declare(
    "kafka_server_produce_byte_rate",
    "kafka.server:type=Produce" + _WHO,
    "byte-rate",
    Kind.GAUGE,
    "bytes per second",
    f"Bytes produced, as `producer_byte_rate` counts them. {_ONLY}",
    _SHARERS,
)
QUOTA_PRODUCE_WAIT = _declare(
    "kafka_server_produce_throttle_time",
    "kafka.server:type=Produce" + _WHO,
    "throttle-time",
    Kind.GAUGE,
    "milliseconds",
    "How long they were held up, on average of the times that they were.",
    _SHARERS,
)
QUOTA_FETCHED = _declare(
    "kafka_server_fetch_byte_rate",
    "kafka.server:type=Fetch" + _WHO,
    "byte-rate",
    Kind.GAUGE,
    "bytes per second",
    f"Bytes fetched, as `consumer_byte_rate` counts them. {_ONLY}",
    _SHARERS,
)
QUOTA_FETCH_WAIT = _declare(
    "kafka_server_fetch_throttle_time",
    "kafka.server:type=Fetch" + _WHO,
    "throttle-time",
    Kind.GAUGE,
    "milliseconds",
    "How long they were held up, on average of the times that they were.",
    _SHARERS,
)
QUOTA_TIME = _declare(
    "kafka_server_request_request_time",
    "kafka.server:type=Request" + _WHO,
    "request-time",
    Kind.GAUGE,
    "percent",
    f"Time of the broker, as `request_percentage` counts it. {_ONLY}",
    _SHARERS,
)
QUOTA_TIME_WAIT = _declare(
    "kafka_server_request_throttle_time",
    "kafka.server:type=Request" + _WHO,
    "throttle-time",
    Kind.GAUGE,
    "milliseconds",
    "How long they were held up, on average of the times that they were.",
    _SHARERS,
)
QUOTA_TIME_EXEMPT = _declare(
    "kafka_server_request_exempt_request_time",
    "kafka.server:type=Request",
    "exempt-request-time",
    Kind.GAUGE,
    "percent",
    "Time of the broker for what is charged to nobody: fetches of followers, and what else brokers ask each other. "
    "Told while somebody has a `request_percentage`.",
)
QUOTA_MUTATIONS = _declare(
    "kafka_server_controllermutation_mutation_rate",
    "kafka.server:type=ControllerMutation" + _WHO,
    "mutation-rate",
    Kind.GAUGE,
    "partitions per second",
    f"Partitions created and deleted, over the window of `controller_mutation_rate`. {_ONLY}",
    _SHARERS,
)
QUOTA_TOKENS = _declare(
    "kafka_server_controllermutation_tokens",
    "kafka.server:type=ControllerMutation" + _WHO,
    "tokens",
    Kind.GAUGE,
    "partitions",
    f"How many partitions may be created or deleted at once; negative while there is a debt. {_ONLY}",
    _SHARERS,
)
QUOTA_MUTATION_WAIT = _declare(
    "kafka_server_controllermutation_throttle_time",
    "kafka.server:type=ControllerMutation" + _WHO,
    "throttle-time",
    Kind.GAUGE,
    "milliseconds",
    "How long they were held up, on average of the times that they were.",
    _SHARERS,
)

_REPLICAS = "kafka.server:type=ReplicaManager,name="
_CONTROLLER = "kafka.controller:type=KafkaController,name="
_PARTITION = ",topic={topic},partition={partition}"
_WHICH = ("topic", "partition")

PARTITION_COUNT = _declare(
    "kafka_server_replicamanager_partitioncount",
    _REPLICAS + "PartitionCount",
    "Value",
    Kind.GAUGE,
    "partitions",
    "Replicas on this broker.",
)
LEADER_COUNT = _declare(
    "kafka_server_replicamanager_leadercount",
    _REPLICAS + "LeaderCount",
    "Value",
    Kind.GAUGE,
    "partitions",
    "Partitions that this broker leads.",
)
UNDER_REPLICATED = _declare(
    "kafka_server_replicamanager_underreplicatedpartitions",
    _REPLICAS + "UnderReplicatedPartitions",
    "Value",
    Kind.GAUGE,
    "partitions",
    "Partitions led here whose replicas are not all in sync, alive and keeping up.",
)
UNDER_MIN_ISR = _declare(
    "kafka_server_replicamanager_underminisrpartitioncount",
    _REPLICAS + "UnderMinIsrPartitionCount",
    "Value",
    Kind.GAUGE,
    "partitions",
    "Partitions led here with fewer in-sync replicas than min.insync.replicas: producers with acks=all are refused.",
)
AT_MIN_ISR = _declare(
    "kafka_server_replicamanager_atminisrpartitioncount",
    _REPLICAS + "AtMinIsrPartitionCount",
    "Value",
    Kind.GAUGE,
    "partitions",
    "Partitions led here with no more in-sync replicas than min.insync.replicas, which a failure takes below it.",
)
OFFLINE_REPLICAS = _declare(
    "kafka_server_replicamanager_offlinereplicacount",
    _REPLICAS + "OfflineReplicaCount",
    "Value",
    Kind.GAUGE,
    "partitions",
    "Replicas of this broker that it does not serve: their disk has failed.",
)
ISR_SHRINKS = _declare(
    "kafka_server_replicamanager_isrshrinks_total",
    _REPLICAS + "IsrShrinksPerSec",
    "Count",
    Kind.COUNTER,
    "changes",
    "In-sync replicas that became fewer, as the leader wrote it.",
)
ISR_EXPANDS = _declare(
    "kafka_server_replicamanager_isrexpands_total",
    _REPLICAS + "IsrExpandsPerSec",
    "Count",
    Kind.COUNTER,
    "changes",
    "In-sync replicas that became more, as the leader wrote it.",
)
ACTIVE_CONTROLLER = _declare(
    "kafka_controller_kafkacontroller_activecontrollercount",
    _CONTROLLER + "ActiveControllerCount",
    "Value",
    Kind.GAUGE,
    "brokers",
    "1 on the broker that is the controller.",
)
OFFLINE_PARTITIONS = _declare(
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    _CONTROLLER + "OfflinePartitionsCount",
    "Value",
    Kind.GAUGE,
    "partitions",
    "Partitions without a leader, as the controller knows; 0 elsewhere.",
)
PREFERRED_IMBALANCE = _declare(
    "kafka_controller_kafkacontroller_preferredreplicaimbalancecount",
    _CONTROLLER + "PreferredReplicaImbalanceCount",
    "Value",
    Kind.GAUGE,
    "partitions",
    "Partitions that another than their preferred replica leads, as the controller knows; 0 elsewhere.",
)
GLOBAL_TOPICS = _declare(
    "kafka_controller_kafkacontroller_globaltopiccount",
    _CONTROLLER + "GlobalTopicCount",
    "Value",
    Kind.GAUGE,
    "topics",
    "Topics of the cluster, as the controller knows; 0 elsewhere.",
)
GLOBAL_PARTITIONS = _declare(
    "kafka_controller_kafkacontroller_globalpartitioncount",
    _CONTROLLER + "GlobalPartitionCount",
    "Value",
    Kind.GAUGE,
    "partitions",
    "Partitions of the cluster, as the controller knows; 0 elsewhere.",
)
ACTIVE_BROKERS = _declare(
    "kafka_controller_kafkacontroller_activebrokercount",
    _CONTROLLER + "ActiveBrokerCount",
    "Value",
    Kind.GAUGE,
    "brokers",
    "Brokers that are registered, as the controller knows; 0 elsewhere.",
)
PARTITION_UNDER_REPLICATED = _declare(
    "kafka_cluster_partition_underreplicated",
    "kafka.cluster:type=Partition,name=UnderReplicated" + _PARTITION,
    "Value",
    Kind.GAUGE,
    "0 or 1",
    "1 if not all replicas of a partition led here are in sync, alive and keeping up.",
    _WHICH,
)
PARTITION_UNDER_MIN_ISR = _declare(
    "kafka_cluster_partition_underminisr",
    "kafka.cluster:type=Partition,name=UnderMinIsr" + _PARTITION,
    "Value",
    Kind.GAUGE,
    "0 or 1",
    "1 if a partition led here has fewer in-sync replicas than min.insync.replicas.",
    _WHICH,
)
PARTITION_AT_MIN_ISR = _declare(
    "kafka_cluster_partition_atminisr",
    "kafka.cluster:type=Partition,name=AtMinIsr" + _PARTITION,
    "Value",
    Kind.GAUGE,
    "0 or 1",
    "1 if a partition led here has no more in-sync replicas than min.insync.replicas.",
    _WHICH,
)
PARTITION_REPLICAS = _declare(
    "kafka_cluster_partition_replicascount",
    "kafka.cluster:type=Partition,name=ReplicasCount" + _PARTITION,
    "Value",
    Kind.GAUGE,
    "replicas",
    "Replicas of a partition led here.",
    _WHICH,
)
PARTITION_IN_SYNC = _declare(
    "kafka_cluster_partition_insyncreplicascount",
    "kafka.cluster:type=Partition,name=InSyncReplicasCount" + _PARTITION,
    "Value",
    Kind.GAUGE,
    "replicas",
    "In-sync replicas of a partition led here.",
    _WHICH,
)
LOG_SIZE = _declare(
    "kafka_log_log_size",
    "kafka.log:type=Log,name=Size" + _PARTITION,
    "Value",
    Kind.GAUGE,
    "bytes",
    "Bytes of a partition's segments on this broker.",
    _WHICH,
)
LOG_START_OFFSET = _declare(
    "kafka_log_log_logstartoffset",
    "kafka.log:type=Log,name=LogStartOffset" + _PARTITION,
    "Value",
    Kind.GAUGE,
    "offset",
    "The first offset that a partition still has here.",
    _WHICH,
)
LOG_END_OFFSET = _declare(
    "kafka_log_log_logendoffset",
    "kafka.log:type=Log,name=LogEndOffset" + _PARTITION,
    "Value",
    Kind.GAUGE,
    "offset",
    "The offset that the next record of a partition gets here.",
    _WHICH,
)
LOG_SEGMENTS = _declare(
    "kafka_log_log_numlogsegments",
    "kafka.log:type=Log,name=NumLogSegments" + _PARTITION,
    "Value",
    Kind.GAUGE,
    "segments",
    "Segments of a partition on this broker.",
    _WHICH,
)
OFFLINE_LOG_DIRECTORIES = _declare(
    "kafka_log_logmanager_offlinelogdirectorycount",
    "kafka.log:type=LogManager,name=OfflineLogDirectoryCount",
    "Value",
    Kind.GAUGE,
    "directories",
    "Log directories that have failed.",
)
PROCESS_CPU = _declare(
    "process_cpu_seconds_total",
    "java.lang:type=OperatingSystem",
    "ProcessCpuTime",
    Kind.COUNTER,
    "seconds",
    "Processor time that this broker has used.",
)
PROCESS_MEMORY = _declare(
    "process_resident_memory_bytes",
    "java.lang:type=OperatingSystem",
    "CommittedVirtualMemorySize",
    Kind.GAUGE,
    "bytes",
    "Memory that this broker occupies.",
)
PROCESS_START = _declare(
    "process_start_time_seconds",
    "java.lang:type=Runtime",
    "StartTime",
    Kind.GAUGE,
    "seconds",
    "When this broker began, in seconds since 1970.",
)
PROCESS_OPEN_FDS = _declare(
    "process_open_fds",
    "java.lang:type=OperatingSystem",
    "OpenFileDescriptorCount",
    Kind.GAUGE,
    "descriptors",
    "File descriptors that are open.",
)
PROCESS_MAX_FDS = _declare(
    "process_max_fds",
    "java.lang:type=OperatingSystem",
    "MaxFileDescriptorCount",
    Kind.GAUGE,
    "descriptors",
    "File descriptors that may be open.",
)
