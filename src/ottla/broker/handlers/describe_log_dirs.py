"""DescribeLogDirs, key 35, versions 1 to 5.

The data directories with the sizes of the partitions in them and the room on their disks. Replicas do not move
between directories, so there are no future ones, and no directory is ever closed to new partitions.
"""

import os

from ottla.broker.handlers.context import Broker, Call
from ottla.broker.storage.log_dir import LogDir
from ottla.model.errors import ErrorCode
from ottla.model.names import TopicPartition
from ottla.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def handle(broker: Broker, call: Call, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    wanted = None
    if request.topics is not None:
        wanted = {TopicPartition(topic.topic, number) for topic in request.topics for number in topic.partitions}
    return DescribeLogDirsResponse(results=[_described(directory, wanted) for directory in broker.logs.dirs])


def _described(directory: LogDir, wanted: set[TopicPartition] | None) -> DescribeLogDirsResult:
    result = DescribeLogDirsResult(log_dir=directory.path)
    try:
        if directory.failure is not None:
            raise OSError(directory.failure)
        room = os.statvfs(directory.path)
    except OSError:
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        return result
    result.total_bytes = room.f_blocks * room.f_frsize
    result.usable_bytes = room.f_bavail * room.f_frsize
    topics: dict[str, DescribeLogDirsTopic] = {}
    for tp, log in directory.logs.items():
        if wanted is None or tp in wanted:
            topic = topics.setdefault(tp.topic, DescribeLogDirsTopic(name=tp.topic))
            # The leader's own replica is never behind, so the lag stays 0.
            topic.partitions.append(
                DescribeLogDirsPartition(partition_index=tp.partition, partition_size=log.size_bytes)
            )
    result.topics = list(topics.values())
    return result
