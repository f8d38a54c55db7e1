"""The image as small JSON documents on paths, laid out as Kafka did in ZooKeeper.

    /cluster/id                                     {"version":"1","id":...}
    /brokers/topics/<topic>                         topic id and the replicas of each partition
    /brokers/topics/<topic>/partitions/<n>/state    leader, epoch and in-sync replicas of one partition
    /config/topics/<topic>                          the topic's overrides, only while there are any
    /config/brokers/<id> or <default>               dynamic broker settings
    /config/groups/<group>                          a group's own settings (its name with %-escapes)
    /config/client-metrics/<subscription>           which metrics clients push, in the same form
    /config/users/<user>, /config/clients/<client>, /config/ips/<address>, /config/users/<user>/clients/<client>
                                                    quotas, and SCRAM credentials of users; <default> is the default
    /kafka-acl, /kafka-acl-extended                 access control lists (acl_documents.py)
    /latest_producer_id_block                       the last block of producer ids that was handed out
    /brokers/ids/<id>                               a broker that runs: only in ZooKeeper, only while it runs
    /controller, /controller_epoch                  who is the controller, and how many there were: only in ZooKeeper

Pure: bytes in, images out. What is unknown is passed over, so that other documents can live beside these.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote, unquote
from uuid import UUID

import msgspec
from immutables import Map
from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import replace

from ottla.cluster.acl_documents import ACL_PATHS, apply_acl_documents
from ottla.cluster.image import (
    CLUSTER_WIDE,
    NO_LEADER,
    ClusterImage,
    Entity,
    ImageChange,
    PartitionImage,
    TopicImage,
)
from ottla.cluster.token_documents import TOKENS, apply_token_documents
from ottla.model.names import format_topic_id, parse_topic_id

logger = logging.getLogger(__name__)

CLUSTER_ID_PATH = "/cluster/id"
PRODUCER_IDS_PATH = "/latest_producer_id_block"
_TOPICS = "/brokers/topics/"
_TOPIC_CONFIGS = "/config/topics/"
_BROKER_CONFIGS = "/config/brokers/"
_GROUP_CONFIGS = "/config/groups/"
_CLIENT_METRICS = "/config/client-metrics/"
_CONFIGS = "/config/"
_NAMED = {_GROUP_CONFIGS: "group_configs", _CLIENT_METRICS: "client_metrics"}
"""Documents of settings by name, and where they stand in the image."""
_ENTITY_CONFIGS = ("/config/users/", "/config/clients/", "/config/ips/")
_DEFAULT = "<default>"


class _ClusterId(Struct):
    id: str
    version: str = "1"


class _Topic(Struct):
    topic_id: str
    partitions: dict[str, tuple[int, ...]]
    adding_replicas: dict[str, tuple[int, ...]] = field(default_factory=dict)
    removing_replicas: dict[str, tuple[int, ...]] = field(default_factory=dict)
    version: int = 3
    deleting: bool | UnsetType = UNSET


class _PartitionState(Struct):
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int = 0
    version: int = 1
    late: tuple[int, ...] | UnsetType = UNSET


class _Config(Struct):
    config: dict[str, str]
    version: int = 1


class ProducerIdBlock(Struct, frozen=True):
    """Producer ids from first to last, both included."""

    broker: int
    first: int
    last: int
    mirrored: int = -1
    """Ids up to this one are in mirrored logs of another cluster: they are not given out any more."""


class _ProducerIds(Struct):
    broker: int
    block_start: str
    block_end: str
    version: int = 1
    mirrored: str | UnsetType = UNSET


_decode_topic = msgspec.json.Decoder(_Topic).decode


def topic_path(topic: str) -> str:
    return _TOPICS + topic


def partition_path(topic: str, partition: int) -> str:
    return f"{_TOPICS}{topic}/partitions/{partition}/state"


def topic_config_path(topic: str) -> str:
    return _TOPIC_CONFIGS + topic


def group_config_path(group: str) -> str:
    return _GROUP_CONFIGS + quote(group, safe="")


def client_metrics_path(subscription: str) -> str:
    return _CLIENT_METRICS + quote(subscription, safe="")


def entity_config_path(entity: Entity) -> str:
    return _CONFIGS + "/".join(f"{kind}/{_DEFAULT if name is None else _escaped(name)}" for kind, name in entity)


def _escaped(name: str) -> str:
    """As Kafka escapes it; and ZooKeeper has no nodes called `.` and `..`."""
    return quote(name, safe="").replace("~", "%7E").replace(".", "." if name.strip(".") else "%2E")


def entity_of(path: str) -> Entity | None:
    """Whose settings are at this path; None for all other documents."""
    if not path.startswith(_ENTITY_CONFIGS):
        return None
    parts = path.removeprefix(_CONFIGS).split("/")
    if len(parts) % 2 or (len(parts) == 4 and parts[2] != "clients") or len(parts) > 4:
        return None
    names = (None if name == _DEFAULT else unquote(name) for name in parts[1::2])
    return tuple(zip(parts[::2], names, strict=True))


def broker_config_path(broker: str) -> str:
    """`broker` is an id as text, or CLUSTER_WIDE."""
    return _BROKER_CONFIGS + (broker if broker != CLUSTER_WIDE else _DEFAULT)


def cluster_id_document(cluster_id: str) -> bytes:
    return msgspec.json.encode(_ClusterId(id=cluster_id))


def read_cluster_id(document: bytes) -> str:
    return msgspec.json.decode(document, type=_ClusterId).id


def topic_document(topic_id: UUID, partitions: Sequence[PartitionImage], *, deleting: bool = False) -> bytes:
    """`deleting` takes the topic out of the image while its other documents are still being removed."""
    numbered = [(str(number), partition) for number, partition in enumerate(partitions)]
    return msgspec.json.encode(
        _Topic(
            topic_id=format_topic_id(topic_id),
            partitions={number: partition.replicas for number, partition in numbered},
            adding_replicas={number: partition.adding for number, partition in numbered if partition.adding},
            removing_replicas={number: partition.removing for number, partition in numbered if partition.removing},
            deleting=deleting or UNSET,
        )
    )


def partitions_in(topic_document: bytes) -> int:
    """How many partitions a topic's document speaks of."""
    return len(_decode_topic(topic_document).partitions)


