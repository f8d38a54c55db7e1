"""ListOffsets, key 2, versions 1 to 11.

Offsets by time: latest (-1), earliest (-2), that of the largest timestamp (-3), earliest local (-4), latest tiered
(-5), earliest pending upload (-6), or the first record at or after a timestamp, exact to the record.
There is no tiered storage: earliest local is earliest, and latest tiered and pending upload have no answer (-1).
Only the leader answers. A new leader that does not know yet how much of its log is committed does not name offsets that
might turn out to be behind those named before. Who asks as a replica sees the whole log.
"""

from typing import NamedTuple

from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.broker.replication.partition import Partition
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Operation, Resource
from ottla.model.sentinels import NO_EPOCH
from ottla.model.wire_numbers import (
    EARLIEST_PENDING_UPLOAD,
    READ_COMMITTED,
    SINCE_VERSION,
)
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

NOTHING = -1
CONSUMER = -1
FIRST_VERSION_WITH_NOT_AVAILABLE = 5


class Found(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


def handle(broker: Broker, call: Call, request: ListOffsetsRequest) -> ListOffsetsResponse:
    response = ListOffsetsResponse()
    committed_only = request.isolation_level == READ_COMMITTED
    replica = request.replica_id != CONSUMER
    hidden = access.denied(broker, call, Operation.DESCRIBE, Resource.TOPIC, (topic.name for topic in request.topics))
    for topic in request.topics:
        answers = []
        for asked in topic.partitions:
            answer = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
            answers.append(answer)
            try:
                if topic.name in hidden:
                    raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                partition = broker.partitions.get((topic.name, asked.partition_index))
                partition.check_epoch(asked.current_leader_epoch)
                found = _find(partition, call.version, asked, committed_only=committed_only, replica=replica)
            except ApiError as error:
                answer.error_code = error.code
            else:
                answer.timestamp, answer.offset, answer.leader_epoch = found
        response.topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    return response


def _find(
    partition: Partition, version: int, asked: ListOffsetsPartition, *, committed_only: bool, replica: bool
) -> Found:
    log, timestamp = partition.log, asked.timestamp
    if timestamp < EARLIEST_PENDING_UPLOAD or version < SINCE_VERSION.get(timestamp, 0):
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp} is not understood in version {version}")
    end = partition.last_stable_offset if committed_only else partition.high_watermark
    if replica:
        end = log.end_offset
    unsure = partition.catching_up and not replica
    match timestamp:
        case -1:
            if unsure:
                raise _not_available(version)
            return Found(NOTHING, end, partition.leader_epoch)
        case -2 | -4:
            return Found(NOTHING, log.start_offset, log.leader_epochs.epoch_at(log.start_offset))
        case -5 | -6:
            return Found(NOTHING, NOTHING, NO_EPOCH)
        case -3:
            found = log.max_timestamp_offset()
        case _:
            found = log.offset_for_timestamp(timestamp)
    if found is not None and found[1] < end:
        return Found(*found)
    if unsure:
        raise _not_available(version)
    return Found(NOTHING, NOTHING, NO_EPOCH)


def _not_available(version: int) -> ApiError:
    known = version >= FIRST_VERSION_WITH_NOT_AVAILABLE
    return ApiError(ErrorCode.OFFSET_NOT_AVAILABLE if known else ErrorCode.LEADER_NOT_AVAILABLE)
