"""The image as small JSON documents on paths, laid out as Kafka did in ZooKeeper.

    /cluster/id                                     {"version":"1","id":...}
    /brokers/topics/<topic>                         topic id and the replicas of each partition
    /brokers/topics/<topic>/partitions/<n>/state    leader, epoch and in-sync replicas of one partition
    /config/topics/<topic>                          the topic's overrides, only while there are any
    /config/brokers/<id> or <default>               dynamic broker settings
    /config/groups/<group>                          a group's own settings (its name with %-escapes)
    /latest_producer_id_block                       the last block of producer ids that was handed out

Pure: bytes in, images out. What is unknown is passed over, so that other documents can live beside these.
"""

from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote, unquote
from uuid import UUID

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ottla.cluster.image import CLUSTER_WIDE, NO_LEADER, ClusterImage, PartitionImage, TopicImage
from ottla.model.names import format_topic_id, parse_topic_id

CLUSTER_ID_PATH = "/cluster/id"
PRODUCER_IDS_PATH = "/latest_producer_id_block"
_TOPICS = "/brokers/topics/"
_TOPIC_CONFIGS = "/config/topics/"
_BROKER_CONFIGS = "/config/brokers/"
_GROUP_CONFIGS = "/config/groups/"
_DEFAULT_BROKER = "<default>"


class _ClusterId(Struct):
    id: str
    version: str = "1"


class _Topic(Struct):
    topic_id: str
    partitions: dict[str, tuple[int, ...]]
    adding_replicas: dict[str, tuple[int, ...]] = field(default_factory=dict)
    removing_replicas: dict[str, tuple[int, ...]] = field(default_factory=dict)
    version: int = 3


class _PartitionState(Struct):
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int = 0
    version: int = 1


class _Config(Struct):
    config: dict[str, str]
    version: int = 1


class ProducerIdBlock(Struct, frozen=True):
    """Producer ids from first to last, both included."""

    broker: int
    first: int
    last: int


class _ProducerIds(Struct):
    broker: int
    block_start: str
    block_end: str
    version: int = 1


def topic_path(topic: str) -> str:
    return _TOPICS + topic


def partition_path(topic: str, partition: int) -> str:
    return f"{_TOPICS}{topic}/partitions/{partition}/state"


def topic_config_path(topic: str) -> str:
    return _TOPIC_CONFIGS + topic


def group_config_path(group: str) -> str:
    return _GROUP_CONFIGS + quote(group, safe="")


def broker_config_path(broker: str) -> str:
    """`broker` is an id as text, or CLUSTER_WIDE."""
    return _BROKER_CONFIGS + (broker if broker != CLUSTER_WIDE else _DEFAULT_BROKER)


def cluster_id_document(cluster_id: str) -> bytes:
    return msgspec.json.encode(_ClusterId(id=cluster_id))


def topic_document(topic_id: UUID, partitions: Sequence[PartitionImage]) -> bytes:
    numbered = [(str(number), partition) for number, partition in enumerate(partitions)]
    return msgspec.json.encode(
        _Topic(
            topic_id=format_topic_id(topic_id),
            partitions={number: partition.replicas for number, partition in numbered},
            adding_replicas={number: partition.adding for number, partition in numbered if partition.adding},
            removing_replicas={number: partition.removing for number, partition in numbered if partition.removing},
        )
    )


def partition_document(partition: PartitionImage, controller_epoch: int = 0) -> bytes:
    """`controller_epoch` is noted for people who look for who wrote it; nothing depends on it."""
    return msgspec.json.encode(
        _PartitionState(
            leader=partition.leader,
            leader_epoch=partition.leader_epoch,
            isr=partition.isr,
            controller_epoch=controller_epoch,
        )
    )


def config_document(configs: Mapping[str, str]) -> bytes:
    return msgspec.json.encode(_Config(config=dict(configs)))


def producer_ids_document(block: ProducerIdBlock) -> bytes:
    return msgspec.json.encode(
        _ProducerIds(broker=block.broker, block_start=str(block.first), block_end=str(block.last))
    )


def read_producer_ids(document: bytes) -> ProducerIdBlock:
    block = msgspec.json.decode(document, type=_ProducerIds)
    return ProducerIdBlock(block.broker, int(block.block_start), int(block.block_end))


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
    """The image after these documents were written (None: deleted). Costs what was written, not what exists."""
    edits: dict[str, _TopicEdit] = {}
    broker_configs: dict[str, Mapping[str, str]] | None = None
    group_configs: dict[str, Mapping[str, str]] | None = None
    for path, data in written:
        if path.startswith(_TOPICS):
            _note_topic(edits, path.removeprefix(_TOPICS), data)
        elif path.startswith(_TOPIC_CONFIGS):
            edit = edits.setdefault(path.removeprefix(_TOPIC_CONFIGS), _TopicEdit())
            edit.config, edit.config_written = data, True
        elif path.startswith(_BROKER_CONFIGS):
            broker_configs = dict(image.broker_configs) if broker_configs is None else broker_configs
            broker = path.removeprefix(_BROKER_CONFIGS)
            broker_configs.pop(key := CLUSTER_WIDE if broker == _DEFAULT_BROKER else broker, None)
            if data is not None:
                broker_configs[key] = msgspec.json.decode(data, type=_Config).config
        elif path.startswith(_GROUP_CONFIGS):
            group_configs = dict(image.group_configs) if group_configs is None else group_configs
            group_configs.pop(key := unquote(path.removeprefix(_GROUP_CONFIGS)), None)
            if data is not None:
                group_configs[key] = msgspec.json.decode(data, type=_Config).config
        elif path == CLUSTER_ID_PATH and data is not None:
            image = replace(image, cluster_id=msgspec.json.decode(data, type=_ClusterId).id)
    if broker_configs is not None:
        image = replace(image, broker_configs=broker_configs)
    if group_configs is not None:
        image = replace(image, group_configs=group_configs)
    if not edits:
        return image
    changed = {name: _edited(name, edit, image.topics.get(name)) for name, edit in edits.items()}
    return image.with_topics(
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


def _edited(name: str, edit: _TopicEdit, before: TopicImage | None) -> TopicImage | None:
    """The topic after these edits; None when it is gone, or when nothing says yet that it exists."""
    if edit.topic_written:
        if edit.topic is None:
            return None
        document = msgspec.json.decode(edit.topic, type=_Topic)
        topic_id = parse_topic_id(document.topic_id)
        held = [_held(document, str(number)) for number in range(len(document.partitions))]
        if before is not None and before.topic_id != topic_id:
            before = None
    elif before is not None:
        topic_id, held = before.topic_id, [(each.replicas, each.adding, each.removing) for each in before.partitions]
    else:
        return None
    known = before.partitions if before is not None else ()
    partitions = tuple(
        _partition(edit.states.get(number), who, known[number] if number < len(known) else None)
        for number, who in enumerate(held)
    )
    configs = before.configs if before is not None else {}
    if edit.config_written:
        configs = {} if edit.config is None else msgspec.json.decode(edit.config, type=_Config).config
    return TopicImage(name, topic_id, partitions, configs)


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
        return PartitionImage(state.leader, state.leader_epoch, held[0], state.isr, *held[1:])
    if before is None:
        return PartitionImage(NO_LEADER, 0, held[0], (), *held[1:])
    replicas, adding, removing = held
    if (before.replicas, before.adding, before.removing) == held:
        return before
    return replace(before, replicas=replicas, adding=adding, removing=removing)
