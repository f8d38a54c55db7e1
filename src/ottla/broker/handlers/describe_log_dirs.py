"""DescribeLogDirs, key 35, versions 1 to 5.

The data directories with the sizes of the partitions in them and the room on their disks. Copies of partitions that
are on their way to a directory are shown as future ones, with how far they are behind. No directory is ever closed to
new partitions.
"""

import os

from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.broker.storage.log import Log
from ottla.broker.storage.log_dir import LogDir
from ottla.model.errors import ErrorCode
from ottla.model.names import TopicPartition
from ottla.model.rights import Operation
from ottla.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def handle(broker: Broker, call: Call, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    access.require_cluster(broker, call, Operation.DESCRIBE)
    wanted = None
    if request.topics is not None:
        wanted = {TopicPartition(topic.topic, number) for topic in request.topics for number in topic.partitions}
    return DescribeLogDirsResponse(results=[_described(broker, directory, wanted) for directory in broker.logs.dirs])


def _described(broker: Broker, directory: LogDir, wanted: set[TopicPartition] | None) -> DescribeLogDirsResult:
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
    for logs, is_copy in ((directory.logs, False), (directory.copies, True)):
        for tp, log in logs.items():
            if wanted is None or tp in wanted:
                lag = _copy_lag(broker, tp) if is_copy else _replica_lag(broker, log)
                topics.setdefault(tp.topic, DescribeLogDirsTopic(name=tp.topic)).partitions.append(
                    DescribeLogDirsPartition(tp.partition, log.size_bytes, offset_lag=lag, is_future_key=is_copy)
                )
    result.topics = list(topics.values())
    return result


def _copy_lag(broker: Broker, tp: TopicPartition) -> int:
    move = broker.logs.moves.get(tp)
    return move.lag if move is not None else -1


def _replica_lag(broker: Broker, log: Log) -> int:
    """A replica that is behind what is known to be committed; a leader never is."""
    return max(0, (broker.logs.high_watermark(log.tp) or 0) - log.end_offset)
