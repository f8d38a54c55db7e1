"""How documents lie in ZooKeeper, and how a commit becomes requests. Pure.

Documents are nodes on their own paths; nodes without data only hold others. Beside them:

    /brokers/topics/<topic>/id-<id>   there as long as the topic is this one and not another of the same name
    /changes/change-<number>   one per commit: the documents it wrote, with their versions
    /brokers/ids/<id>          a broker that runs (ephemeral)
    /controller                the controller (ephemeral), with its epoch
    /controller_epoch          the last controller's epoch; its version is what a deposed controller fails on
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

import msgspec
from msgspec import Struct

from ottla.cluster.documents import partition_of, topic_concerned, topic_document, topic_id_in, topic_of
from ottla.cluster.image import NO_CONTROLLER, BrokerImage, ClusterImage, Endpoint
from ottla.cluster.known import settings_believed_absent
from ottla.cluster.store import ABSENT, Write
from ottla.cluster.zookeeper.client import Check, Create, Delete, Operation, Set
from ottla.model.names import format_topic_id

CHANGES = "/changes"
BROKERS = "/brokers/ids"
TOPICS = "/brokers/topics"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
_CHANGE = CHANGES + "/change-"
_DIGITS = 10

HOLDERS = (
    "/cluster",
    "/brokers",
    BROKERS,
    TOPICS,
    "/config",
    "/config/topics",
    "/config/brokers",
    "/config/groups",
    "/config/client-metrics",
    "/config/users",
    "/config/clients",
    "/config/ips",
    "/delegation_token",
    "/delegation_token/tokens",
    CHANGES,
    "/kafka-acl-changes",
    "/kafka-acl-extended-changes",
)
"""Nodes that have to be there, each behind the one that holds it."""

ACL_CHANGES = ("/kafka-acl-changes", "/kafka-acl-extended-changes")
"""Where Kafka's own tools tell which access control lists they have changed."""

NOT_DOCUMENTS = frozenset({BROKERS, CHANGES, CONTROLLER, CONTROLLER_EPOCH, "/zookeeper", *ACL_CHANGES})

OPERATIONS_MAX = 1_500
BYTES_MAX = 700_000
"""Of the requests of one commit; a server takes a little more than a million by default (jute.maxbuffer)."""
_OPERATION_BYTES = 60


class Change(NamedTuple):
    """What a commit wrote: path, data (None: deleted) and the version the document has since."""

    writes: tuple[tuple[str, bytes | None, int], ...]


class _Change(Struct):
    writes: list[tuple[str, str | None, int]]
    version: int = 1


class _Broker(Struct):
    endpoints: list[str]
    listener_security_protocol_map: dict[str, str]
    rack: str | None = None
    incarnation: str = ""
    version: int = 5


class _Controller(Struct):
    brokerid: int
    epoch: int
    version: int = 2


def holders_of(path: str) -> Iterator[str]:
    """The nodes above a path, the highest first."""
    parts = path.strip("/").split("/")
    return ("/" + "/".join(parts[:depth]) for depth in range(1, len(parts)))


# -- the change log


def change_operation(writes: Iterable[Write]) -> Create:
    noted = [(path, None if data is None else data.decode(), expected + 1) for path, data, expected in writes]
    return Create(_CHANGE, msgspec.json.encode(_Change(noted)), sequential=True)


def change_of(writes: Iterable[Write]) -> Change:
    return Change(tuple((path, data, expected + 1) for path, data, expected in writes))


def read_change(data: bytes) -> Change:
    noted = msgspec.json.decode(data, type=_Change).writes
    return Change(tuple((path, None if text is None else text.encode(), version) for path, text, version in noted))


def change_path(number: int) -> str:
    return f"{_CHANGE}{number:0{_DIGITS}d}"


def change_numbers(names: Iterable[str]) -> list[int]:
    return sorted(int(name[-_DIGITS:]) for name in names)


# -- brokers and the controller


def broker_path(broker_id: int) -> str:
    return f"{BROKERS}/{broker_id}"


def broker_document(broker: BrokerImage) -> bytes:
    return msgspec.json.encode(
        _Broker(
            endpoints=[f"{each.listener}://{_bracketed(each.host)}:{each.port}" for each in broker.endpoints],
            listener_security_protocol_map={each.listener: each.security_protocol for each in broker.endpoints},
            rack=broker.rack,
            incarnation=broker.incarnation,
        )
    )


def read_broker(broker_id: int, data: bytes, epoch: int) -> BrokerImage:
    document = msgspec.json.decode(data, type=_Broker)
    endpoints = tuple(_endpoint(text, document.listener_security_protocol_map) for text in document.endpoints)
    return BrokerImage(broker_id, document.rack, endpoints, epoch, document.incarnation)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _endpoint(text: str, protocols: dict[str, str]) -> Endpoint:
    listener, _, address = text.partition("://")
    host, _, port = address.rpartition(":")
    return Endpoint(listener, host.strip("[]"), int(port), protocols.get(listener, "PLAINTEXT"))


def controller_document(broker_id: int, epoch: int) -> bytes:
    return msgspec.json.encode(_Controller(broker_id, epoch))


