"""DescribeLogDirs, key 35, versions 1 to 5.

The data directories with the sizes of the partitions in them and the room on their disks. Replicas do not move
between directories, so there are no future ones, and no directory is ever closed to new partitions.
"""

import os
from collections.abc import Callable

from ottla.broker.handlers.context import Broker, Call
from ottla.broker.replication.partition import Partition
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def handle(broker: Broker, call: Call, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    wanted = _filter(request)
    by_directory: dict[str, list[Partition]] = {os.path.abspath(path): [] for path in broker.settings.data_dirs}
    for partition in broker.partitions:
        if wanted(partition):
            directory = os.path.dirname(os.path.abspath(partition.log.directory))
            by_directory.setdefault(directory, []).append(partition)
    return DescribeLogDirsResponse(results=[_described(path, held) for path, held in by_directory.items()])


def _filter(request: DescribeLogDirsRequest) -> Callable[[Partition], bool]:
    if request.topics is None:
        return lambda partition: True
    wanted = {(topic.topic, number) for topic in request.topics for number in topic.partitions}
    return lambda partition: partition.log.tp in wanted


def _described(path: str, partitions: list[Partition]) -> DescribeLogDirsResult:
    result = DescribeLogDirsResult(log_dir=path)
    try:
        room = os.statvfs(path)
    except OSError:
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        return result
    result.total_bytes = room.f_blocks * room.f_frsize
    result.usable_bytes = room.f_bavail * room.f_frsize
    topics: dict[str, DescribeLogDirsTopic] = {}
    for partition in partitions:
        name, number = partition.log.tp
        topic = topics.setdefault(name, DescribeLogDirsTopic(name=name))
        # The leader's own replica is never behind.
        topic.partitions.append(
            DescribeLogDirsPartition(partition_index=number, partition_size=partition.log.size_bytes)
        )
    result.topics = list(topics.values())
    return result
