"""Moving partitions to other brokers, step by step. Pure: a partition in, the partition as it should be out.

While a partition moves it has the replicas of both sides, the new ones first (`adding` and `removing` tell them apart),
so the old ones carry it until the new ones are in sync. When all that are to hold it in the end are, one of them leads
and the others go. A running move can be replaced by another, which starts from where the first one came from, and
cancelled, which goes back there.
"""

from collections.abc import Collection

from msgspec.structs import replace

from ottla.broker.controller.elections import Alive, elect
from ottla.cluster.image import PartitionImage
from ottla.model.errors import ApiError, ErrorCode


def is_moving(partition: PartitionImage) -> bool:
    return bool(partition.adding or partition.removing)


def target_of(partition: PartitionImage) -> tuple[int, ...]:
    """The brokers that hold the partition once its move is done."""
    return tuple(replica for replica in partition.replicas if replica not in partition.removing)


def origin_of(partition: PartitionImage) -> tuple[int, ...]:
    """The brokers that held the partition before its move."""
    return tuple(replica for replica in partition.replicas if replica not in partition.adding)


def begin(partition: PartitionImage, target: tuple[int, ...], alive: Alive) -> PartitionImage | None:
    """Move the partition to these brokers; None if it is on the way there, or there, already.

    A move that adds nobody and only puts the replicas in another order is done with that.
    """
    origin = origin_of(partition)
    if not _in_sync(partition, (*origin, *target)):
        origin = partition.replicas  # the only complete copies are on brokers that are being added: they stay for now
    merged = target + tuple(replica for replica in origin if replica not in target)
    adding = tuple(replica for replica in target if replica not in origin)
    removing = tuple(replica for replica in origin if replica not in target)
    begun = replace(partition, replicas=merged, adding=adding, removing=removing, isr=_in_sync(partition, merged))
    if begun == partition:
        return None
    return _relected(begun, alive)


def cancel(partition: PartitionImage, alive: Alive) -> PartitionImage:
    """Give up the running move. ApiError when there is none, or when only the new brokers have all the data."""
    if not is_moving(partition):
        raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "the partition is not being moved")
    origin = origin_of(partition)
    isr = _in_sync(partition, origin)
    if partition.isr and not isr:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "none of the brokers that held the partition before is in sync: going back would lose data",
        )
    return _relected(replace(partition, replicas=origin, adding=(), removing=(), isr=isr), alive)


def finish(partition: PartitionImage, alive: Alive) -> PartitionImage | None:
    """The move is done when everyone who is to hold the partition is in sync and one of them can lead."""
    if not is_moving(partition):
        return None
    target = target_of(partition)
    if any(replica not in partition.isr for replica in target) or not any(replica in alive for replica in target):
        return None
    isr = _in_sync(partition, target)
    return _relected(replace(partition, replicas=target, adding=(), removing=(), isr=isr), alive)


def next_state(
    partition: PartitionImage, alive: Alive, *, unclean: bool = False, floor: int = 1
) -> PartitionImage | None:
    """Everything that is to be done for a partition as it is now: elect if need be, finish a move if it is done."""
    elected = elect(partition, alive, unclean=unclean, floor=floor)
    finished = finish(elected or partition, alive)
    if elected is None or finished is None:
        return finished or elected
    # Whoever was elected in between never led; whoever leads now, and did not before, leads in a new epoch.
    return replace(finished, leader_epoch=min(finished.leader_epoch, partition.leader_epoch + 1))


def _in_sync(partition: PartitionImage, among: Collection[int]) -> tuple[int, ...]:
    return tuple(replica for replica in partition.isr if replica in among)


def _relected(partition: PartitionImage, alive: Alive) -> PartitionImage:
    """With other replicas the leader may no longer be one of them. The dead are left for the controller to judge."""
    return elect(partition, alive, floor=len(partition.replicas)) or partition
