"""Records of `__consumer_offsets` about groups of the consumer protocol (KIP-848): types 3, 5 to 8 and 16.

A key is the record type and plain strings; a value is its version (0, the only one) and a flexible message. Type 4,
which Kafka up to 4.0 wrote, is not needed any more and not interpreted.
"""

import struct
from typing import ClassVar, NamedTuple
from uuid import UUID

import msgspec

from ottla.protocol import codec
from ottla.protocol.coordinator_records import STRING_BYTES_MAX
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.schema import NO_UUID, Field, Message, TopLevel

VALUE_VERSION = 0
_INT16 = struct.Struct(">h")


class GroupEpochKey(NamedTuple):
    group: str


class MemberKey(NamedTuple):
    group: str
    member: str


class TargetEpochKey(NamedTuple):
    group: str


class TargetKey(NamedTuple):
    group: str
    member: str


class CurrentKey(NamedTuple):
    group: str
    member: str


class RegexKey(NamedTuple):
    group: str
    regex: str


ConsumerKey = GroupEpochKey | MemberKey | TargetEpochKey | TargetKey | CurrentKey | RegexKey


class GroupEpochValue(TopLevel):
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("epoch", "int32", 0),
        Field("metadata_hash", "int64", 0, tag=0),
    )
    epoch: int = 0
    metadata_hash: int = 0


class ClassicProtocol(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("metadata", "bytes", 0),
    )
    name: str = ""
    metadata: bytes = b""


class ClassicMemberMetadata(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("session_timeout_ms", "int32", 0),
        Field("supported_protocols", ClassicProtocol, 0, array=True),
    )
    session_timeout_ms: int = 0
    supported_protocols: list[ClassicProtocol] = msgspec.field(default_factory=list[ClassicProtocol])


class MemberValue(TopLevel):
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("instance_id", "string", 0, nullable_since=0),
        Field("rack_id", "string", 0, nullable_since=0),
        Field("client_id", "string", 0),
        Field("client_host", "string", 0),
        Field("subscribed_topic_names", "string", 0, array=True),
        Field("subscribed_topic_regex", "string", 0, nullable_since=0),
        Field("rebalance_timeout_ms", "int32", 0),
        Field("server_assignor", "string", 0, nullable_since=0),
        Field("classic_member_metadata", ClassicMemberMetadata, 0, nullable_since=0, tag=0),
    )
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = msgspec.field(default_factory=list[str])
    subscribed_topic_regex: str | None = None
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic_member_metadata: ClassicMemberMetadata | None = None


class TargetEpochValue(TopLevel):
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("assignment_epoch", "int32", 0),)
    assignment_epoch: int = 0


class TopicPartitions(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 0),
        Field("partitions", "int32", 0, array=True),
    )
    topic_id: UUID = NO_UUID
    partitions: list[int] = msgspec.field(default_factory=list[int])


class TargetValue(TopLevel):
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("topic_partitions", TopicPartitions, 0, array=True),)
    topic_partitions: list[TopicPartitions] = msgspec.field(default_factory=list[TopicPartitions])


class CurrentValue(TopLevel):
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_epoch", "int32", 0),
        Field("previous_member_epoch", "int32", 0),
        Field("state", "int8", 0),
        Field("assigned_partitions", TopicPartitions, 0, array=True),
        Field("partitions_pending_revocation", TopicPartitions, 0, array=True),
    )
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    assigned_partitions: list[TopicPartitions] = msgspec.field(default_factory=list[TopicPartitions])
    partitions_pending_revocation: list[TopicPartitions] = msgspec.field(default_factory=list[TopicPartitions])


class RegexValue(TopLevel):
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", "string", 0, array=True),
        Field("version", "int64", 0),
        Field("timestamp", "int64", 0),
    )
    topics: list[str] = msgspec.field(default_factory=list[str])
    version: int = 0
    timestamp: int = 0


ConsumerValue = GroupEpochValue | MemberValue | TargetEpochValue | TargetValue | CurrentValue | RegexValue

_KINDS: dict[int, tuple[type[ConsumerKey], type[ConsumerValue]]] = {
    3: (GroupEpochKey, GroupEpochValue),
    5: (MemberKey, MemberValue),
    6: (TargetEpochKey, TargetEpochValue),
    7: (TargetKey, TargetValue),
    8: (CurrentKey, CurrentValue),
    16: (RegexKey, RegexValue),
}
_TYPES: dict[type[ConsumerKey], int] = {kind[0]: record_type for record_type, kind in _KINDS.items()}


def encode_consumer_key(key: ConsumerKey) -> bytes:
    parts = [_INT16.pack(_TYPES[type(key)])]
    for text in key:
        content = text.encode()
        if len(content) > STRING_BYTES_MAX:
            raise MalformedMessage(f"a text of {len(content)} bytes does not fit a record's key")
        parts += (_INT16.pack(len(content)), content)
    return b"".join(parts)


def encode_consumer_value(value: ConsumerValue) -> bytes:
    out = bytearray(_INT16.pack(VALUE_VERSION))
    codec.encode_into(out, value, VALUE_VERSION)
    return bytes(out)


def decode_consumer_key(buffer: bytes | bytearray | memoryview) -> ConsumerKey | None:
    """None if it is of a type that is not one of these."""
    try:
        (record_type,) = _INT16.unpack_from(buffer)
        kind = _KINDS.get(record_type)
        if kind is None:
            return None
        texts = []
        position = _INT16.size
        for _ in kind[0]._fields:
            (size,) = _INT16.unpack_from(buffer, position)
            end = position + _INT16.size + size
            if size < 0 or end > len(buffer):
                raise MalformedMessage("a key about a consumer group is cut short")
            texts.append(bytes(buffer[position + _INT16.size : end]).decode())
            position = end
        return kind[0](*texts)
    except (struct.error, UnicodeDecodeError) as error:
        raise MalformedMessage(f"a key about a consumer group cannot be read: {error}") from None


def decode_consumer_value(key: ConsumerKey, buffer: bytes | bytearray | memoryview) -> ConsumerValue:
    value_class = _KINDS[_TYPES[type(key)]][1]
    if len(buffer) < _INT16.size:
        raise MalformedMessage("a value about a consumer group is cut short")
    (version,) = _INT16.unpack_from(buffer)
    if version != VALUE_VERSION:
        raise MalformedMessage(f"version {version} of a {value_class.__name__} is not known")
    value, _ = codec.decode_from(value_class, version, buffer, _INT16.size)
    return value
