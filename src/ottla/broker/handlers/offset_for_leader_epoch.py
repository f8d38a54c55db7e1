"""OffsetForLeaderEpoch, key 23, versions 2 to 4.

Tells where a leader epoch ended, so that a client or follower can find out whether its history was truncated.
"""

from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError
from ottla.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)


def handle(broker: Broker, call: Call, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    response = OffsetForLeaderEpochResponse()
    for topic in request.topics:
        answers = []
        for asked in topic.partitions:
            answer = EpochEndOffset(partition=asked.partition)
            answers.append(answer)
            try:
                partition = broker.partitions.get((topic.topic, asked.partition))
                partition.check_epoch(asked.current_leader_epoch)
                answer.leader_epoch, answer.end_offset = partition.log.epoch_end_offset(asked.leader_epoch)
            except ApiError as error:
                answer.error_code = error.code
        response.topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=answers))
    return response
