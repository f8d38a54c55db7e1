"""Requests that tests send over a plain socket, in versions that go by topic name."""

from collections.abc import Mapping, Sequence

from ottla.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.protocol.records import NewRecord, encode_batch
from ottla.testing.wire import WireConnection

PRODUCE_VERSION = 9
FETCH_VERSION = 12
CREATE_TOPICS_VERSION = 5
METADATA_VERSION = 9


def produce_request(
    topic: str, partition: int, values: Sequence[bytes], *, acks: int = -1, producer: int = -1, sequence: int = -1
) -> ProduceRequest:
    """One batch; that of an idempotent producer if there is one."""
    batch = encode_batch(
        [NewRecord(None, value, 1_700_000_000_000) for value in values],
        producer_id=producer, producer_epoch=min(producer, 0), base_sequence=sequence,
    )  # fmt: skip
    data = PartitionProduceData(index=partition, records=batch)
    return ProduceRequest(
        acks=acks, timeout_ms=10_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )


def produce(
    connection: WireConnection, topic: str, partition: int, values: Sequence[bytes], *, producer: int = -1,
    sequence: int = -1,
) -> PartitionProduceResponse:  # fmt: skip
    """Produce one batch and return what the broker said about it."""
    request = produce_request(topic, partition, values, producer=producer, sequence=sequence)
    answer = connection.call(request, PRODUCE_VERSION, ProduceResponse)
    return answer.responses[0].partition_responses[0]


def fetch_request(
    topic: str, partition: int, offset: int, *, max_bytes: int = 1 << 20, min_bytes: int = 1, max_wait_ms: int = 0
) -> FetchRequest:
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
    )


def create_topic(
    connection: WireConnection, topic: str, partitions: int = 1, *, configs: Mapping[str, str] | None = None
) -> int:
    """Create a topic that the broker at the other end leads, and return the error code.

    In a cluster it has replicas on all brokers: a test that speaks to one of them wants that one to lead.
    """
    wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
    wanted.configs = [CreatableTopicConfig(name=name, value=value) for name, value in (configs or {}).items()]
    brokers = connection.call(MetadataRequest(topics=[]), METADATA_VERSION, MetadataResponse).brokers
    if len(brokers) > 1:
        port = connection.socket.getpeername()[1]
        ids = [broker.node_id for broker in sorted(brokers, key=lambda broker: broker.port != port)]
        wanted.num_partitions = wanted.replication_factor = -1
        wanted.assignments = [
            CreatableReplicaAssignment(partition_index=number, broker_ids=ids) for number in range(partitions)
        ]
    request = CreateTopicsRequest(topics=[wanted], timeout_ms=10_000)
    return connection.call(request, CREATE_TOPICS_VERSION, CreateTopicsResponse).topics[0].error_code
