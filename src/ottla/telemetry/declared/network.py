"""Requests, the loop that works on them, what waits, and connections."""

from ottla.telemetry.declaring import attribute, declare, gauge, histogram, meter
from ottla.telemetry.metric import Kind

_TIMES = "kafka.network:type=RequestMetrics,name={name},request={{request}}"
_MS = "milliseconds"
_POOL = "kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent"


TOTAL_TIME = histogram(
    _TIMES.format(name="TotalTimeMs"), _MS, "From the last byte of a request to the last byte of its response."
)
QUEUE_TIME = histogram(
    _TIMES.format(name="RequestQueueTimeMs"), _MS, "How long a request waited for those that arrived together with it."
)
LOCAL_TIME = histogram(_TIMES.format(name="LocalTimeMs"), _MS, "How long the broker worked on a request.")
REMOTE_TIME = histogram(
    _TIMES.format(name="RemoteTimeMs"),
    _MS,
    "How long a request waited: for replicas, for records, for members of a group.",
)
THROTTLE_TIME = histogram(
    _TIMES.format(name="ThrottleTimeMs"), _MS, "How long the client was told to wait for its quota."
)
RESPONSE_QUEUE_TIME = histogram(
    _TIMES.format(name="ResponseQueueTimeMs"), _MS, "From the moment a response was known until its sending began."
)
RESPONSE_SEND_TIME = histogram(
    _TIMES.format(name="ResponseSendTimeMs"), _MS, "How long it took until the system had taken all of a response."
)
REQUEST_BYTES = histogram(_TIMES.format(name="RequestBytes"), "bytes", "How large requests are.")

REQUEST_QUEUE_SIZE = gauge(
    "kafka.network:type=RequestChannel,name=RequestQueueSize",
    "connections",
    "Connections with requests that were received and wait for their turn.",
)
RESPONSE_QUEUE_SIZE = gauge(
    "kafka.network:type=RequestChannel,name=ResponseQueueSize",
    "connections",
    "Connections whose peer does not take what it was sent.",
)
NETWORK_IDLE = gauge(
    "kafka.network:type=SocketServer,name=NetworkProcessorAvgIdlePercent",
    "0 to 1",
    "How much of the last minute the loop had nothing to do. One loop does the work of Kafka's network threads and "
    "request handlers.",
    also=("kafka_network_socketserver_networkprocessoravgidle_percent",),
)
HANDLER_IDLE = declare(
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent",
    _POOL,
    "OneMinuteRate",
    Kind.GAUGE,
    "0 to 1",
    "The same as `networkprocessoravgidlepercent`: there is one loop.",
    also=(
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_oneminuterate",
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total",
    ),
)
LOOP_DELAY = histogram(
    "ottla:type=Loop,name=delay-ms", _MS, "How late the loop is with a timer, asked ten times a second. Ottla's own."
)
EXPIRED_CONNECTIONS = attribute(
    "kafka.network:type=SocketServer,name=ExpiredConnectionsKilledCount",
    "Value",
    Kind.GAUGE,
    "connections",
    "Connections that were closed because their login had expired.",
    called="kafka_network_socketserver_expiredconnectionskilledcount",
)
MEMORY_POOL_USED = gauge(
    "kafka.network:type=SocketServer,name=MemoryPoolUsed",
    "bytes",
    "Bytes of requests that are held; queued.max.request.bytes is the most.",
)
BROKER_STATE = gauge(
    "kafka.server:type=KafkaServer,name=BrokerState",
    "state",
    "1 starts, 2 recovers, 3 runs, 6 hands over, 7 shuts down.",
)
PURGATORY = gauge(
    "kafka.server:type=DelayedOperationPurgatory,name=PurgatorySize,delayedOperation={delayedoperation}",
    "requests",
    "Requests that wait: Produce for replicas, Fetch for records, Rebalance for the members of a group.",
)
DELAYED_OPERATIONS = gauge(
    "kafka.server:type=DelayedOperationPurgatory,name=NumDelayedOperations,delayedOperation={delayedoperation}",
    "requests",
    "The same: nothing that is done stays among those that wait.",
)
FETCH_SESSIONS = gauge(
    "kafka.server:type=FetchSessionCache,name=NumIncrementalFetchSessions", "sessions", "Incremental fetch sessions."
)
FETCH_SESSION_PARTITIONS = gauge(
    "kafka.server:type=FetchSessionCache,name=NumIncrementalFetchPartitionsCached",
    "partitions",
    "Partitions that incremental fetch sessions look at.",
)
FETCH_SESSION_EVICTIONS = meter(
    "kafka.server:type=FetchSessionCache,name=IncrementalFetchSessionEvictionsPerSec",
    "sessions",
    "Incremental fetch sessions that gave way to others: `max.incremental.fetch.session.cache.slots` are few.",
)
DISK_READ = gauge(
    "kafka.server:type=KafkaServer,name=linux-disk-read-bytes",
    "bytes",
    "Bytes that this process had read from disks: not from the page cache.",
)
DISK_WRITTEN = gauge(
    "kafka.server:type=KafkaServer,name=linux-disk-write-bytes",
    "bytes",
    "Bytes that this process caused to be written.",
)