def read_controller(data: bytes) -> tuple[int, int]:
    """The controller's id and epoch."""
    document = msgspec.json.decode(data, type=_Controller)
    return document.brokerid, document.epoch


def read_epoch(data: bytes) -> int:
    return int(data or b"0")


NOBODY = (NO_CONTROLLER, 0)


# -- commits


def topic_ids(writes: Iterable[Write], image: ClusterImage) -> dict[str, UUID]:
    """Of the topics that these writes are about, as far as they are known or are created by them."""
    found: dict[str, UUID] = {}
    for path, data, expected in writes:
        name = topic_concerned(path)
        if name is None:
            continue
        if topic_of(path) is not None and data is not None and expected == ABSENT:
            found[name] = topic_id_in(data)
        elif name not in found:
            known = image.topics.get(name) or image.deleting.get(name)
            if known is not None:
                found[name] = known.topic_id
    return found


def operations(writes: Sequence[Write], ids: Mapping[str, UUID]) -> list[tuple[Operation, str]]:
    """What writes these documents, in an order that ZooKeeper can follow; each with the document it is about.

    Versions begin anew when a topic is deleted and created again, so a late write for the old one could pass for one
    for the new one. Therefore the topic's id is checked as well.
    """
    created = {topic_of(write.path) for write in writes if write.data is not None and write.expected == ABSENT}
    done: list[tuple[Operation, str]] = []
    checked: set[str] = set()
    for write in writes:
        name = topic_concerned(write.path)
        if name is not None and name in ids and name not in created and name not in checked:
            checked.add(name)
            done.append((Check(_id_path(name, ids[name]), 0), write.path))
    for path in settings_believed_absent(writes):
        done += [(Create(path, b""), path), (Delete(path), path)]  # what ZooKeeper has for "is not there"
    for write in sorted(writes, key=_turn):
        done += [(operation, write.path) for operation in _operations(write, ids)]
    return done


def _id_path(topic: str, topic_id: UUID) -> str:
    return f"{TOPICS}/{topic}/id-{format_topic_id(topic_id)}"


def _turn(write: Write) -> int:
    """What holds others is created before them and deleted after them."""
    is_topic = topic_of(write.path) is not None
    if write.data is None:
        return 3 if is_topic else 2
    return 0 if is_topic else 1


def _operations(write: Write, ids: Mapping[str, UUID]) -> Iterator[Operation]:
    path, data, expected = write
    holder, topic = path.rpartition("/")[0], topic_of(path)
    if data is None:
        if expected == ABSENT:
            return
        if topic is not None:
            yield Delete(f"{path}/partitions")
            yield Delete(_id_path(topic, ids[topic]))
        yield Delete(path, expected)
        if partition_of(path) is not None:
            yield Delete(holder)
    elif expected == ABSENT:
        if partition_of(path) is not None:
            yield Create(holder, b"")
        yield Create(path, data)
        if topic is not None:
            yield Create(_id_path(topic, ids[topic]), b"")
            yield Create(f"{path}/partitions", b"")
    else:
        yield Set(path, data, expected)


def pieces(writes: Sequence[Write], image: ClusterImage) -> list[list[Write]]:
    """A commit as requests that ZooKeeper takes: one, or if it is too big several that may be cut short anywhere.

    Then topics come before the states of their partitions: a partition without one has no leader until the controller
    gives it one. A topic that is deleted is first marked so, which takes it out of the image; its states follow, and
    its document last, by whoever is the controller if need be.
    """
    if _fits(writes):
        return [list(writes)]
    marks, rest = [], []
    for write in writes:
        topic = topic_of(write.path)
        known = image.topics.get(topic) if topic is not None and write.data is None else None
        if known is None:
            rest.append(write)
            continue
        marked = topic_document(known.topic_id, known.partitions, deleting=True)
        marks.append(Write(write.path, marked, write.expected))
        rest.append(write._replace(expected=write.expected + 1))
    return [*_cut(marks), *_cut(sorted(rest, key=_turn))]


def too_large(write: Write) -> bool:
    """A document that would not fit even alone."""
    return _weight([write])[1] > BYTES_MAX


def _fits(writes: Iterable[Write]) -> bool:
    count, size = _weight(writes)
    return count <= OPERATIONS_MAX and size <= BYTES_MAX


def _cut(writes: Iterable[Write]) -> Iterator[list[Write]]:
    piece: list[Write] = []
    count = size = 0
    for write in writes:
        more_count, more_size = _weight([write])
        if piece and (count + more_count > OPERATIONS_MAX or size + more_size > BYTES_MAX):
            yield piece
            piece, count, size = [], 0, 0
        piece.append(write)
        count, size = count + more_count, size + more_size
    if piece:
        yield piece


def _weight(writes: Iterable[Write]) -> tuple[int, int]:
    """Operations and bytes, each document counted twice: it is in the change log as well, with its quotes escaped."""
    count = size = 0
    for path, data, _ in writes:
        count += 3
        size += 3 * len(path) + 2 * _OPERATION_BYTES + (0 if data is None else 2 * len(data) + data.count(b'"'))
    return count, size
