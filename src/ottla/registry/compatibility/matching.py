"""Pairing off: can every item of one list get a partner of its own in the other?"""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def all_matched(items: Sequence[T], partners: Sequence[T], fits: Callable[[T, T], bool]) -> bool:
    """Maximum bipartite matching, by augmenting paths."""
    if len(items) > len(partners):
        return False
    edges = [[number for number, partner in enumerate(partners) if fits(item, partner)] for item in items]
    taken: dict[int, int] = {}

    def place(item: int, seen: set[int]) -> bool:
        for partner in edges[item]:
            if partner not in seen:
                seen.add(partner)
                if partner not in taken or place(taken[partner], seen):
                    taken[partner] = item
                    return True
        return False

    return all(place(item, set()) for item in range(len(items)))
