"""The topics of the cluster, as far as groups need to know them."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import NamedTuple
from uuid import UUID

from ottla.model.names import INTERNAL_TOPICS


class KnownTopic(NamedTuple):
    topic_id: UUID
    partitions: int


class KnownTopics:
    """An immutable view; whoever holds the same object knows that nothing has changed.

    It is built when it is first asked: topics may be made by the thousand while no consumer group is there to care.
    """

    def __init__(self, look: Callable[[], Mapping[str, KnownTopic]] = dict) -> None:
        self._look = look

    @cached_property
    def by_name(self) -> Mapping[str, KnownTopic]:
        return self._look()

    @cached_property
    def names(self) -> dict[UUID, str]:
        return {topic.topic_id: name for name, topic in self.by_name.items()}

    @cached_property
    def partitions(self) -> dict[UUID, int]:
        return {topic.topic_id: topic.partitions for topic in self.by_name.values()}

    def ids_of(self, names: Iterable[str]) -> frozenset[UUID]:
        """Topics that do not exist (yet) are left out."""
        return frozenset(self.by_name[name].topic_id for name in names if name in self.by_name)

    def candidates(self) -> list[str]:
        """What a pattern may choose from. Who wants to read the broker's own topics has to name them."""
        return sorted(name for name in self.by_name if name not in INTERNAL_TOPICS)

    def fingerprint(self, names: Iterable[str]) -> int:
        """A number that changes when a topic among these appears, goes, is made anew or gets more partitions."""
        known = [(name, self.by_name[name]) for name in sorted(set(names)) if name in self.by_name]
        if not known:
            return 0
        digest = hashlib.blake2b(digest_size=8)
        for name, topic in known:
            digest.update(f"{name}:{topic.topic_id}:{topic.partitions};".encode())
        return int.from_bytes(digest.digest(), "big", signed=True)
