"""Offsets of partitions: where they begin and end, what lies at a time, and dropping what lies before an offset."""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.client.cluster import Cluster, error_code
from ottla.model.errors import ErrorCode
from ottla.model.names import TopicPartition, by_topic
from ottla.model.wire_numbers import EARLIEST as EARLIEST  # noqa: PLC0414 (known from here)
from ottla.model.wire_numbers import EARLIEST_LOCAL as EARLIEST_LOCAL  # noqa: PLC0414 (known from here)
from ottla.model.wire_numbers import EARLIEST_PENDING_UPLOAD as EARLIEST_PENDING_UPLOAD  # noqa: PLC0414 (known from here)
from ottla.model.wire_numbers import LATEST as LATEST  # noqa: PLC0414 (known from here)
from ottla.model.wire_numbers import LATEST_TIERED as LATEST_TIERED  # noqa: PLC0414 (known from here)
from ottla.model.wire_numbers import MAX_TIMESTAMP as MAX_TIMESTAMP  # noqa: PLC0414 (known from here)
from ottla.model.wire_numbers import READ_COMMITTED, READ_UNCOMMITTED, SINCE_VERSION
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

BROKER_TIMEOUT_MS = 30_000

_FROM_A_CLIENT = -1


class FoundOffset(NamedTuple):
    """`offset` is None where the partition has no record at or after the time asked for."""

    offset: int | None
    timestamp: int
    leader_epoch: int


class EpochEnd(NamedTuple):
    """The largest leader epoch that is not above the one asked for, and where it ended; -1 if there is none."""

    epoch: int
    offset: int


class LowWatermark(NamedTuple):
    offset: int


async def list_offsets(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], *, committed: bool = False
) -> dict[TopicPartition, FoundOffset | ErrorCode]:
    """For each partition the offset at a timestamp, or at LATEST, EARLIEST and so on; an error code where it failed.

    With `committed` LATEST is the last stable offset: what a reader of committed records can read up to.
    """

    async def ask(node: int, partitions: list[TopicPartition]) -> dict[TopicPartition, FoundOffset | ErrorCode]:
        return await list_offsets_of(
            cluster, node, {partition: wanted[partition] for partition in partitions}, committed=committed
        )

    return await cluster.each_leader(wanted, ask)


async def list_offsets_of(
    cluster: Cluster, node: int, wanted: Mapping[TopicPartition, int], *, committed: bool = False
) -> dict[TopicPartition, FoundOffset | ErrorCode]:
    """The same of one broker, asked once: for those who know that it leads these partitions, and ask again anyway."""
    min_version = max([2 if committed else 1, *(SINCE_VERSION.get(time, 1) for time in wanted.values())])
    request = ListOffsetsRequest(
        replica_id=_FROM_A_CLIENT,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(partition_index=number, timestamp=wanted[TopicPartition(topic, number)])
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(wanted).items()
        ],
        timeout_ms=BROKER_TIMEOUT_MS,
        isolation_level=READ_COMMITTED if committed else READ_UNCOMMITTED,
    )
    response = await cluster.call(request, ListOffsetsResponse, node=node, min_version=min_version)
    return {
        TopicPartition(topic.name, found.partition_index): error_code(found.error_code)
        if found.error_code
        else FoundOffset(found.offset if found.offset >= 0 else None, found.timestamp, found.leader_epoch)
        for topic in response.topics
        for found in topic.partitions
    }


async def epoch_ends(
    cluster: Cluster, epochs: Mapping[TopicPartition, int]
) -> dict[TopicPartition, EpochEnd | ErrorCode]:
    """Where leader epochs ended, by which a log that was truncated is known; an error code where it failed."""

    async def ask(node: int, partitions: list[TopicPartition]) -> dict[TopicPartition, EpochEnd | ErrorCode]:
        request = OffsetForLeaderEpochRequest(
            replica_id=_FROM_A_CLIENT,
            topics=[
                OffsetForLeaderTopic(
                    topic=topic,
                    partitions=[
                        OffsetForLeaderPartition(partition=number, leader_epoch=epochs[TopicPartition(topic, number)])
                        for number in numbers
                    ],
                )
                for topic, numbers in by_topic(partitions).items()
            ],
        )
        response = await cluster.call(request, OffsetForLeaderEpochResponse, node=node)
        return {
            TopicPartition(topic.topic, found.partition): error_code(found.error_code)
            if found.error_code
            else EpochEnd(found.leader_epoch, found.end_offset)
            for topic in response.topics
            for found in topic.partitions
        }

    return await cluster.each_leader(epochs, ask)


async def delete_records(
    cluster: Cluster, before: Mapping[TopicPartition, int]
) -> dict[TopicPartition, LowWatermark | ErrorCode]:
    """Drop the records below an offset (-1: all); the new first offset of each partition, or why it was refused."""

    async def ask(node: int, partitions: list[TopicPartition]) -> dict[TopicPartition, LowWatermark | ErrorCode]:
        request = DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        DeleteRecordsPartition(partition_index=number, offset=before[TopicPartition(topic, number)])
                        for number in numbers
                    ],
                )
                for topic, numbers in by_topic(partitions).items()
            ],
            timeout_ms=BROKER_TIMEOUT_MS,
        )
        response = await cluster.call(request, DeleteRecordsResponse, node=node)
        return {
            TopicPartition(topic.name, found.partition_index): error_code(found.error_code)
            if found.error_code
            else LowWatermark(found.low_watermark)
            for topic in response.topics
            for found in topic.partitions
        }

    return await cluster.each_leader(before, ask)
