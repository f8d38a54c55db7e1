"""DeleteRecords, key 21, versions 0 to 2.

Moves a partition's first offset forward (-1: to the high watermark); segments wholly before it go.
"""

from ottla.broker.handlers.context import Broker, Call
from ottla.broker.replication.partition import Partition
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import INTERNAL_TOPICS
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

TO_HIGH_WATERMARK = -1


def handle(broker: Broker, call: Call, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    response = DeleteRecordsResponse()
    for topic in request.topics:
        answers = []
        for asked in topic.partitions:
            answer = DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=-1)
            answers.append(answer)
            try:
                if topic.name in INTERNAL_TOPICS:
                    raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
                answer.low_watermark = _delete(broker.partitions.get((topic.name, asked.partition_index)), asked.offset)
            except ApiError as error:
                answer.error_code = error.code
        response.topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=answers))
    return response


def _delete(partition: Partition, offset: int) -> int:
    log = partition.log
    if "delete" not in log.config.cleanup_policy:
        raise ApiError(ErrorCode.POLICY_VIOLATION, "records of a compacted topic are deleted by tombstones")
    wanted = partition.high_watermark if offset == TO_HIGH_WATERMARK else offset
    if wanted < 0 or wanted > partition.high_watermark:
        raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if wanted > log.start_offset:
        log.delete_records_before(wanted)
    return log.start_offset
