"""Plans for moving replicas: off a broker, evenly over all, to another replication factor, by rack. Pure.

A plan changes as little as its goal allows: a replica that can stay does, so that few bytes move.
"""

import math
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ottla.model.errors import ApiError, OttlaError
from ottla.model.names import TopicPartition
from ottla.model.placement import place

Replicas = Mapping[TopicPartition, Sequence[int]]
Racks = Mapping[int, str | None]
GOALS = {
    "leave": "move everything off a broker",
    "spread": "spread evenly over the brokers",
    "factor": "change the number of replicas",
    "anew": "place anew, as if the topics were made now (by rack)",
}


class CannotPlan(OttlaError):
    """The goal cannot be reached; the message says why."""


class Move(NamedTuple):
    partition: TopicPartition
    old: tuple[int, ...]
    new: tuple[int, ...]
    size_bytes: int

    @property
    def added(self) -> tuple[int, ...]:
        return tuple(broker for broker in self.new if broker not in self.old)

    @property
    def bytes_to_move(self) -> int:
        return self.size_bytes * len(self.added)


def moves_of(
    plan: Mapping[TopicPartition, Sequence[int]], current: Replicas, size: Callable[[TopicPartition], int]
) -> list[Move]:
    """What a plan changes, the rest left out."""
    changed = [at for at, new in plan.items() if tuple(new) != tuple(current[at])]
    return [Move(at, tuple(current[at]), tuple(plan[at]), size(at)) for at in sorted(changed)]


def leave(current: Replicas, broker: int, racks: Racks) -> dict[TopicPartition, list[int]]:
    """Every replica of a broker goes to the one that holds least, on its rack if that is possible."""
    others = [each for each in racks if each != broker]
    if not others:
        raise CannotPlan(f"there is no broker but {broker}: nothing can be moved off it")
    held = _held(current)
    plan: dict[TopicPartition, list[int]] = {}
    for at, old in sorted(current.items()):
        if broker not in old:
            continue
        free = [each for each in others if each not in old]
        if not free:
            raise CannotPlan(
                f"{at} has a replica on every other broker: add a broker, or let it have fewer replicas first"
            )
        taken = Counter(racks.get(each) for each in old if each != broker)
        chosen = min(free, key=lambda each: (taken[racks[each]], held[each], each))
        held[chosen] += 1
        held[broker] -= 1
        plan[at] = [chosen if each == broker else each for each in old]
    return plan


def change_factor(current: Replicas, factor: int, racks: Racks) -> dict[TopicPartition, list[int]]:
    """Replicas are added on other racks and emptier brokers first; those behind in the list are taken away."""
    if factor < 1:
        raise CannotPlan("a partition has one replica or more")
    if factor > len(racks):
        raise CannotPlan(f"{factor} replicas want as many brokers, and there are {len(racks)}")
    held = _held(current)
    plan: dict[TopicPartition, list[int]] = {}
    for at, old in sorted(current.items()):
        new = list(old[:factor])
        while len(new) < factor:
            taken = Counter(racks.get(each) for each in new)
            free = [each for each in racks if each not in new]
            chosen = min(free, key=lambda each: (taken[racks[each]], held[each], each))
            held[chosen] += 1
            new.append(chosen)
        plan[at] = new
    return plan


def spread(current: Replicas, racks: Racks) -> dict[TopicPartition, tuple[int, ...]]:
    """Replicas move from brokers that hold most to those that hold least, then preferred leaders are evened out."""
    plan = {at: tuple(current[at]) for at in sorted(current)}
    by_broker: dict[int, dict[TopicPartition, None]] = {broker: {} for broker in racks}
    for at, replicas in plan.items():
        for broker in replicas:
            if broker in by_broker:
                by_broker[broker][at] = None
    held = Counter({broker: len(found) for broker, found in by_broker.items()})
    while _sweep(plan, held, by_broker, racks):
        pass
    _even_leaders(plan, racks)
    return plan


def _sweep(
    plan: dict[TopicPartition, tuple[int, ...]],
    held: Counter[int],
    by_broker: dict[int, dict[TopicPartition, None]],
    racks: Racks,
) -> bool:
    """From each broker that holds more than its share to each that holds less: whether anything could be moved.

    Each pair is gone through once, however many replicas it moves: a cluster has tens of thousands of them."""
    share = sum(held.values()) / len(held)
    moved = False
    for most in sorted(held, key=lambda each: (-held[each], each)):
        for least in sorted(held, key=lambda each: (held[each], each)):
            gap = held[most] - held[least]
            if gap < 2:
                break
            wanted = max(1, min(held[most] - math.ceil(share), math.floor(share) - held[least]))
            for at in list(by_broker[most]):
                if wanted == 0:
                    break
                if least in plan[at] or not _keeps_racks(plan[at], most, least, racks):
                    continue
                plan[at] = tuple(least if each == most else each for each in plan[at])
                del by_broker[most][at]
                by_broker[least][at] = None
                held[most] -= 1
                held[least] += 1
                wanted -= 1
                moved = True
    return moved


def _keeps_racks(replicas: Sequence[int], gone: int, come: int, racks: Racks) -> bool:
    """A partition is on no fewer racks than before."""
    before = {racks.get(each) for each in replicas}
    after = {racks.get(each) for each in replicas if each != gone} | {racks.get(come)}
    return len(after) >= len(before)


def _even_leaders(plan: dict[TopicPartition, tuple[int, ...]], racks: Racks) -> None:
    """The first replica is the preferred leader: of those that hold a partition, who leads least goes first."""
    leads = Counter(replicas[0] for replicas in plan.values() if replicas)
    for at, replicas in plan.items():
        if len(replicas) < 2:
            continue
        first = replicas[0]
        best = min((each for each in replicas if each in racks), key=lambda each: leads[each], default=None)
        if best is not None and leads[first] - leads[best] >= 2:
            leads[first] -= 1
            leads[best] += 1
            swapped = {first: best, best: first}
            plan[at] = tuple(swapped.get(each, each) for each in replicas)


def anew(current: Replicas, racks: Racks) -> dict[TopicPartition, list[int]]:
    """As a new topic would be placed: in turn, replicas on different racks."""
    if len({rack is None for rack in racks.values()}) > 1:
        racks = dict.fromkeys(racks)
    by_topic: dict[str, list[TopicPartition]] = {}
    for at in sorted(current):
        by_topic.setdefault(at.topic, []).append(at)
    plan: dict[TopicPartition, list[int]] = {}
    for topic, partitions in by_topic.items():
        start = zlib.crc32(topic.encode()) % len(racks)
        try:
            placed = place([at.partition for at in partitions], len(current[partitions[0]]), racks, start=start)
        except ApiError as error:
            raise CannotPlan(f"topic {topic}: {error}") from None
        plan |= {at: list(brokers) for at, brokers in zip(partitions, placed, strict=True)}
    return plan


def _held(current: Replicas) -> Counter[int]:
    return Counter(broker for replicas in current.values() for broker in replicas)
