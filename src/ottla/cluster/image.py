"""An immutable picture of the cluster: brokers, topics, settings. A change makes a new picture; holders keep theirs."""

from collections.abc import Iterable, Mapping
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

NO_LEADER = -1
NO_CONTROLLER = -1

CLUSTER_WIDE = ""
"""The key under which `broker_configs` holds the settings of all brokers at once."""


class PartitionImage(Struct, frozen=True):
    """Who holds a partition. The epoch grows with every change of leader."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class TopicImage(Struct, frozen=True):
    """A topic; partition number n is `partitions[n]`. `configs` are the topic's own overrides, as text."""

    name: str
    topic_id: UUID
    partitions: tuple[PartitionImage, ...]
    configs: Mapping[str, str] = {}


class Endpoint(Struct, frozen=True):
    """Where clients that came through a listener find a broker."""

    listener: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"


class BrokerImage(Struct, frozen=True):
    id: int
    rack: str | None
    endpoints: tuple[Endpoint, ...]

    def endpoint(self, listener: str) -> Endpoint | None:
        """The endpoint with this listener's name."""
        for endpoint in self.endpoints:
            if endpoint.listener == listener:
                return endpoint
        return None


class ClusterImage(Struct, frozen=True):
    """Everything at one moment. The mappings are never changed in place."""

    cluster_id: str = ""
    controller_id: int = NO_CONTROLLER
    brokers: Mapping[int, BrokerImage] = {}
    topics: Mapping[str, TopicImage] = {}
    names_by_id: Mapping[UUID, str] = {}
    broker_configs: Mapping[str, Mapping[str, str]] = {}
    group_configs: Mapping[str, Mapping[str, str]] = {}

    def topic_by_id(self, topic_id: UUID) -> TopicImage | None:
        name = self.names_by_id.get(topic_id)
        return None if name is None else self.topics.get(name)

    def with_topics(self, written: Iterable[TopicImage], removed: Iterable[str] = ()) -> "ClusterImage":
        """This picture with some topics new or changed and others gone."""
        topics, names = dict(self.topics), dict(self.names_by_id)
        for name in removed:
            gone = topics.pop(name, None)
            if gone is not None:
                names.pop(gone.topic_id, None)
        for topic in written:
            before = topics.get(topic.name)
            if before is not None and before.topic_id != topic.topic_id:
                names.pop(before.topic_id, None)
            topics[topic.name] = topic
            names[topic.topic_id] = topic.name
        return replace(self, topics=topics, names_by_id=names)


class ImageChange(Struct, frozen=True):
    """What differs between two pictures."""

    written: tuple[TopicImage, ...]
    removed: tuple[TopicImage, ...]
    broker_configs: bool


def changes_between(old: ClusterImage, new: ClusterImage) -> ImageChange:
    """Topics new or changed, topics gone (or replaced by another of that name), and whether broker settings differ.

    Topics that did not change are the same object in both pictures, so this compares identities only.
    """
    if old.topics is new.topics:
        return ImageChange((), (), old.broker_configs is not new.broker_configs)
    before, after = old.topics, new.topics
    written = tuple(topic for name, topic in after.items() if before.get(name) is not topic)
    removed = tuple(
        topic
        for name, topic in before.items()
        if after.get(name) is not topic and (name not in after or after[name].topic_id != topic.topic_id)
    )
    return ImageChange(written, removed, old.broker_configs is not new.broker_configs)
