"""Which brokers hold a new partition. Pure.

The first replica, which is the preferred leader, goes round the brokers, one further for each partition. The others
follow at a distance that grows by one after every full round, so that the partitions of one leader do not all have
the same followers, and what a lost broker led spreads over all that remain. Where brokers have racks, the rounds
alternate between racks and a partition never has two replicas more on one rack than on another with room.
"""

from collections.abc import Iterable, Mapping
from itertools import zip_longest

from ottla.model.errors import ApiError, ErrorCode

Racks = Mapping[int, str | None]
"""The brokers to choose from, and the rack of each. Those without one count as a rack of their own."""


def place(partitions: Iterable[int], factor: int, brokers: Racks, *, start: int = 0) -> list[tuple[int, ...]]:
    """Replicas for the partitions with these numbers; `start` says where the round begins, so that topics differ."""
    if factor > len(brokers):
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {factor} is larger than the number of brokers, {len(brokers)}",
        )
    ring = _ring(brokers)
    racks = len(set(brokers.values()))
    place_one = _placed_by_rack if racks > 1 else _placed
    return [place_one(number, factor, ring, brokers, start, racks) for number in partitions]


def start_of(replicas: tuple[int, ...], brokers: Racks) -> int:
    """The start with which partition 0 got these replicas, for partitions that are added later."""
    ring = _ring(brokers)
    return ring.index(replicas[0]) if replicas and replicas[0] in brokers else 0


def _ring(brokers: Racks) -> list[int]:
    """The brokers in the order of the round: by id, and racks in turn."""
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(brokers):
        by_rack.setdefault(brokers[broker] or "", []).append(broker)
    columns = zip_longest(*(by_rack[rack] for rack in sorted(by_rack)))
    return [broker for column in columns for broker in column if broker is not None]


def _following(number: int, ring: list[int], start: int, stride: int) -> tuple[int, list[int]]:
    """The first replica of a partition, and all other brokers in the order in which they are to follow."""
    size = len(ring)
    first = (number + start) % size
    shift = (number // size + start) * stride
    others = [ring[(first + 1 + (shift + step) % (size - 1)) % size] for step in range(size - 1)]
    return ring[first], others


def _placed(number: int, factor: int, ring: list[int], _brokers: Racks, start: int, _racks: int) -> tuple[int, ...]:
    first, others = _following(number, ring, start, 1)
    return (first, *others[: factor - 1])


def _placed_by_rack(
    number: int, factor: int, ring: list[int], brokers: Racks, start: int, racks: int
) -> tuple[int, ...]:
    first, others = _following(number, ring, start, racks)
    replicas = [first]
    held: dict[str | None, int] = {brokers[first]: 1}
    while len(replicas) < factor:
        chosen = min(others, key=lambda broker: held.get(brokers[broker], 0))  # the first of those on the emptiest rack
        others.remove(chosen)
        replicas.append(chosen)
        held[brokers[chosen]] = held.get(brokers[chosen], 0) + 1
    return tuple(replicas)
