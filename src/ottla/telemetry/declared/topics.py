"""Traffic by topic. There is no series for all topics beside them: sums over topics would count everything twice.
Over JMX's protocol the MBeans without a topic are there, as Kafka has them."""

from ottla.telemetry.declaring import meter

TYPE = "kafka.server:type=BrokerTopicMetrics,name="
_TOPIC = ",topic={topic}"

MESSAGES_IN = meter(TYPE + "MessagesInPerSec" + _TOPIC, "records", "Records that producers wrote.")
BYTES_IN = meter(TYPE + "BytesInPerSec" + _TOPIC, "bytes", "Bytes of batches that producers wrote.")
BYTES_OUT = meter(TYPE + "BytesOutPerSec" + _TOPIC, "bytes", "Bytes of batches that consumers fetched.")
BYTES_REJECTED = meter(
    TYPE + "BytesRejectedPerSec" + _TOPIC, "bytes", "Bytes of batches that were refused because they are too large."
)
REPLICATION_BYTES_IN = meter(
    TYPE + "ReplicationBytesInPerSec" + _TOPIC, "bytes", "Bytes that this broker fetched from leaders as a follower."
)
REPLICATION_BYTES_OUT = meter(
    TYPE + "ReplicationBytesOutPerSec" + _TOPIC, "bytes", "Bytes that followers fetched from this broker."
)
REASSIGNMENT_BYTES_IN = meter(
    TYPE + "ReassignmentBytesInPerSec" + _TOPIC,
    "bytes",
    "Bytes that this broker fetched for replicas that are being moved to it.",
)
REASSIGNMENT_BYTES_OUT = meter(
    TYPE + "ReassignmentBytesOutPerSec" + _TOPIC,
    "bytes",
    "Bytes that brokers fetched from this one for replicas that are being moved to them.",
)
PRODUCE_REQUESTS = meter(
    TYPE + "TotalProduceRequestsPerSec" + _TOPIC,
    "appends",
    "Batches that came to be appended, whatever became of them.",
)
FETCH_REQUESTS = meter(
    TYPE + "TotalFetchRequestsPerSec" + _TOPIC, "reads", "Reads of a partition for a fetch; one that waits reads again."
)
FAILED_PRODUCE_REQUESTS = meter(
    TYPE + "FailedProduceRequestsPerSec" + _TOPIC,
    "appends",
    "Batches that were refused. As in Kafka those are left out which went to the wrong broker, were too large or "
    "damaged, or met a failed disk.",
)
FAILED_FETCH_REQUESTS = meter(
    TYPE + "FailedFetchRequestsPerSec" + _TOPIC,
    "reads",
    "Reads that were refused. As in Kafka those are left out which went to the wrong broker or asked for an offset "
    "that is not there.",
)
PRODUCE_CONVERSIONS = meter(
    TYPE + "ProduceMessageConversionsPerSec" + _TOPIC,
    "records",
    "Records that were compressed anew because the topic wants another codec than the producer's.",
)
INVALID_MAGIC = meter(
    TYPE + "InvalidMagicNumberRecordsPerSec", "batches", "Batches in a format older than version 2, or none at all."
)
INVALID_CRC = meter(TYPE + "InvalidMessageCrcRecordsPerSec", "batches", "Batches that fail their checksum.")
INVALID_SEQUENCE = meter(
    TYPE + "InvalidOffsetOrSequenceRecordsPerSec",
    "batches",
    "Batches whose offsets or records do not add up, or whose producer's sequence has a gap.",
)
NO_KEY = meter(
    TYPE + "NoKeyCompactedTopicRecordsPerSec", "batches", "Batches for a compacted topic with records without a key."
)
