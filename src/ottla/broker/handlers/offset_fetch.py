"""OffsetFetch, key 9, versions 1 to 10.

Tells what groups have committed, for some partitions or (no topics given) for all; several groups from version 8.
With `require_stable`, a partition for which an open transaction holds an offset answers that it is unstable.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Iterator
from typing import TypeVar

from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.cluster.image import ClusterImage
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import NO_TOPIC_ID
from ottla.model.rights import Operation, Resource
from ottla.protocol.coordinator_records import OffsetCommitValue
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

GROUP_ERROR_FROM = 2
UNSTABLE_FROM = 7
BATCHED_FROM = 8
TOPIC_IDS_FROM = 10
NOTHING = -1
ASK_AGAIN = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})

T = TypeVar("T")


async def handle(broker: Broker, call: Call, request: OffsetFetchRequest) -> OffsetFetchResponse:
    if call.version >= BATCHED_FROM:
        stable = request.require_stable
        # All at once: a replicated coordinator writes before it tells, and those who ask together wait for one write.
        asking = [_group(broker, call, asked, require_stable=stable) for asked in request.groups]
        groups = [await asking[0]] if len(asking) == 1 else await asyncio.gather(*asking)
        return OffsetFetchResponse(groups=groups)
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    asked = OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)
    found = await _group(broker, call, asked, require_stable=request.require_stable)
    return OffsetFetchResponse(
        error_code=found.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in found.topics
        ],
    )


async def _group(
    broker: Broker, call: Call, asked: OffsetFetchRequestGroup, *, require_stable: bool
) -> OffsetFetchResponseGroup:
    by_id = call.version >= TOPIC_IDS_FROM
    image = broker.metadata.image
    try:
        if not access.allowed(broker, call, Operation.DESCRIBE, Resource.GROUP, asked.group_id):
            raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        error_code = broker.groups.check_fetch(asked.group_id, asked.member_id, asked.member_epoch)
        if error_code:
            raise ApiError(error_code)
        unstable = broker.groups.unstable(asked.group_id) if require_stable else frozenset()
        if asked.topics is None:
            topics = await _all(broker, call, image, asked.group_id, by_id=by_id)
        else:
            topics = await _some(broker, call, image, asked.group_id, asked.topics, by_id=by_id)
        if unstable:
            _hide_unstable(image, unstable, topics, by_id=by_id)
    except ApiError as error:
        # Consumers of Kafka before 3.9 give up on other errors; this one makes them look for the coordinator.
        code = ErrorCode.NOT_COORDINATOR if error.code is ErrorCode.COORDINATOR_NOT_AVAILABLE else error.code
        return OffsetFetchResponseGroup(
            group_id=asked.group_id, error_code=code, topics=_refused_each(asked.topics or [], code, call.version)
        )
    return OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics)


def _refused_each(
    asked: list[OffsetFetchRequestTopics], code: ErrorCode, version: int
) -> list[OffsetFetchResponseTopics]:
    """What partitions say when the group is refused: nothing, as with Kafka, but to clients that go by them.

    aiokafka (0.14, version 3) does not look at the group's error: without partitions it takes it that nothing was
    committed. librdkafka (2.16) looks for another coordinator, but asks there only for what is unstable (issue 5586).
    """
    if version < GROUP_ERROR_FROM or (version < UNSTABLE_FROM and code in ASK_AGAIN):
        return _everywhere(asked, code)
    return _everywhere(asked, ErrorCode.UNSTABLE_OFFSET_COMMIT) if code is ErrorCode.NOT_COORDINATOR else []


async def _all(
    broker: Broker, call: Call, image: ClusterImage, group_id: str, *, by_id: bool
) -> list[OffsetFetchResponseTopics]:
    offsets = await _awaited(broker.groups.fetch_all_offsets(group_id))
    hidden = access.denied(broker, call, Operation.DESCRIBE, Resource.TOPIC, offsets, probe=True)
    answers = []
    for name, partitions in offsets.items():
        topic = image.topics.get(name)
        if name in hidden:
            continue
        if by_id and topic is None:
            continue  # it has no id to be called by
        answers.append(
            OffsetFetchResponseTopics(
                name=name,
                topic_id=topic.topic_id if by_id and topic is not None else NO_TOPIC_ID,
                partitions=[_partition(index, value) for index, value in sorted(partitions.items())],
            )
        )
    return answers


async def _some(
    broker: Broker,
    call: Call,
    image: ClusterImage,
    group_id: str,
    asked: list[OffsetFetchRequestTopics],
    *,
    by_id: bool,
) -> list[OffsetFetchResponseTopics]:
    names = [image.names_by_id.get(topic.topic_id) if by_id else topic.name for topic in asked]
    known = (name for name in names if name is not None)
    hidden = access.denied(broker, call, Operation.DESCRIBE, Resource.TOPIC, known)
    wanted = [
        (name, index, topic.topic_id)
        for topic, name in zip(asked, names, strict=True)
        if name is not None and name not in hidden
        for index in topic.partition_indexes
    ]
    found: Iterator[OffsetCommitValue | None] = iter(await _awaited(broker.groups.fetch_offsets(group_id, wanted)))
    answers = []
    for topic, name in zip(asked, names, strict=True):
        if name is None:
            partitions = [_failed(index, ErrorCode.UNKNOWN_TOPIC_ID) for index in topic.partition_indexes]
        elif name in hidden:
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            partitions = [_failed(index, code) for index in topic.partition_indexes]
        else:
            partitions = [_partition(index, next(found)) for index in topic.partition_indexes]
        answers.append(OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=partitions))
    return answers


def _hide_unstable(
    image: ClusterImage, unstable: frozenset[tuple[str, int]], topics: list[OffsetFetchResponseTopics], *, by_id: bool
) -> None:
    for topic in topics:
        name = image.names_by_id.get(topic.topic_id) if by_id else topic.name
        if name is not None:
            topic.partitions = [
                _failed(partition.partition_index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
                if (name, partition.partition_index) in unstable and not partition.error_code
                else partition
                for partition in topic.partitions
            ]


async def _awaited(outcome: T | Awaitable[T]) -> T:
    return await outcome if inspect.isawaitable(outcome) else outcome


def _partition(index: int, value: OffsetCommitValue | None) -> OffsetFetchResponsePartitions:
    if value is None:
        return _failed(index, ErrorCode.NONE)
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=value.offset,
        committed_leader_epoch=value.leader_epoch,
        metadata=value.metadata,
    )


def _failed(index: int, code: ErrorCode) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index, committed_offset=NOTHING, committed_leader_epoch=NOTHING, metadata="", error_code=code
    )


def _everywhere(asked: list[OffsetFetchRequestTopics], code: ErrorCode) -> list[OffsetFetchResponseTopics]:
    return [
        OffsetFetchResponseTopics(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[_failed(index, code) for index in topic.partition_indexes],
        )
        for topic in asked
    ]
