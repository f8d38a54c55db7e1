"""Who gets which partition: the broker's own assignors, as pure functions.

`uniform` spreads all partitions as evenly as subscriptions allow and moves as few as it can. `range` gives each member
the same range of every topic, so that topics with equal partitions are read side by side; it does not look at what
members had before.
"""

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
        plan.trim_to_quotas()
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

    def trim_to_quotas(self) -> None:
        """All members want the same topics: nobody needs more than its share, and who has most keeps the extra ones."""
        total = len(self.free) + sum(map(len, self.owned.values()))
        share, extra = divmod(total, len(self.members)) if self.members else (0, 0)
        for member_id in sorted(self.owned, key=lambda name: (-len(self.owned[name]), name)):
            quota = share + (extra > 0)
            extra -= 1
            self.free += self.owned[member_id][quota:]
            del self.owned[member_id][quota:]

    def hand_out(self) -> None:
        """Partitions that few members can take go first; each goes to who has least."""
        for topic_id, partition in sorted(self.free, key=lambda pair: (len(self.subscribers[pair[0]]), _order(pair))):
            poorest = min(self.subscribers[topic_id], key=lambda name: (len(self.owned[name]), name))
            self.owned[poorest].append((topic_id, partition))
        self.free = []

    def balance(self) -> None:
        """Move single partitions down the slope while there is one. Each move makes the sum of squares smaller."""
        moved = True
        while moved:
            moved = False
            for giver in sorted(self.owned, key=lambda name: (-len(self.owned[name]), name)):
                moved = self._give(giver) or moved

    def _give(self, giver: str) -> bool:
        for pair in self.owned[giver]:
            taker = min(self.subscribers[pair[0]], key=lambda name: (len(self.owned[name]), name))
            if len(self.owned[giver]) - len(self.owned[taker]) >= 2:
                self.owned[giver].remove(pair)
                self.owned[taker].append(pair)
                return True
        return False


def _order(pair: tuple[UUID, int]) -> tuple[int, int]:
    return pair[0].int, pair[1]


ASSIGNORS: dict[str, Assignor] = {UNIFORM: assign_uniform, RANGE: assign_range}
