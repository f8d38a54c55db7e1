"""AppendMirrored, key 20000, version 0: Ottla's own, and told to its own client only.

A mirror's way in: batches of another cluster are appended as they are, with their offsets, by the leader, and
acknowledged when every in-sync replica has them. The topic's `mirror.source` must be what the request says; batches
that are there are skipped, known by their offsets; what does not follow on is refused with OFFSET_OUT_OF_RANGE and the
end of the log. The producer ids in them are kept from ever being given out here. Without records it tells where
the log begins and ends.
"""

from collections.abc import Awaitable
from typing import NamedTuple

from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call, Parked, Response
from ottla.broker.handlers.producing.packing import PartitionOutcome, failed
from ottla.broker.handlers.producing.waiting import Acknowledgement, Unsettled, awaited
from ottla.broker.replication.mirrored import Piece, append_mirrored
from ottla.broker.replication.partition import Partition
from ottla.broker.storage.mirrored import check_mirrored
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import INTERNAL_TOPICS
from ottla.model.rights import Operation
from ottla.protocol.messages.append_mirrored import (
    AppendMirroredRequest,
    AppendMirroredResponse,
    MirroredPartition,
    MirroredPartitionResult,
    MirroredTopic,
    MirroredTopicResult,
)
from ottla.protocol.records import NO_PRODUCER_ID


class _Target(NamedTuple):
    """One partition's part of the request, and why it cannot be appended if it cannot."""

    number: int
    partition: Partition | None
    piece: Piece | ApiError


_Targets = list[tuple[MirroredTopic, list[_Target]]]
_Answer = tuple[str, list[Partition | None], list[PartitionOutcome]]


def handle(broker: Broker, call: Call, request: AppendMirroredRequest) -> Response | Parked | Awaitable[Response]:
    access.require_cluster(broker, call, Operation.CLUSTER_ACTION)
    highest = NO_PRODUCER_ID
    targets: _Targets = []
    for topic in request.topics:
        found = []
        for data in topic.partitions:
            target, id_here = _target(broker, topic, data)
            found.append(target)
            highest = max(highest, id_here)
        targets.append((topic, found))
    if highest > broker.controller.mirrored_ids:
        return _append_behind_ids(broker, request, targets, highest)
    return _append(broker, request.timeout_ms, targets)


def refuse(call: Call, request: AppendMirroredRequest, error: ApiError) -> AppendMirroredResponse:
    return AppendMirroredResponse(
        topics=[
            MirroredTopicResult(
                topic.name,
                [MirroredPartitionResult(data.index, error.code, error.message) for data in topic.partitions],
            )
            for topic in request.topics
        ]
    )


async def _append_behind_ids(
    broker: Broker, request: AppendMirroredRequest, targets: _Targets, highest: int
) -> Response:
    """Not before it is certain that nobody here will be given an id that is in the records."""
    await broker.controller.keep_ids_free(highest)
    return await awaited(_append(broker, request.timeout_ms, targets))


def _target(broker: Broker, topic: MirroredTopic, data: MirroredPartition) -> tuple[_Target, int]:
    partition = None
    try:
        if topic.name in INTERNAL_TOPICS:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic.name} is written by the broker only")
        if data.fetch_offset < 0:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{data.fetch_offset} is no offset to go on from")
        partition = broker.partitions.get((topic.name, data.index))
        records = data.records if data.records is not None else bytearray()
        assert not isinstance(records, bytes), "received frames can be written to"
        batches, highest = check_mirrored(records)
        piece = Piece(topic.source, data.fetch_offset, data.log_start_offset, records, batches)
    except ApiError as error:
        return _Target(data.index, partition, error), NO_PRODUCER_ID
    return _Target(data.index, partition, piece), highest


def _append(broker: Broker, timeout_ms: int, targets: _Targets) -> AppendMirroredResponse | Parked:
    now_ms = broker.clock.now_ms()
    unsettled: list[Unsettled] = []
    answers: list[_Answer] = []
    for topic, parts in targets:
        outcomes: list[PartitionOutcome] = []
        for number, partition, piece in parts:
            try:
                if isinstance(piece, ApiError) or partition is None:
                    raise piece if isinstance(piece, ApiError) else ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
                append_mirrored(partition, piece, now_ms)
                end = partition.log.end_offset
                if partition.flush_due or partition.high_watermark < end:
                    unsettled.append(Unsettled(outcomes, len(outcomes), partition, end))
                outcomes.append(PartitionOutcome(number, 0, end, -1, partition.log.start_offset))
            except ApiError as error:
                outcomes.append(failed(number, error))
        # Not the pieces: while the answer waits for replicas their bytes can go.
        answers.append((topic.name, [target.partition for target in parts], outcomes))
    if unsettled:
        return Acknowledgement(
            unsettled, replicated=True, timeout_ms=timeout_ms, respond=lambda: _response(answers)
        ).parked
    return _response(answers)


def _response(answers: list[_Answer]) -> AppendMirroredResponse:
    return AppendMirroredResponse(
        topics=[
            MirroredTopicResult(
                name,
                [_result(partition, outcome) for partition, outcome in zip(partitions, outcomes, strict=True)],
            )
            for name, partitions, outcomes in answers
        ]
    )


def _result(partition: Partition | None, outcome: PartitionOutcome) -> MirroredPartitionResult:
    """Where the log begins and ends is told with an error, too: who does not follow on learns from it where to."""
    start = end = -1
    if partition is not None:
        start, end = partition.log.start_offset, partition.log.end_offset
    return MirroredPartitionResult(outcome.partition, outcome.error_code, outcome.error_message, start, end)
