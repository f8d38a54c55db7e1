"""Who follows the metadata, and in which order.

A change is applied by one follower after the other before the commit that made it returns. The order matters: settings
come first, because a partition that begins reads its own; coordinators come last, because they look at which partitions
this broker leads. A follower that fails keeps the later ones from the change, as it would have kept the commit from
returning: it is a bug, and is not hidden.
"""

from collections.abc import Callable
from typing import NamedTuple

from ottla.cluster.image import ImageChange


class Follower(NamedTuple):
    name: str
    apply: Callable[[ImageChange], None]


class MetadataFollowers:
    """The list of them. Called with a change, it is what a metadata store has as its subscriber."""

    def __init__(self, *followers: Follower) -> None:
        self._followers = followers

    @property
    def order(self) -> tuple[str, ...]:
        return tuple(follower.name for follower in self._followers)

    def __call__(self, change: ImageChange) -> None:
        for follower in self._followers:
            follower.apply(change)


def topics_came_or_grew(change: ImageChange) -> bool:
    """Or went. Other leaders and other in-sync replicas, which come often, are nothing to consumer groups."""
    before = change.old.topics
    return bool(change.removed) or any(
        (known := before.get(topic.name)) is None or len(known.partitions) != len(topic.partitions)
        for topic in change.written
    )
