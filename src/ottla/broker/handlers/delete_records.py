"""DeleteRecords, key 21, versions 0 to 2.

Moves a partition's first offset forward (-1: to the high watermark); segments wholly before it go. Answered when every
living replica has done so, or the request's time is up.
"""

import asyncio

from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call, Parked
from ottla.broker.replication.partition import Partition
from ottla.broker.replication.waiters import CommitWait
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import INTERNAL_TOPICS
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

TO_HIGH_WATERMARK = -1


def handle(broker: Broker, call: Call, request: DeleteRecordsRequest) -> DeleteRecordsResponse | Parked:
    response = DeleteRecordsResponse()
    waiting = _Waiting(response)
    refused = access.denied(broker, call, Operation.DELETE, Resource.TOPIC, (topic.name for topic in request.topics))
    for topic in request.topics:
        answers = []
        for asked in topic.partitions:
            answer = DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=-1)
            answers.append(answer)
            try:
                if topic.name in refused:
                    raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                if topic.name in INTERNAL_TOPICS:
                    raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
                partition = broker.partitions.get((topic.name, asked.partition_index))
                waiting.add(partition, _delete(partition, asked.offset), answer)
            except ApiError as error:
                answer.error_code = error.code
        response.topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=answers))
    return waiting.outcome(request.timeout_ms)


def _delete(partition: Partition, offset: int) -> int:
    log = partition.log
    if "delete" not in log.config.cleanup_policy:
        raise ApiError(ErrorCode.POLICY_VIOLATION, "records of a compacted topic are deleted by tombstones")
    wanted = partition.high_watermark if offset == TO_HIGH_WATERMARK else offset
    partition.delete_records_before(wanted)
    return wanted


class _Waiting:
    """A response that is complete when the last of the other replicas has dropped the records too."""

    def __init__(self, response: DeleteRecordsResponse) -> None:
        self._response = response
        self._parked: Parked | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._waits: list[tuple[CommitWait, DeleteRecordsPartitionResult]] = []
        self._left = 0

    def add(self, partition: Partition, offset: int, answer: DeleteRecordsPartitionResult) -> None:
        def done(error: ApiError | None) -> None:
            self._left -= 1
            if error is not None:
                answer.error_code = error.code
            else:
                answer.low_watermark = partition.low_watermark
            if not self._left:
                self._finish()

        wait = partition.on_deleted(offset, done)
        if wait is None:
            answer.low_watermark = partition.low_watermark
            return
        self._waits.append((wait, answer))
        self._left += 1

    def outcome(self, timeout_ms: int) -> DeleteRecordsResponse | Parked:
        if not self._left:
            return self._response
        self._parked = Parked(holds_connection=True)
        self._parked.abandon = self._abandon
        self._timer = asyncio.get_running_loop().call_later(max(timeout_ms, 0) / 1000.0, self._expire)
        return self._parked

    def _finish(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._parked is not None:
            self._parked.resolve(self._response)

    def _expire(self) -> None:
        for wait, answer in self._waits:
            if wait.done is not None:
                wait.cancel()
                answer.error_code = ErrorCode.REQUEST_TIMED_OUT
        self._finish()

    def _abandon(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for wait, _ in self._waits:
            wait.cancel()
