"""Who gets which partition: the broker's own assignors, as pure functions.

`uniform` spreads all partitions as evenly as subscriptions allow and moves as few as it can. `range` gives each member
the same range of every topic, so that topics with equal partitions are read side by side; it does not look at what
members had before.
"""

import heapq
import itertools
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

import msgspec

from ottla.broker.coordination.groups.consumer.assignments import NOTHING, Assignment, assignment_of, pairs

UNIFORM, RANGE = "uniform", "range"


class Candidate(msgspec.Struct, frozen=True):
    """A member as the assignors see it."""

    member_id: str
    instance_id: str | None
    topics: frozenset[UUID]
    """What it is subscribed to, among the topics that exist."""
    previous: Assignment = NOTHING
    """What was meant for it until now."""


Assignor = Callable[[Sequence[Candidate], Mapping[UUID, int]], dict[str, Assignment]]
"""(members, number of partitions by topic) -> assignment by member."""


def assign_range(members: Sequence[Candidate], partitions: Mapping[UUID, int]) -> dict[str, Assignment]:
    ordered = sorted(members, key=_range_order)
    result: dict[str, dict[UUID, frozenset[int]]] = {member.member_id: {} for member in ordered}
    for topic_id in {topic_id for member in ordered for topic_id in member.topics}:
        subscribers = [member.member_id for member in ordered if topic_id in member.topics]
        share, extra = divmod(partitions[topic_id], len(subscribers))
        start = 0
        for position, member_id in enumerate(subscribers):
            end = start + share + (position < extra)
            if start < end:
                result[member_id][topic_id] = frozenset(range(start, end))
            start = end
    return {**result}


def _range_order(member: Candidate) -> tuple[bool, str]:
    """Static members first, by their lasting names: their ranges survive restarts."""
    return member.instance_id is None, member.instance_id or member.member_id


def assign_uniform(members: Sequence[Candidate], partitions: Mapping[UUID, int]) -> dict[str, Assignment]:
    plan = _Plan(members, partitions)
    if len({member.topics for member in members}) <= 1:
        plan.share_alike()
    else:
        plan.hand_out()
        plan.balance()
    return {member_id: assignment_of(owned) for member_id, owned in plan.owned.items()}


class _Plan:
    """An assignment in the making. It begins with what may stay as it was."""

    def __init__(self, members: Sequence[Candidate], partitions: Mapping[UUID, int]) -> None:
        self.members = sorted(members, key=lambda member: member.member_id)
        self.subscribers: dict[UUID, list[str]] = {}
        for member in self.members:
            for topic_id in member.topics:
                self.subscribers.setdefault(topic_id, []).append(member.member_id)
        self._ranks: dict[UUID, list[tuple[int, str]]] = {}
        """By topic: its subscribers as a heap, those with least first."""
        self.owned: dict[str, list[tuple[UUID, int]]] = {member.member_id: [] for member in self.members}
        taken: set[tuple[UUID, int]] = set()
        for member in self.members:
            for topic_id, partition in sorted(pairs(member.previous), key=_order):
                still_there = topic_id in member.topics and partition < partitions[topic_id]
                if still_there and (topic_id, partition) not in taken:
                    taken.add((topic_id, partition))
                    self.owned[member.member_id].append((topic_id, partition))
        self.free = [
            (topic_id, partition)
            for topic_id in sorted(self.subscribers, key=lambda topic_id: topic_id.int)
            for partition in range(partitions[topic_id])
            if (topic_id, partition) not in taken
        ]

    def share_alike(self) -> None:
        """All members want the same topics: each gets its share, and who has most keeps the extra ones."""
        total = len(self.free) + sum(map(len, self.owned.values()))
        share, extra = divmod(total, len(self.members)) if self.members else (0, 0)
        richest_first = sorted(self.owned, key=lambda name: (-len(self.owned[name]), name))
        quotas = {name: share + (position < extra) for position, name in enumerate(richest_first)}
        for name, quota in quotas.items():
            self.free += self.owned[name][quota:]
            del self.owned[name][quota:]
        left = iter(self.free)
        for name, quota in quotas.items():
            self.owned[name] += itertools.islice(left, quota - len(self.owned[name]))
        self.free = []

    def hand_out(self) -> None:
        """Partitions that few members can take go first; each goes to who has least."""
        self._rank()
        for topic_id, partition in sorted(self.free, key=lambda pair: (len(self.subscribers[pair[0]]), _order(pair))):
            self.owned[self._poorest(topic_id)].append((topic_id, partition))
        self.free = []

    def balance(self) -> None:
        """Move single partitions down the slope while there is one. Each move makes the sum of squares smaller."""
        moved = True
        while moved:
            moved = False
            self._rank()
            for giver in sorted(self.owned, key=lambda name: (-len(self.owned[name]), name)):
                moved = self._give(giver) or moved

    def _give(self, giver: str) -> bool:
        for topic_id in sorted({topic_id for topic_id, _ in self.owned[giver]}, key=lambda topic_id: topic_id.int):
            taker = self._poorest(topic_id)
            if len(self.owned[giver]) - len(self.owned[taker]) >= 2:
                pair = next(pair for pair in reversed(self.owned[giver]) if pair[0] == topic_id)
                self.owned[giver].remove(pair)
                self.owned[taker].append(pair)
                return True
        return False

    def _rank(self) -> None:
        self._ranks = {
            topic_id: sorted((len(self.owned[name]), name) for name in names)
            for topic_id, names in self.subscribers.items()
        }

    def _poorest(self, topic_id: UUID) -> str:
        """Who has least of those who want the topic. Members that got something since they were ranked move down."""
        heap = self._ranks[topic_id]
        while heap[0][0] < len(self.owned[heap[0][1]]):
            name = heap[0][1]
            heapq.heapreplace(heap, (len(self.owned[name]), name))
        return heap[0][1]


def _order(pair: tuple[UUID, int]) -> tuple[int, int]:
    return pair[0].int, pair[1]


ASSIGNORS: dict[str, Assignor] = {UNIFORM: assign_uniform, RANGE: assign_range}