def topic_id_in(topic_document: bytes) -> UUID:
    """The id that a topic's document gives it."""
    return parse_topic_id(_decode_topic(topic_document).topic_id)


def topic_concerned(path: str) -> str | None:
    """The topic that a document belongs to: its own, the state of a partition, its settings; None for all others."""
    if path.startswith(_TOPIC_CONFIGS):
        return path.removeprefix(_TOPIC_CONFIGS)
    return path.removeprefix(_TOPICS).partition("/")[0] if path.startswith(_TOPICS) else None


def topic_of(path: str) -> str | None:
    """The topic whose own document is at this path; None for all other documents."""
    name = path.removeprefix(_TOPICS)
    return name if name != path and "/" not in name else None


def partition_of(path: str) -> tuple[str, int] | None:
    """The partition whose state is at this path; None for all other documents."""
    parts = path.removeprefix(_TOPICS).split("/")
    if not path.startswith(_TOPICS) or len(parts) != 4 or parts[1] != "partitions" or parts[3] != "state":
        return None
    return parts[0], int(parts[2])


def partition_document(partition: PartitionImage, controller_epoch: int = 0) -> bytes:
    """`controller_epoch` is noted for people who look for who wrote it; nothing depends on it."""
    return msgspec.json.encode(
        _PartitionState(
            leader=partition.leader,
            leader_epoch=partition.leader_epoch,
            isr=partition.isr,
            controller_epoch=controller_epoch,
            late=partition.late or UNSET,
        )
    )


def config_document(configs: Mapping[str, str]) -> bytes:
    return msgspec.json.encode(_Config(config=dict(configs)))


def producer_ids_document(block: ProducerIdBlock) -> bytes:
    return msgspec.json.encode(
        _ProducerIds(
            broker=block.broker,
            block_start=str(block.first),
            block_end=str(block.last),
            mirrored=str(block.mirrored) if block.mirrored >= 0 else UNSET,
        )
    )


