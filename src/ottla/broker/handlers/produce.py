"""Produce, key 0, versions 3 to 13 (advertised as 0 to 13, as Kafka does, because librdkafka insists on it).

Appends each partition's batch as it came: header and CRC are read, records are not. acks=0 is not answered,
acks=1 when the leader has it, acks=all when every in-sync replica has it or the request's time is up; a topic with
`flush.messages` answers after the flush.
A batch is taken whole or not at all; from version 8 on the answer names the records that were at fault.
Transactional batches are appended once their partition is known to be part of the transaction; from version 12 on it
becomes part of it by being written to.
"""

import asyncio
from collections.abc import Awaitable

from ottla.broker.handlers.common import access
from ottla.broker.handlers.common.leader_hints import hint_for_error
from ottla.broker.handlers.context import CLOSE_CONNECTION, NO_RESPONSE, Broker, Call, Parked, Response
from ottla.broker.handlers.producing.packing import PartitionOutcome, TopicOutcome, failed, pack
from ottla.broker.handlers.producing.verification import Target, Targets, verify
from ottla.broker.handlers.producing.waiting import Acknowledgement, Unsettled, awaited
from ottla.broker.replication.partition import ACKS_ALL, Partition
from ottla.broker.storage.validation import read_only
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import INTERNAL_TOPICS
from ottla.model.rights import Operation, Resource
from ottla.protocol.compression import Buffer
from ottla.protocol.messages.produce import ProduceRequest, TopicProduceData
from ottla.protocol.records import ATTRIBUTES_POSITION, TRANSACTIONAL, read_header

FIRST_VERSION_WITH_TOPIC_IDS = 13
FIRST_VERSION_WITH_LEADER_HINTS = 10
ACKS = (-1, 0, 1)
FLAGS_POSITION = ATTRIBUTES_POSITION + 1  # the lower byte of a batch's attributes


def handle(broker: Broker, call: Call, request: ProduceRequest) -> "Response | Parked | Awaitable[Response]":
    if request.acks not in ACKS:
        refusal = ApiError(ErrorCode.INVALID_REQUIRED_ACKS)
        return _respond(broker, call, request.acks, [_refuse(topic, refusal) for topic in request.topic_data])
    if broker.authorizer is not None and _is_transactional(request) and not _may_transact(broker, call, request):
        refusal = ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return _respond(broker, call, request.acks, [_refuse(topic, refusal) for topic in request.topic_data])
    targets = [_targets(broker, call, topic) for topic in request.topic_data]
    transactional = False
    for parts in targets:
        for target in parts:
            partition = target.partition
            if not isinstance(partition, Partition):
                continue
            records = target.data.records or b""
            rules = partition.log.rules
            if rules.may_take_long and (
                rules.read_only or rules.schema_checks or partition.log.needs_recompression(records)
            ):
                return _prepare_and_append(broker, call, request, targets)
            if len(records) > FLAGS_POSITION and records[FLAGS_POSITION] & TRANSACTIONAL:
                transactional = True
    if transactional:
        return _append_transactional(broker, call, request, targets)
    return _append_all(broker, call, request, targets)


def _is_transactional(request: ProduceRequest) -> bool:
    return any(
        len(records) > FLAGS_POSITION and records[FLAGS_POSITION] & TRANSACTIONAL
        for topic in request.topic_data
        for data in topic.partition_data
        if (records := data.records)
    )


def _may_transact(broker: Broker, call: Call, request: ProduceRequest) -> bool:
    name = request.transactional_id
    return name is not None and access.allowed(broker, call, Operation.WRITE, Resource.TRANSACTIONAL_ID, name)


def _append_transactional(
    broker: Broker, call: Call, request: ProduceRequest, targets: Targets
) -> "Response | Parked | Awaitable[Response]":
    try:
        verified = verify(broker, call.version, request.transactional_id, targets)
    except ApiError as error:
        return _respond(broker, call, request.acks, [_refuse(topic, error) for topic in request.topic_data])
    if isinstance(verified, list):
        return _append_all(broker, call, request, verified)
    return _append_when_verified(broker, call, request, verified)


async def _append_when_verified(
    broker: Broker, call: Call, request: ProduceRequest, verified: Awaitable[Targets]
) -> Response:
    """The coordinator takes its time. This holds the connection, so that its batches stay in order."""
    return await awaited(_append_all(broker, call, request, await verified))


def _targets(broker: Broker, call: Call, topic: TopicProduceData) -> list[Target]:
    try:
        name = topic.name
        if call.version >= FIRST_VERSION_WITH_TOPIC_IDS:
            name = broker.partitions.name_of(topic.topic_id)
        authorizer = broker.authorizer
        if authorizer is not None and not authorizer.allows(
            call.session, call.api_key, Operation.WRITE, Resource.TOPIC, name, count=len(topic.partition_data)
        ):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if name in INTERNAL_TOPICS:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} is written by the broker only")
    except ApiError as error:
        return [Target(data, error) for data in topic.partition_data]
    found = []
    for data in topic.partition_data:
        try:
            found.append(Target(data, broker.partitions.get_for((name, data.index), data.records)))
        except ApiError as error:
            found.append(Target(data, error))
    return found


