"""Partitions are given other replicas, as kafka-reassign-partitions does it."""

from collections.abc import Mapping, Sequence

from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.testing.running import RunningBroker
from ottla.testing.wire import WireConnection


def reassign(broker: RunningBroker, topic: str, wanted: Mapping[int, Sequence[int]]) -> None:
    """Ask a broker for it; it goes on after the answer."""
    partitions = [
        ReassignablePartition(partition_index=number, replicas=list(replicas)) for number, replicas in wanted.items()
    ]
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=topic, partitions=partitions)])
    with WireConnection(broker.host, broker.port) as connection:
        answer = connection.call(request, 0, AlterPartitionReassignmentsResponse)
    assert answer.error_code == 0, answer
    assert all(each.error_code == 0 for found in answer.responses for each in found.partitions), answer
