"""AlterReplicaLogDirs, key 34, versions 1 to 2.

Moves replicas of this broker to other directories of its log.dirs, in the background while they serve; DescribeLogDirs
shows how far the copies have come. A partition that is not here is answered as REPLICA_NOT_AVAILABLE, and is created in
the directory asked for should it come. Asking for the directory where a replica is ends its move elsewhere.
"""

from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError
from ottla.model.names import TopicPartition
from ottla.model.rights import Operation
from ottla.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def handle(broker: Broker, call: Call, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    access.require_cluster(broker, call, Operation.ALTER)
    # A partition named twice goes where it was named last.
    asked = {
        TopicPartition(topic.name, number): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for number in topic.partitions
    }
    results: dict[str, AlterReplicaLogDirTopicResult] = {}
    for tp, path in asked.items():
        result = AlterReplicaLogDirPartitionResult(partition_index=tp.partition)
        try:
            broker.moves.request(tp, path, assigned=_is_assigned(broker, tp))
        except ApiError as error:
            result.error_code = error.code
        results.setdefault(tp.topic, AlterReplicaLogDirTopicResult(topic_name=tp.topic)).partitions.append(result)
    return AlterReplicaLogDirsResponse(results=list(results.values()))


def refuse(call: Call, request: AlterReplicaLogDirsRequest, error: ApiError) -> AlterReplicaLogDirsResponse:
    results: dict[str, AlterReplicaLogDirTopicResult] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            results.setdefault(topic.name, AlterReplicaLogDirTopicResult(topic_name=topic.name)).partitions += [
                AlterReplicaLogDirPartitionResult(number, error.code) for number in topic.partitions
            ]
    return AlterReplicaLogDirsResponse(results=list(results.values()))


def _is_assigned(broker: Broker, tp: TopicPartition) -> bool:
    topic = broker.metadata.image.topics.get(tp.topic)
    if topic is None or not 0 <= tp.partition < len(topic.partitions):
        return False
    return broker.node_id in topic.partitions[tp.partition].replicas
