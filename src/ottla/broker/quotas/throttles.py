"""Which replicas' copying between brokers is throttled, and whether one may go on. Pure.

A topic names its throttled replicas as partition:broker, or `*` for all, once for the leaders' side and once for the
followers'; each broker has one limit for each side. In-sync replicas are never held up, whatever the lists say: that is
for the caller to tell. What they send and receive counts all the same.
"""

import functools
from collections.abc import Callable

from ottla.broker.quotas.rates import ByteQuota

EVERYTHING = "*"


@functools.lru_cache(maxsize=1024)
def throttled_partitions(replicas: tuple[str, ...], broker_id: int) -> frozenset[int] | None:
    """The partitions whose replica on this broker is in the list; None when all are."""
    if EVERYTHING in replicas:
        return None
    pairs = (entry.split(":") for entry in replicas if entry)
    return frozenset(int(partition) for partition, broker in pairs if int(broker) == broker_id)


class ReplicationThrottle:
    """One side, leaders' or followers', of a broker."""

    __slots__ = ("_broker_id", "_quota", "_replicas")

    def __init__(self, broker_id: int, quota: ByteQuota, replicas: Callable[[str], tuple[str, ...]]) -> None:
        self._broker_id = broker_id
        self._quota = quota
        self._replicas = replicas
        """The list that a topic's settings have for this side."""

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit at all; without one nothing need be counted."""
        return self._quota.is_limited

    def applies_to(self, topic: str, partition: int) -> bool:
        replicas = self._replicas(topic)
        if not replicas:
            return False
        partitions = throttled_partitions(replicas, self._broker_id)
        return partitions is None or partition in partitions

    def holds_up(self, topic: str, partition: int, now: float) -> bool:
        """Whether a replica that is not in sync must wait."""
        return self._quota.is_limited and self.applies_to(topic, partition) and self._quota.is_used_up(now)

    def seconds_to_wait(self, now: float) -> float:
        """How long it makes sense to wait before asking again."""
        return self._quota.seconds_to_wait(now)

    def note(self, topic: str, partition: int, size: int, now: float) -> None:
        if self._quota.is_limited and self.applies_to(topic, partition):
            self._quota.note(size, now)
