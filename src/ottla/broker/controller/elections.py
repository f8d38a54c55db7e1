"""Who leads a partition. Pure: a partition as it is and who is alive in, the partition as it should be out.

Every function gives a new PartitionImage, or None when nothing is to change. What always holds:

- the epoch grows by one with every change of leader (to none and from none as well), and never otherwise, except that
  a broker which may have lost the end of its log raises it (`rejoin`);
- the in-sync replicas are never empty once there were any, and always replicas of the partition;
- a leader is one of them.

An in-sync replica has everything that was ever acknowledged, so any of them that is alive may lead. When none is, the
partition has no leader and keeps the in-sync replicas it had: the first of them that comes back leads. Only where the
topic prefers availability to its data (unclean.leader.election.enable) another replica leads instead.

Dead brokers leave the in-sync replicas, but never so that fewer than `floor` (min.insync.replicas) are left. Nothing is
committed while fewer are alive, so who stays has everything although it is dead. Without it the last one alive would be
the only one that counts, and if its machine crashes, or has crashed and nobody knows yet, what it lost would be lost
although others have it.
"""

from collections.abc import Container

from msgspec.structs import replace

from ottla.cluster.image import NO_LEADER, PartitionImage

Alive = Container[int]


def new_partition(replicas: tuple[int, ...], alive: Alive) -> PartitionImage:
    """A partition that never had a leader: nothing was written yet, so every live replica is in sync.

    Without any it has neither leader nor in-sync replicas until one of them is there.
    """
    isr = tuple(replica for replica in replicas if replica in alive)
    return PartitionImage(isr[0] if isr else NO_LEADER, 0, replicas, isr)


def elect(partition: PartitionImage, alive: Alive, *, unclean: bool = False, floor: int = 1) -> PartitionImage | None:
    """What follows from who is alive: brokers came or went, the partition is new, or its replicas changed.

    `unclean` tells whether a replica that is not in sync may lead when no other can. Dead brokers leave the in-sync
    replicas at once, so that nobody waits for them, unless fewer than `floor` were left.
    """
    if not partition.isr:
        return _first_election(partition, alive)
    # Who is no replica any more cannot lead: the commit that took it away may have been cut short before it said so.
    holding = tuple(replica for replica in partition.isr if replica in partition.replicas) or partition.isr
    living = tuple(replica for replica in holding if replica in alive and replica in partition.replicas)
    kept = living if len(living) >= min(floor, len(partition.replicas)) else holding
    if partition.leader in living:
        return replace(partition, isr=kept) if kept != partition.isr else None
    if living:
        return _led_by(partition, _first(partition.replicas, living), kept)
    if unclean:
        behind = [replica for replica in _oldest_first(partition) if replica in alive]
        if behind:
            return _led_by(partition, behind[0], (behind[0],))
    return _led_by(partition, NO_LEADER, holding) if partition.leader != NO_LEADER else None


def elect_preferred(partition: PartitionImage, alive: Alive) -> PartitionImage | None:
    """The first replica leads again, if it is alive and in sync and does not lead already."""
    preferred = partition.replicas[0]
    if partition.leader == preferred or preferred not in alive or preferred not in partition.isr:
        return None
    return _led_by(partition, preferred, partition.isr)


def hand_over(partition: PartitionImage, leaving: int, alive: Alive, *, floor: int = 1) -> PartitionImage | None:
    """A broker is about to stop: another in-sync replica leads, and it is no longer one of them.

    Where no other could lead it stays: whoever is left without a leader gains nothing from losing it earlier. Where
    fewer than `floor` would be left it remains one of them: it has all that will be committed until it is back.
    """
    if leaving not in partition.isr:
        return None
    remaining = tuple(
        replica
        for replica in partition.isr
        if replica != leaving and replica in alive and replica in partition.replicas
    )
    if not remaining:
        return None
    if len(remaining) < min(floor, len(partition.replicas)):
        if partition.leader != leaving:
            return None
        return _led_by(partition, _first(partition.replicas, remaining), partition.isr)
    if partition.leader != leaving:
        return replace(partition, isr=tuple(replica for replica in partition.isr if replica != leaving))
    return _led_by(partition, _first(partition.replicas, remaining), remaining)


def rejoin(partition: PartitionImage, returning: int) -> PartitionImage | None:
    """A broker comes back whose machine crashed: the end of its logs may be lost, acknowledged records among it.

    Others that are in sync have all of it, so it must not count as one, nor lead, until it has caught up. Alone it is
    the best there is. The epoch is raised in any case: what it writes next must not pass for what it lost, and a leader
    that knows how far it was before the crash, and perhaps is just taking it in for that, must forget it.
    """
    if returning not in partition.replicas or not partition.isr:
        return None
    others = tuple(replica for replica in partition.isr if replica != returning)
    leader = NO_LEADER if partition.leader == returning and others else partition.leader
    return _led_by(partition, leader, others or partition.isr)


def _first_election(partition: PartitionImage, alive: Alive) -> PartitionImage | None:
    """Without in-sync replicas there never was a leader, so there is nothing to lose."""
    fresh = new_partition(partition.replicas, alive)
    if fresh.leader == NO_LEADER:
        return None
    return replace(partition, leader=fresh.leader, isr=fresh.isr)


def _led_by(partition: PartitionImage, leader: int, isr: tuple[int, ...]) -> PartitionImage:
    return replace(partition, leader=leader, leader_epoch=partition.leader_epoch + 1, isr=isr, late=())


def _first(replicas: tuple[int, ...], candidates: tuple[int, ...]) -> int:
    """The candidate that comes first in the order of preference."""
    return next(replica for replica in replicas if replica in candidates)


def _oldest_first(partition: PartitionImage) -> list[int]:
    """Replicas that are only just being added are likely to have the least."""
    return sorted(partition.replicas, key=lambda replica: replica in partition.adding)
