"""A world for consumer groups: topics that change, and members that behave like clients, or do not."""

from typing import Any
from uuid import UUID

import msgspec

from ottla.broker.coordination.groups.consumer.assignments import NOTHING, Assignment
from ottla.broker.coordination.groups.consumer.events import ConsumerAnswer, ConsumerHeartbeat
from ottla.broker.coordination.groups.consumer.group import ConsumerGroup
from ottla.broker.coordination.groups.consumer.topics import KnownTopic, KnownTopics
from ottla.broker.coordination.groups.events import GroupRules
from ottla.model.errors import ErrorCode

from .group_world import World

ID_OF = {name: UUID(int=number) for number, name in enumerate("tuvw", start=1)}


def topics(**partitions: int) -> KnownTopics:
    return KnownTopics(lambda: {name: KnownTopic(ID_OF[name], count) for name, count in partitions.items()})


def parts(**partitions: set[int]) -> Assignment:
    return {ID_OF[name]: frozenset(numbers) for name, numbers in partitions.items()}


class ConsumerWorld(World):
    def __init__(self, rules: GroupRules | None = None, **partitions: int) -> None:
        super().__init__(rules)
        self.set_topics(**(partitions or {"t": 4}))

    def set_topics(self, **partitions: int) -> None:
        self.rules = msgspec.structs.replace(self.rules, topics=topics(**partitions))

    def set_consumer_rules(self, **changes: Any) -> None:
        consumer = msgspec.structs.replace(self.rules.consumer, **changes)
        self.rules = msgspec.structs.replace(self.rules, consumer=consumer)

    @property
    def consumer_group(self) -> ConsumerGroup:
        return self.machine.consumer.groups["g"]

    def beat(self, member_id: str, epoch: int, **details: Any) -> ConsumerAnswer:
        """One ConsumerGroupHeartbeat, and its answer."""
        ticket = self._request()
        event = ConsumerHeartbeat(
            ticket, details.pop("group_id", "g"), member_id, epoch, unique=f"new-{ticket}", **details
        )
        self.perform(self.machine.consumer.on_heartbeat(event, self.now, self.rules))
        answer = self.answers[ticket]
        assert isinstance(answer, ConsumerAnswer), answer
        return answer

    def enter(self, member_id: str, *names: str, **details: Any) -> ConsumerAnswer:
        details.setdefault("topics", tuple(names) if names or "regex" in details else ("t",))
        return self.beat(member_id, 0, rebalance_timeout_ms=60_000, owned=NOTHING, **details)


class Client:
    """A member that does as it is told: gives up what is not its own any more, takes what it is given."""

    def __init__(self, world: ConsumerWorld, member_id: str, *names: str, **details: Any) -> None:
        self.world, self.member_id = world, member_id
        self.details = details
        self.names = names
        self.epoch = 0
        self.owned: Assignment = NOTHING
        self.is_member = False

    def join(self) -> ErrorCode:
        self.owned, self.epoch = NOTHING, 0
        return self._take(self.world.enter(self.member_id, *self.names, **self.details))

    def beat(self) -> ErrorCode:
        answer = self.world.beat(
            self.member_id, self.epoch, owned=self.owned, instance_id=self.details.get("instance_id")
        )
        return self._take(answer)

    def leave(self, epoch: int = -1) -> ErrorCode:
        self.is_member = False
        self.owned = NOTHING
        return self.world.beat(self.member_id, epoch, instance_id=self.details.get("instance_id")).error

    def _take(self, answer: ConsumerAnswer) -> ErrorCode:
        if answer.error is ErrorCode.NONE:
            self.is_member = True
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.owned = answer.assignment
        elif answer.error in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            self.is_member = False
            self.owned, self.epoch = NOTHING, 0
        return answer.error


def settle(world: ConsumerWorld, *clients: Client, rounds: int = 20) -> None:
    """Let everybody speak until nothing moves."""
    for _ in range(rounds):
        before = len(world.records)
        for client in clients:
            assert client.beat() is ErrorCode.NONE
        if len(world.records) == before:
            return
    raise AssertionError(f"the group did not settle: {world.consumer_group.state}")