def _append_all(broker: Broker, call: Call, request: ProduceRequest, targets: Targets) -> Response | Parked:
    now_ms = broker.clock.now_ms()
    topics = []
    unsettled: list[Unsettled] = []
    acks = request.acks
    for topic, parts in zip(request.topic_data, targets, strict=True):
        outcomes: list[PartitionOutcome] = []
        for target in parts:
            data, partition = target.data, target.partition
            try:
                if not isinstance(partition, Partition):
                    raise partition
                records = data.records
                if not records:
                    raise ApiError(ErrorCode.INVALID_RECORD, "the request has no records for this partition")
                assert not isinstance(records, bytes), "received frames can be written to"
                result = partition.append(records, now_ms, acks=acks)
                if partition.flush_due or (acks == ACKS_ALL and partition.high_watermark <= result.last_offset):
                    unsettled.append(Unsettled(outcomes, len(outcomes), partition, result.last_offset + 1))
                outcomes.append(
                    PartitionOutcome(
                        data.index, 0, result.base_offset, result.log_append_time_ms, result.log_start_offset
                    )
                )
            except ApiError as error:
                _count_refused(broker, topic.name, data.records, partition, error)
                started = partition.log.start_offset if isinstance(partition, Partition) else -1
                outcomes.append(failed(data.index, error, started))
        topics.append(TopicOutcome(topic.name, topic.topic_id, outcomes))
    if unsettled:
        return Acknowledgement(
            unsettled, replicated=acks == ACKS_ALL, timeout_ms=request.timeout_ms,
            respond=lambda: _respond(broker, call, acks, topics),  # and not the request: its bytes can go
        ).parked  # fmt: skip
    return _respond(broker, call, acks, topics)


def _count_refused(
    broker: Broker, topic: str, records: Buffer | None, partition: Partition | ApiError, error: ApiError
) -> None:
    if isinstance(partition, Partition):
        partition.traffic.append_refused(error.code, len(records or b""))
        broker.partitions.context.traffic.invalid.note(error, records or b"")
    elif (known := broker.partitions.context.traffic.find(topic)) is not None:
        known.append_refused(error.code, 0)


def _refuse(topic: TopicProduceData, error: ApiError) -> TopicOutcome:
    return TopicOutcome(topic.name, topic.topic_id, [failed(data.index, error) for data in topic.partition_data])


def _respond(broker: Broker, call: Call, acks: int, topics: list[TopicOutcome]) -> Response:
    if acks:
        if call.version >= FIRST_VERSION_WITH_LEADER_HINTS:
            _add_leader_hints(broker, call, topics)
        return pack(call.version, topics)
    # Who does not want an answer is told of an error in the only way left, as Kafka does.
    failed = any(outcome.error_code for topic in topics for outcome in topic.partitions)
    return CLOSE_CONNECTION if failed else NO_RESPONSE


def _add_leader_hints(broker: Broker, call: Call, topics: list[TopicOutcome]) -> None:
    for topic in topics:
        for outcome in topic.partitions:
            if outcome.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                named = (topic.name, topic.topic_id)
                outcome.leader = hint_for_error(broker, call, outcome.error_code, named, outcome.partition)


async def _prepare_and_append(broker: Broker, call: Call, request: ProduceRequest, targets: Targets) -> Response:
    """The slow way, off the loop. It holds this connection, so that its batches stay in order."""
    for parts in targets:
        for number, target in enumerate(parts):
            data, partition = target.data, target.partition
            if isinstance(partition, Partition) and partition.log.rules.read_only:
                # Before the partition would become part of a transaction, whose marker would be a record of our own.
                parts[number] = Target(data, read_only(partition.log.rules))
            elif isinstance(partition, Partition) and data.records:
                refusal = await _schema_refusal(broker, partition, data.records)
                if refusal is not None:
                    parts[number] = Target(data, refusal)
                    continue
                try:
                    if partition.log.needs_recompression(data.records):
                        data.records = await asyncio.to_thread(partition.log.recompress, data.records)
                        partition.traffic.conversions += read_header(data.records).record_count
                except ApiError:
                    continue  # appending meets the same error and answers it
    outcome = _append_transactional(broker, call, request, targets)
    return await outcome if isinstance(outcome, Awaitable) else await awaited(outcome)


async def _schema_refusal(broker: Broker, partition: Partition, records: Buffer) -> ApiError | None:
    checks = partition.log.rules.schema_checks
    if not checks:
        return None
    try:
        await broker.schema_ids.check_in_thread(records, partition.tp.topic, checks)
    except ApiError as error:
        return error
    return None
