"""An immutable picture of the cluster: brokers, topics, settings. A change makes a new picture; holders keep theirs."""

from collections.abc import Container, Iterable, Mapping
from typing import TypeVar
from uuid import UUID

from immutables import Map
from msgspec import Struct
from msgspec.structs import replace

from ottla.cluster.token_documents import DelegationToken
from ottla.model.acls import AclEntry, ResourcePattern

_K = TypeVar("_K")
_V = TypeVar("_V")

NO_LEADER = -1
NO_CONTROLLER = -1
NO_BROKER_EPOCH = -1

CLUSTER_WIDE = ""
"""The key under which `broker_configs` holds the settings of all brokers at once."""

Entity = tuple[tuple[str, str | None], ...]
"""Whom settings are for that are not a topic's, a broker's or a group's, as folder and name in Kafka's layout: a user
is `(("users", "alice"),)`, one of its clients `(("users", "alice"), ("clients", "app"))`. None is the default of a
kind."""


def user_entity(name: str) -> Entity:
    return (("users", name),)


class PartitionImage(Struct, frozen=True):
    """Who holds a partition. The epoch grows with every change of leader, not with changes of the in-sync replicas.

    While it is being moved, `replicas` has the old and the new brokers; `adding` and `removing` tell which is which.
    `late` are in-sync replicas that do not keep up, as their leader tells: kept for what they have (decision 0013).
    """

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    late: tuple[int, ...] = ()


def dead_or_lagging(partition: PartitionImage, alive: Container[int]) -> list[int]:
    """In-sync replicas that are dead or late beside a living leader: nobody is to count on them now."""
    if partition.leader not in alive:
        return []
    return [replica for replica in partition.isr if replica not in alive or replica in partition.late]


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
    """A broker that runs. Its epoch tells one registration from the next; a later one has a larger epoch."""

    id: int
    rack: str | None
    endpoints: tuple[Endpoint, ...]
    epoch: int = NO_BROKER_EPOCH
    incarnation: str = ""
    """Names its first data directory: who registers an id that is taken knows whether it was itself, before."""

    def endpoint(self, listener: str) -> Endpoint | None:
        """The endpoint with this listener's name."""
        for endpoint in self.endpoints:
            if endpoint.listener == listener:
                return endpoint
        return None


class ClusterImage(Struct, frozen=True):
    """Everything at one moment. The mappings are never changed in place.

    The mappings of topics share all they have in common with those of the picture before: a change costs what it
    changes, however many topics there are.
    """

    cluster_id: str = ""
    controller_id: int = NO_CONTROLLER
    controller_epoch: int = 0
    brokers: Mapping[int, BrokerImage] = {}
    topics: Mapping[str, TopicImage] = Map()
    names_by_id: Mapping[UUID, str] = Map()
    broker_configs: Mapping[str, Mapping[str, str]] = {}
    group_configs: Mapping[str, Mapping[str, str]] = {}
    client_metrics: Mapping[str, Mapping[str, str]] = {}
    """Subscriptions to the metrics of clients, by name."""
    entity_configs: Mapping[Entity, Mapping[str, str]] = Map()
    """Users, clients and addresses: quotas, and the SCRAM credentials of users. Only those that have any."""
    acls: Mapping[ResourcePattern, tuple[AclEntry, ...]] = Map()
    """Access control lists: the rules at each pattern that has any."""
    tokens: Mapping[str, DelegationToken] = Map()
    """Delegation tokens by id."""
    deleting: Mapping[str, TopicImage] = {}
    """Topics whose deletion was begun and is not complete, without what is known of leaders. Their names are taken."""

    def topic_by_id(self, topic_id: UUID) -> TopicImage | None:
        name = self.names_by_id.get(topic_id)
        return None if name is None else self.topics.get(name)

    def with_topics(self, written: Iterable[TopicImage], removed: Iterable[str] = ()) -> "ClusterImage":
        """This picture with some topics new or changed and others gone."""
        return self.change_topics(written, removed).new

    def change_topics(self, written: Iterable[TopicImage], removed: Iterable[str] = ()) -> "ImageChange":
        """The same with what it changes. A topic may be written as it is: then nothing has changed."""
        topics, names = _shared(self.topics).mutate(), _shared(self.names_by_id).mutate()
        changed, gone = [], []
        for name in removed:
            before = topics.pop(name, None)
            if before is not None:
                names.pop(before.topic_id, None)
                gone.append(before)
        for topic in written:
            before = topics.get(topic.name)
            if before == topic:
                continue
            if before is not None and before.topic_id != topic.topic_id:
                names.pop(before.topic_id, None)
                gone.append(before)
            topics[topic.name] = topic
            names[topic.topic_id] = topic.name
            changed.append(topic)
        if not (changed or gone):
            return ImageChange(self, self)
        new = replace(self, topics=topics.finish(), names_by_id=names.finish())
        return ImageChange(self, new, tuple(changed), tuple(gone))


def _shared(mapping: "Mapping[_K, _V]") -> "Map[_K, _V]":
    return mapping if isinstance(mapping, Map) else Map(mapping)


class ImageChange(Struct, frozen=True):
    """Two pictures, one after the other, and what differs between them.

    `written` are topics that are new or changed, as they are now; `removed` those that are gone or were replaced by
    another of the same name, as they were.
    """

    old: ClusterImage
    new: ClusterImage
    written: tuple[TopicImage, ...] = ()
    removed: tuple[TopicImage, ...] = ()
    entities: tuple[Entity, ...] = ()
    """Whose `entity_configs` are new, changed or gone."""
    acls: tuple[ResourcePattern, ...] = ()
    """The patterns whose rules are new, changed or gone."""

    @property
    def topics(self) -> bool:
        return bool(self.written or self.removed)

    @property
    def brokers(self) -> bool:
        return self.old.brokers is not self.new.brokers

    @property
    def controller(self) -> bool:
        old, new = self.old, self.new
        return (old.controller_id, old.controller_epoch) != (new.controller_id, new.controller_epoch)

    @property
    def broker_configs(self) -> bool:
        return self.old.broker_configs is not self.new.broker_configs

    @property
    def group_configs(self) -> bool:
        return self.old.group_configs is not self.new.group_configs

    @property
    def client_metrics(self) -> bool:
        return self.old.client_metrics is not self.new.client_metrics


def changes_between(old: ClusterImage, new: ClusterImage) -> ImageChange:
    """The change from one picture to another, found by looking at every topic: for pictures that were not made of
    each other. Topics that did not change have to be the same object in both."""
    entities = _keys_between(old.entity_configs, new.entity_configs)
    acls = _keys_between(old.acls, new.acls)
    if old.topics is new.topics:
        return ImageChange(old, new, entities=entities, acls=acls)
    before, after = old.topics, new.topics
    written = tuple(topic for name, topic in after.items() if before.get(name) is not topic)
    removed = tuple(
        topic
        for name, topic in before.items()
        if after.get(name) is not topic and (name not in after or after[name].topic_id != topic.topic_id)
    )
    return ImageChange(old, new, written, removed, entities, acls)


def _keys_between(old: Mapping[_K, _V], new: Mapping[_K, _V]) -> tuple[_K, ...]:
    """Those whose values are new, changed or gone."""
    if old is new:
        return ()
    return tuple(key for key in {**old, **new} if old.get(key) != new.get(key))