def read_producer_ids(document: bytes) -> ProducerIdBlock:
    block = msgspec.json.decode(document, type=_ProducerIds)
    mirrored = -1 if block.mirrored is UNSET else int(block.mirrored)
    return ProducerIdBlock(block.broker, int(block.block_start), int(block.block_end), mirrored)


class _TopicEdit:
    """The documents of one topic that were written together; None stands for a document that was deleted."""

    __slots__ = ("config", "config_written", "states", "topic", "topic_written")

    def __init__(self) -> None:
        self.topic: bytes | None = None
        self.topic_written = False
        self.config: bytes | None = None
        self.config_written = False
        self.states: dict[int, bytes | None] = {}


def apply_documents(image: ClusterImage, written: Iterable[tuple[str, bytes | None]]) -> ClusterImage:
    """The image after these documents were written (None: deleted)."""
    return change_of_documents(image, written).new


def change_of_documents(image: ClusterImage, written: Iterable[tuple[str, bytes | None]]) -> ImageChange:
    """The same with what it changes. Costs what was written, not what exists."""
    edits: dict[str, _TopicEdit] = {}
    broker_edits: dict[str, bytes | None] = {}
    named_edits: dict[str, dict[str, bytes | None]] = {}
    entity_edits: dict[Entity, bytes | None] = {}
    acl_edits: dict[str, bytes | None] = {}
    token_edits: dict[str, bytes | None] = {}
    before = image
    for path, data in written:
        if path.startswith(_TOPICS):
            _note_topic(edits, path.removeprefix(_TOPICS), data)
        elif path.startswith(_TOPIC_CONFIGS):
            edit = edits.setdefault(path.removeprefix(_TOPIC_CONFIGS), _TopicEdit())
            edit.config, edit.config_written = data, True
        elif path.startswith(_BROKER_CONFIGS):
            broker = path.removeprefix(_BROKER_CONFIGS)
            broker_edits[CLUSTER_WIDE if broker == _DEFAULT else broker] = data
        elif (prefix := path[: path.find("/", len(_CONFIGS)) + 1]) in _NAMED:
            named_edits.setdefault(prefix, {})[unquote(path.removeprefix(prefix))] = data
        elif (entity := entity_of(path)) is not None:
            entity_edits[entity] = data
        elif path.startswith(ACL_PATHS):
            acl_edits[path] = data
        elif path.startswith(TOKENS):
            token_edits[path] = data
        elif path == CLUSTER_ID_PATH and data is not None:
            image = replace(image, cluster_id=read_cluster_id(data))
    if broker_edits:
        image = replace(image, broker_configs=_changed_configs(image.broker_configs, broker_edits))
    for prefix, named in named_edits.items():
        attribute = _NAMED[prefix]
        image = replace(image, **{attribute: _changed_configs(getattr(image, attribute), named)})
    entities: tuple[Entity, ...] = ()
    if entity_edits:
        image, entities = _change_entities(image, entity_edits)
    acls, patterns = apply_acl_documents(image.acls, acl_edits)
    if patterns or token_edits:
        image = replace(image, acls=acls, tokens=apply_token_documents(image.tokens, token_edits))
    change = _change_topics(image, edits) if edits else ImageChange(before, image)
    return replace(change, old=before, entities=entities, acls=patterns)


def _changed_configs(
    before: Mapping[str, Mapping[str, str]], edits: Mapping[str, bytes | None]
) -> dict[str, Mapping[str, str]]:
    after = {name: configs for name, configs in before.items() if name not in edits}
    for name, data in edits.items():
        if data is not None:
            after[name] = msgspec.json.decode(data, type=_Config).config
    return after


def _change_entities(
    image: ClusterImage, edits: Mapping[Entity, bytes | None]
) -> tuple[ClusterImage, tuple[Entity, ...]]:
    """A document without settings only holds others, and is as good as none."""
    configs = image.entity_configs
    mutation = (configs if isinstance(configs, Map) else Map(configs)).mutate()
    changed = []
    for entity, data in edits.items():
        now = {} if data is None else _entity_settings(entity, data)
        if now == mutation.pop(entity, {}):
            if now:
                mutation[entity] = now
            continue
        changed.append(entity)
        if now:
            mutation[entity] = now
    return (replace(image, entity_configs=mutation.finish()), tuple(changed)) if changed else (image, ())


