"""Which partitions each broker holds, kept in step with the image: a lost broker costs what it held, no more."""

from collections.abc import Iterator

from ottla.cluster.image import ClusterImage, ImageChange, PartitionImage, TopicImage

Place = tuple[str, int]
"""A partition: the name of its topic and its number."""


class Holders:
    def __init__(self, image: ClusterImage) -> None:
        self._by_broker: dict[int, set[Place]] = {}
        for topic in image.topics.values():
            for number, partition in enumerate(topic.partitions):
                self._move((topic.name, number), (), partition.replicas)

    def of(self, broker: int) -> list[Place]:
        """In order, so that what is decided does not depend on how a process hashes."""
        return sorted(self._by_broker.get(broker, ()))

    def apply(self, change: ImageChange) -> list[Place]:
        """Take in a change; the partitions that are new or differ from before."""
        for topic in change.removed:
            for number, partition in enumerate(topic.partitions):
                self._move((topic.name, number), partition.replicas, ())
        changed = []
        for topic in change.written:
            for number, before, after in _differing(change.old.topics.get(topic.name), topic):
                self._move((topic.name, number), before.replicas if before is not None else (), after.replicas)
                changed.append((topic.name, number))
        return changed

    def _move(self, place: Place, before: tuple[int, ...], after: tuple[int, ...]) -> None:
        if before == after:
            return
        for broker in before:
            self._by_broker.get(broker, set()).discard(place)
        for broker in after:
            self._by_broker.setdefault(broker, set()).add(place)


def _differing(
    before: TopicImage | None, after: TopicImage
) -> Iterator[tuple[int, PartitionImage | None, PartitionImage]]:
    """Partitions that did not change are the same object in both pictures."""
    known = before.partitions if before is not None and before.topic_id == after.topic_id else ()
    for number, partition in enumerate(after.partitions):
        old = known[number] if number < len(known) else None
        if old is not partition:
            yield number, old, partition
