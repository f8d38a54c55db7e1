"""The topics of the cluster, as far as groups need to know them."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from ottla.model.names import INTERNAL_TOPICS


class KnownTopic(NamedTuple):
    topic_id: UUID
    partitions: int


class KnownTopics:
    """An immutable view; whoever holds the same object knows that nothing has changed."""

    def __init__(self, topics: Mapping[str, KnownTopic] | None = None) -> None:
        self.by_name = dict(topics or {})
        self.names = {topic.topic_id: name for name, topic in self.by_name.items()}
        self.partitions = {topic.topic_id: topic.partitions for topic in self.by_name.values()}

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
