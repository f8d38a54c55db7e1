"""DescribeTopicPartitions, key 75, version 0.

Partitions of topics in the order of their names, a limited number at a time; the cursor in the answer tells where
the next request goes on. Eligible leader replicas are in-sync ones that are dead or late, and kept
for what they have (decision 0013).
"""

from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.cluster.image import NO_LEADER, ClusterImage, TopicImage, dead_or_lagging
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import INTERNAL_TOPICS, check_topic_name
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    ResponseCursor,
)


def handle(broker: Broker, call: Call, request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    image, cursor = broker.metadata.image, request.cursor
    names = sorted({topic.name for topic in request.topics} if request.topics else image.topics)
    if cursor is not None:
        if cursor.partition_index < 0 or (request.topics and cursor.topic_name not in names):
            return _refused(request)
        names = [name for name in names if name >= cursor.topic_name]
    hidden = access.denied(broker, call, Operation.DESCRIBE, Resource.TOPIC, names, probe=not request.topics)
    names = [name for name in names if name not in hidden]
    remaining = max(1, min(broker.settings.max_request_partition_size_limit, request.response_partition_limit))
    response = DescribeTopicPartitionsResponse()
    for name in names:
        if remaining == 0:
            response.next_cursor = ResponseCursor(topic_name=name)
            break
        topic = image.topics.get(name)
        if topic is None:
            if request.topics:  # one that a cursor of a full listing points to may have gone meanwhile
                response.topics.append(_unknown(name))
            continue
        first = cursor.partition_index if cursor is not None and name == cursor.topic_name else 0
        described = _topic(topic, image, first, remaining)
        described.topic_authorized_operations = access.operations(broker, call, Resource.TOPIC, name)
        response.topics.append(described)
        remaining -= len(described.partitions)
        if first + len(described.partitions) < len(topic.partitions):
            response.next_cursor = ResponseCursor(topic_name=name, partition_index=first + len(described.partitions))
            break
    if request.topics:
        response.topics += [_hidden(name) for name in sorted(hidden)]
    return response


def _topic(topic: TopicImage, image: ClusterImage, first: int, limit: int) -> DescribeTopicPartitionsResponseTopic:
    described = DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
    )
    for number, state in enumerate(topic.partitions[first : first + limit], start=first):
        idle = dead_or_lagging(state, image.brokers)
        described.partitions.append(
            DescribeTopicPartitionsResponsePartition(
                partition_index=number,
                leader_id=state.leader if state.leader in image.brokers else NO_LEADER,
                leader_epoch=state.leader_epoch,
                replica_nodes=list(state.replicas),
                isr_nodes=[replica for replica in state.isr if replica not in idle],
                eligible_leader_replicas=idle,  # they have everything that is committed
                last_known_elr=[],
                offline_replicas=[replica for replica in state.replicas if replica not in image.brokers],
            )
        )
    return described


def _hidden(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        check_topic_name(name)
    except ApiError as error:
        code = error.code
    return DescribeTopicPartitionsResponseTopic(error_code=code, name=name, is_internal=name in INTERNAL_TOPICS)


def _refused(request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    """A cursor that makes no sense; the response has no error of its own, so every topic carries it."""
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=topic.name)
            for topic in request.topics
        ]
    )
