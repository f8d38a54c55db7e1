"""Where the leader is, told with the refusal: a client then goes there without asking for metadata first (KIP-951).

A refused partition carries its leader's id and epoch, the response the endpoints of these leaders on the listener that
the client came through. Both are tagged fields, so they are packed here for the hand-packed responses.
"""

import struct
from collections.abc import Iterable
from typing import NamedTuple

from ottla.broker.handlers.context import Broker, Call
from ottla.broker.handlers.fetching.sessions import TopicKey
from ottla.cluster.image import NO_LEADER, ClusterImage
from ottla.model.errors import ErrorCode
from ottla.protocol.varint import unsigned

_LEADER = struct.Struct(">ii")
_INT32 = struct.Struct(">i")
_NO_TAGS = b"\x00"
_NULL_STRING = b"\x00"


class LeaderHint(NamedTuple):
    """Who leads a partition, and where that broker is; without a host it is not known how to reach it."""

    leader_id: int
    leader_epoch: int
    host: str | None = None
    port: int = -1
    rack: str | None = None


def leader_hint(image: ClusterImage, topic: str, partition: int, listener: str) -> LeaderHint | None:
    """What the metadata says of a partition's leader; None when there is none."""
    known = image.topics.get(topic)
    if known is None or not 0 <= partition < len(known.partitions):
        return None
    state = known.partitions[partition]
    if state.leader == NO_LEADER:
        return None
    broker = image.brokers.get(state.leader)
    endpoint = broker.endpoint(listener) if broker is not None else None
    if broker is None or endpoint is None:
        return LeaderHint(state.leader, state.leader_epoch)
    return LeaderHint(state.leader, state.leader_epoch, endpoint.host, endpoint.port, broker.rack)


def hint_for_error(broker: Broker, call: Call, code: int, topic: TopicKey, partition: int) -> LeaderHint | None:
    """What to tell with an error: where the leader is, if the client could not know or knows an old one."""
    if code not in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
        return None
    image = broker.metadata.image
    name = topic[0] or image.names_by_id.get(topic[1], "")
    return leader_hint(image, name, partition, call.session.listener)


def pack_leader(hint: LeaderHint, tag: int) -> bytes:
    """The tagged field of a partition, without the count of fields before it."""
    body = _LEADER.pack(hint.leader_id, hint.leader_epoch) + _NO_TAGS
    return unsigned(tag) + unsigned(len(body)) + body


def pack_endpoints(hints: Iterable[LeaderHint]) -> bytes:
    """The tagged fields of a response: where these leaders are, each once."""
    endpoints = {hint.leader_id: hint for hint in hints if hint.host is not None}
    if not endpoints:
        return _NO_TAGS
    body = unsigned(len(endpoints) + 1) + b"".join(_endpoint(hint) for hint in endpoints.values())
    return b"\x01\x00" + unsigned(len(body)) + body


def _endpoint(hint: LeaderHint) -> bytes:
    rack = _string(hint.rack) if hint.rack is not None else _NULL_STRING
    return _INT32.pack(hint.leader_id) + _string(hint.host or "") + _INT32.pack(hint.port) + rack + _NO_TAGS


def _string(text: str) -> bytes:
    encoded = text.encode()
    return unsigned(len(encoded) + 1) + encoded
