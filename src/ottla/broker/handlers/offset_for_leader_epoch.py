"""OffsetForLeaderEpoch, key 23, versions 2 to 4.

Tells where a leader epoch ended, so that a client or follower can find out whether its history was truncated.
"""

from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)


def handle(broker: Broker, call: Call, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    response = OffsetForLeaderEpochResponse()
    hidden: frozenset[str] = frozenset()
    if not access.allowed(broker, call, Operation.CLUSTER_ACTION, Resource.CLUSTER, probe=True):
        names = (topic.topic for topic in request.topics)
        hidden = access.denied(broker, call, Operation.DESCRIBE, Resource.TOPIC, names)
    for topic in request.topics:
        answers = []
        for asked in topic.partitions:
            answer = EpochEndOffset(partition=asked.partition)
            answers.append(answer)
            try:
                if topic.topic in hidden:
                    raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                partition = broker.partitions.get((topic.topic, asked.partition))
                partition.check_epoch(asked.current_leader_epoch)
                answer.leader_epoch, answer.end_offset = partition.log.epoch_end_offset(asked.leader_epoch)
            except ApiError as error:
                answer.error_code = error.code
        response.topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=answers))
    return response