def _entity_settings(entity: Entity, data: bytes) -> dict[str, str]:
    """Tools write these in ZooKeeper themselves, so anything may stand there; no broker stops for it."""
    try:
        return msgspec.json.decode(data, type=_Config).config
    except msgspec.DecodeError as error:
        named = ", ".join(f"{kind} {name or '<default>'}" for kind, name in entity)
        logger.error("The settings of %s cannot be read and count as none: %s", named, error)  # noqa: TRY400
        return {}


def _change_topics(image: ClusterImage, edits: Mapping[str, _TopicEdit]) -> ImageChange:
    deleting = dict(image.deleting)
    changed: dict[str, TopicImage | None] = {}
    for name, edit in edits.items():
        if edit.topic_written:
            document = None if edit.topic is None else _decode_topic(edit.topic)
            deleting.pop(name, None)
            if document is not None and document.deleting is True:
                deleting[name] = _written(name, document, _TopicEdit(), None)
                document = None
            changed[name] = None if document is None else _written(name, document, edit, image.topics.get(name))
        else:
            changed[name] = _edited(edit, image.topics.get(name))
    if deleting != image.deleting:
        image = replace(image, deleting=deleting)
    return image.change_topics(
        written=(topic for topic in changed.values() if topic is not None),
        removed=(name for name, topic in changed.items() if topic is None),
    )


def _note_topic(edits: dict[str, _TopicEdit], rest: str, data: bytes | None) -> None:
    parts = rest.split("/")
    edit = edits.setdefault(parts[0], _TopicEdit())
    if len(parts) == 1:
        edit.topic, edit.topic_written = data, True
    elif len(parts) == 4 and parts[1] == "partitions" and parts[3] == "state":
        edit.states[int(parts[2])] = data


def _written(name: str, document: _Topic, edit: _TopicEdit, before: TopicImage | None) -> TopicImage:
    """The topic as its document, and what was written with it, say."""
    topic_id = parse_topic_id(document.topic_id)
    if before is not None and before.topic_id != topic_id:
        before = None
    known = before.partitions if before is not None else ()
    partitions = tuple(
        _partition(
            edit.states.get(number), _held(document, str(number)), known[number] if number < len(known) else None
        )
        for number in range(len(document.partitions))
    )
    return TopicImage(name, topic_id, partitions, _configs(edit, before))


def _edited(edit: _TopicEdit, before: TopicImage | None) -> TopicImage | None:
    """The topic with some states or its settings changed; None when nothing says (yet, or any more) that it exists."""
    if before is None:
        return None
    partitions = list(before.partitions)
    for number, state in edit.states.items():
        if number < len(partitions):
            known = partitions[number]
            partitions[number] = _partition(state, (known.replicas, known.adding, known.removing), known)
    return TopicImage(before.name, before.topic_id, tuple(partitions), _configs(edit, before))


def _configs(edit: _TopicEdit, before: TopicImage | None) -> Mapping[str, str]:
    if edit.config_written:
        return {} if edit.config is None else msgspec.json.decode(edit.config, type=_Config).config
    return before.configs if before is not None else {}


_Held = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""Replicas of a partition, and which of them are being added and removed."""


def _held(document: _Topic, number: str) -> _Held:
    return (
        document.partitions[number],
        document.adding_replicas.get(number, ()),
        document.removing_replicas.get(number, ()),
    )


_decode_state = msgspec.json.Decoder(_PartitionState).decode


def _partition(document: bytes | None, held: _Held, before: PartitionImage | None) -> PartitionImage:
    if document is not None:
        state = _decode_state(document)
        return PartitionImage(state.leader, state.leader_epoch, held[0], state.isr, *held[1:], late=state.late or ())
    if before is None:
        return PartitionImage(NO_LEADER, 0, held[0], (), *held[1:])
    replicas, adding, removing = held
    if (before.replicas, before.adding, before.removing) == held:
        return before
    return replace(before, replicas=replicas, adding=adding, removing=removing)
