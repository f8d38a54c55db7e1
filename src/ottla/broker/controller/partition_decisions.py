"""What becomes of a request to move partitions or to elect their leaders.

Pure; a refusal is an ApiError with Kafka's code.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from ottla.broker.controller import reassignments
from ottla.broker.controller.elections import elect, elect_preferred
from ottla.cluster.image import ClusterImage, PartitionImage
from ottla.model.errors import ApiError, ErrorCode


class ElectionType(IntEnum):
    """The numbers are those of the protocol."""

    PREFERRED = 0
    UNCLEAN = 1


class Move(NamedTuple):
    """The brokers that are to hold a partition; None gives up the move under way."""

    replicas: Sequence[int] | None
    allow_factor_change: bool = True


def known_partition(image: ClusterImage, topic: str, number: int) -> PartitionImage:
    found = image.topics.get(topic)
    if found is None or not 0 <= number < len(found.partitions):
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{number}")
    return found.partitions[number]


def decide_move(move: Move, partition: PartitionImage, image: ClusterImage) -> PartitionImage | None:
    """The partition with its move begun, changed or given up; None when it is on its way there already."""
    if move.replicas is None:
        return reassignments.cancel(partition, image.brokers)
    target = tuple(move.replicas)
    _check_target(target, partition, image)
    if not move.allow_factor_change and len(target) != len(reassignments.target_of(partition)):
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"the partition has {len(reassignments.target_of(partition))} replicas and would have {len(target)}, and "
            "the request does not allow that to change",
        )
    return reassignments.begin(partition, target, image.brokers)


def _check_target(target: tuple[int, ...], partition: PartitionImage, image: ClusterImage) -> None:
    problem = None
    if not target:
        problem = "an assignment of replicas is empty"
    elif len(set(target)) != len(target):
        problem = f"an assignment names a broker twice: {list(target)}"
    else:
        # Who holds the partition already may stay although it is not running at the moment.
        gone = [broker for broker in target if broker not in image.brokers and broker not in partition.replicas]
        if gone:
            problem = f"an assignment names broker {gone[0]}, which is not running"
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)


def decide_election(kind: ElectionType, partition: PartitionImage, image: ClusterImage) -> PartitionImage:
    """The partition with its new leader; ApiError when none is needed or nobody can lead."""
    alive = image.brokers
    if kind is ElectionType.PREFERRED:
        if partition.leader == partition.replicas[0]:
            raise ApiError(ErrorCode.ELECTION_NOT_NEEDED, "the preferred replica leads already")
        elected = elect_preferred(partition, alive)
        if elected is None:
            raise ApiError(
                ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
                f"broker {partition.replicas[0]} is not running or not in sync",
            )
        return elected
    if partition.leader in alive:
        raise ApiError(ErrorCode.ELECTION_NOT_NEEDED, f"broker {partition.leader} leads the partition")
    elected = elect(partition, alive, unclean=True)
    if elected is None or elected.leader not in alive:
        raise ApiError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "no broker that holds the partition is running")
    return elected
