"""The kinds of coordinators: which one answers for a key, and in which topic it keeps what it knows."""

from collections.abc import Awaitable, Callable
from enum import IntEnum
from typing import Any, NamedTuple

from ottla.broker.coordination.coordinator import Coordinator
from ottla.cluster.image import TopicImage


class CoordinatorKind(IntEnum):
    """By the number that FindCoordinator calls it."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class CoordinatorEntry(NamedTuple):
    """One kind of coordinator that this broker may be."""

    coordinator: Coordinator[Any, Any]
    ensure_topic: Callable[[], Awaitable[TopicImage]]
    """The topic that the coordinator keeps its state in, created on first use."""

    async def topic(self) -> TopicImage:
        topic = await self.ensure_topic()
        self.coordinator.refresh()
        return topic


Coordinators = dict[int, CoordinatorEntry]
"""By kind, in the order in which they are started."""
