"""Replicas: what this broker leads and follows."""

from ottla.telemetry.declaring import gauge, meter

_REPLICAS = "kafka.server:type=ReplicaManager,name="

FAILED_ISR_UPDATES = meter(
    _REPLICAS + "FailedIsrUpdatesPerSec",
    "changes",
    "Changes of in-sync replicas that could not be written; they are tried again.",
)
REASSIGNING = gauge(
    _REPLICAS + "ReassigningPartitions", "partitions", "Partitions led here whose replicas are being moved."
)
PRODUCER_IDS = gauge(
    _REPLICAS + "ProducerIdCount", "producers", "Producers of which partitions here remember what they wrote last."
)
MAX_LAG = gauge(
    "kafka.server:type=ReplicaFetcherManager,name=MaxLag,clientId={clientid}",
    "records",
    "How far the follower on this broker that is furthest behind is behind its leader.",
    name="kafka_server_replicafetchermanager_maxlag",
)
FAILED_PARTITIONS = gauge(
    "kafka.server:type=ReplicaFetcherManager,name=FailedPartitionsCount,clientId={clientid}",
    "partitions",
    "Partitions that this broker should follow and cannot at the moment.",
)
FOLLOWER_LAG = gauge(
    "kafka.server:type=FetcherLagMetrics,name=ConsumerLag,clientId={clientid},topic={topic},partition={partition}",
    "records",
    "How far a follower on this broker is behind its leader.",
)
