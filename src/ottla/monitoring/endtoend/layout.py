"""Which partitions the monitor's topic needs, so that every broker leads one. Pure."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.monitoring.readings import PartitionPlace


class Wanted(NamedTuple):
    partitions_to_brokers: float = 1.0
    partitions_min: int = 1
    replication_factor: int | None = None
    """None: three, or as many as there are brokers."""
    create: bool = True
    add_partitions: bool = True
    move: bool = True
    """Whether replicas may be moved and leaders elected."""


class Plan(NamedTuple):
    """What is to be done, in this order. Nothing is a plan, too."""

    create: dict[int, list[int]] | None = None
    add: list[list[int]] | None = None
    """Brokers of each new partition."""
    move: dict[int, list[int]] | None = None
    elect: list[int] | None = None
    problem: str = ""
    """What would be needed and is not allowed."""


def plan(brokers: Sequence[int], existing: Mapping[int, PartitionPlace], wanted: Wanted) -> Plan:
    alive = sorted(brokers)
    if not alive:
        return Plan(problem="no broker is known")
    count = max(wanted.partitions_min, math.ceil(len(alive) * wanted.partitions_to_brokers), 1)
    factor = min(len(alive), wanted.replication_factor or 3)
    if not existing:
        if not wanted.create:
            return Plan(problem="the topic does not exist, and may not be created")
        return Plan(create={number: _replicas(alive, number, factor) for number in range(count)})
    if len(existing) < count:
        if not wanted.add_partitions:
            return Plan(problem=f"the topic has {len(existing)} partitions and needs {count}, which may not be added")
        return Plan(add=[_replicas(alive, number, factor) for number in range(len(existing), count)])
    if not wanted.move:
        return Plan()
    moves = _moves(alive, existing)
    if moves:
        return Plan(move=moves)
    stray = [
        number
        for number, place in sorted(existing.items())
        if place.replicas[0] != place.leader and place.replicas[0] in alive and place.replicas[0] in place.in_sync
    ]
    return Plan(elect=stray or None)


def _replicas(alive: Sequence[int], number: int, factor: int) -> list[int]:
    return [alive[(number + step) % len(alive)] for step in range(factor)]


def _moves(alive: Sequence[int], existing: Mapping[int, PartitionPlace]) -> dict[int, list[int]]:
    """For each broker that is the first replica of none, a partition from one that is of several or is gone."""
    first = Counter(place.replicas[0] for place in existing.values())
    moves: dict[int, list[int]] = {}
    for broker in (each for each in alive if not first[each]):
        for number, place in sorted(existing.items()):
            owner = place.replicas[0]
            if number in moves or (owner in alive and first[owner] < 2):
                continue
            others = [each for each in place.replicas if each != broker]
            # It takes the place of the last, unless it has one already and only becomes the first.
            kept = others if broker in place.replicas else others[: len(place.replicas) - 1]
            moves[number] = [broker, *kept]
            first[owner] -= 1
            first[broker] += 1
            break
    return moves
