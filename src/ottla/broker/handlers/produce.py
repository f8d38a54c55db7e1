"""Produce, key 0, versions 3 to 13 (advertised as 0 to 13, as Kafka does, because librdkafka insists on it).

Appends each partition's batch as it came: header and CRC are read, records are not. acks=0 is not answered,
acks=1 and acks=all when the partition has it; a topic with `flush.messages` answers after the flush.
Missing: transactional batches are refused, transactions are not served yet.
"""

import asyncio
from collections.abc import Awaitable

from ottla.broker.handlers.context import NO_RESPONSE, Broker, Call, Parked, Response
from ottla.broker.replication.partition import Partition
from ottla.broker.storage.log import AppendResult
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import INTERNAL_TOPICS
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

FIRST_VERSION_WITH_TOPIC_IDS = 13


def handle(broker: Broker, call: Call, request: ProduceRequest) -> "Response | Parked | Awaitable[Response]":
    if request.acks not in (-1, 0, 1):
        return _refuse_all(request, ErrorCode.INVALID_REQUIRED_ACKS)
    if request.transactional_id is not None:
        return _refuse_all(request, ErrorCode.INVALID_REQUEST, "transactions are not served yet")
    if any(_slow(broker, call, topic) for topic in request.topic_data):
        return _handle_slowly(broker, call, request)
    return _append_all(broker, call, request)


def _append_all(broker: Broker, call: Call, request: ProduceRequest) -> Response | Parked:
    now_ms = broker.clock.now_ms()
    response = ProduceResponse()
    to_flush: list[tuple[PartitionProduceResponse, Partition, int]] = []
    for topic in request.topic_data:
        answers = []
        for data in topic.partition_data:
            answer = PartitionProduceResponse(index=data.index)
            answers.append(answer)
            try:
                partition = _partition(broker, call, topic, data.index)
                result = _append(partition, data, request.acks, now_ms)
            except ApiError as error:
                _describe_error(answer, error)
            else:
                _describe(answer, result)
                if partition.flush_due:
                    to_flush.append((answer, partition, result.last_offset + 1))
        response.responses.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)
        )
    if to_flush:
        return _answer_when_flushed(response, to_flush, answered=request.acks != 0)
    return response if request.acks else NO_RESPONSE


def _partition(broker: Broker, call: Call, topic: TopicProduceData, index: int) -> Partition:
    name = topic.name
    if call.version >= FIRST_VERSION_WITH_TOPIC_IDS:
        name = broker.partitions.name_of(topic.topic_id)
    if name in INTERNAL_TOPICS:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} is written by the broker only")
    return broker.partitions.get((name, index))


def _append(partition: Partition, data: PartitionProduceData, acks: int, now_ms: int) -> AppendResult:
    records = data.records
    if records is None or not len(records):
        raise ApiError(ErrorCode.INVALID_RECORD, "the request has no records for this partition")
    assert not isinstance(records, bytes), "received frames can be written to"
    return partition.append(records, now_ms, acks=acks)


def _describe(answer: PartitionProduceResponse, result: AppendResult) -> None:
    answer.base_offset = result.base_offset
    answer.log_append_time_ms = result.log_append_time_ms
    answer.log_start_offset = result.log_start_offset


def _describe_error(answer: PartitionProduceResponse, error: ApiError) -> None:
    answer.error_code = error.code
    answer.error_message = error.message
    answer.base_offset = -1


def _answer_when_flushed(
    response: ProduceResponse, to_flush: list[tuple[PartitionProduceResponse, Partition, int]], *, answered: bool
) -> Response | Parked:
    parked = Parked(holds_connection=False)

    async def flush_all() -> None:
        for answer, partition, offset in to_flush:
            try:
                await partition.flush_to(offset)
            except ApiError as error:
                _describe_error(answer, error)
        parked.resolve(response if answered else NO_RESPONSE)

    _keep(asyncio.ensure_future(flush_all()))
    return parked


_running: set["asyncio.Future[None]"] = set()


def _keep(future: "asyncio.Future[None]") -> None:
    """The loop holds tasks only weakly: without this one could vanish half-way."""
    _running.add(future)
    future.add_done_callback(_running.discard)


# The slow way: a topic that asks for another codec than the producer used.


def _slow(broker: Broker, call: Call, topic: TopicProduceData) -> bool:
    for data in topic.partition_data:
        try:
            partition = _partition(broker, call, topic, data.index)
        except ApiError:
            continue  # answered by the ordinary way
        if data.records is not None and partition.log.needs_recompression(data.records):
            return True
    return False


async def _handle_slowly(broker: Broker, call: Call, request: ProduceRequest) -> Response:
    """Recompress off the loop, holding this connection so that its batches stay in order."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            try:
                partition = _partition(broker, call, topic, data.index)
                if data.records is not None and partition.log.needs_recompression(data.records):
                    data.records = await asyncio.to_thread(partition.log.recompress, data.records)
            except ApiError:
                continue  # appending will meet the same error and answer it
    outcome = _append_all(broker, call, request)
    if not isinstance(outcome, Parked):
        return outcome
    done: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
    outcome.when_resolved(done.set_result)
    return await done


def _refuse_all(request: ProduceRequest, code: ErrorCode, message: str | None = None) -> Response:
    error = ApiError(code, message)
    response = ProduceResponse()
    for topic in request.topic_data:
        answers = [PartitionProduceResponse(index=data.index) for data in topic.partition_data]
        for answer in answers:
            _describe_error(answer, error)
        response.responses.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)
        )
    return response if request.acks else NO_RESPONSE
