"""ListPartitionReassignments, key 46, version 0.

Partitions that are being moved, of all topics or of those named, with the brokers that are added and removed. What is
not being moved, or does not exist, is left out.
"""

from ottla.broker.controller.reassignments import is_moving
from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.cluster.image import TopicImage
from ottla.model.errors import ApiError
from ottla.model.rights import Operation
from ottla.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def handle(
    broker: Broker, call: Call, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    access.require_cluster(broker, call, Operation.DESCRIBE)
    topics = broker.metadata.image.topics
    if request.topics is None:
        moving = [
            _moving(topic, range(len(topic.partitions)))
            for topic in topics.values()
            if any(map(is_moving, topic.partitions))  # few are, and there may be ten thousand topics
        ]
    else:
        moving = [
            _moving(topics[asked.name], asked.partition_indexes) for asked in request.topics if asked.name in topics
        ]
    return ListPartitionReassignmentsResponse(
        error_message=None, topics=[topic for topic in moving if topic.partitions]
    )


def refuse(
    call: Call, request: ListPartitionReassignmentsRequest, error: ApiError
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(
        error_code=error.code,
        error_message=error.message,
        topics=[
            OngoingTopicReassignment(
                name=topic.name,
                partitions=[OngoingPartitionReassignment(partition_index=each) for each in topic.partition_indexes],
            )
            for topic in request.topics or ()
        ],
    )


def _moving(topic: TopicImage, numbers: range | list[int]) -> OngoingTopicReassignment:
    known = range(len(topic.partitions))
    partitions = [(number, topic.partitions[number]) for number in numbers if number in known]
    return OngoingTopicReassignment(
        name=topic.name,
        partitions=[
            OngoingPartitionReassignment(
                partition_index=number,
                replicas=list(state.replicas),
                adding_replicas=list(state.adding),
                removing_replicas=list(state.removing),
            )
            for number, state in partitions
            if is_moving(state)
        ],
    )
