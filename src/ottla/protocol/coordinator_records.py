"""Records of `__consumer_offsets`: what is committed, and who is in which group.

A key begins with its record type, a value with its version. Types 0 and 1 are offset commits, 2 is a classic
group. Values of versions 0 to 4 are read; written are the versions that Kafka 4.3 writes: offset commits in
version 4 (version 1 if the client asked for its own retention, the only one that has a place for it), groups in
version 3. Other types (groups of newer protocols) are recognised by number and left alone.
"""

import struct
from typing import NamedTuple
from uuid import UUID

import msgspec

from ottla.model.names import NO_TOPIC_ID
from ottla.protocol import varint
from ottla.protocol.compression import Buffer
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.stored_records import StoredReader

OFFSET_COMMIT_LEGACY = 0
OFFSET_COMMIT = 1
GROUP_METADATA = 2

OFFSET_COMMIT_VALUE_VERSION = 4
OFFSET_COMMIT_VALUE_VERSION_WITH_EXPIRY = 1
GROUP_METADATA_VALUE_VERSION = 3
VALUE_VERSION_MAX = 4
FLEXIBLE_FROM = 4

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_COMMIT_HEAD = struct.Struct(">hqi")
_TOPIC_ID_TAG = b"\x01\x00\x10"  # one tagged field: tag 0, sixteen bytes
_NO_TAGS = b"\x00"
_PLAIN_COMMIT = struct.Struct(">hqibqb")  # a commit of version 4 without text, to the number of its tagged fields
_PLAIN_COMMIT_SIZES = frozenset({_PLAIN_COMMIT.size, _PLAIN_COMMIT.size + 2 + 16})
STRING_BYTES_MAX = 0x7FFF


class OffsetCommitKey(NamedTuple):
    group: str
    topic: str
    partition: int


class GroupMetadataKey(NamedTuple):
    group: str


class OtherKey(NamedTuple):
    """A record type that this version of Ottla keeps but does not interpret."""

    record_type: int


class OffsetCommitValue(msgspec.Struct, frozen=True, gc=False):
    offset: int
    commit_timestamp: int
    leader_epoch: int = -1
    metadata: str = ""
    expire_timestamp: int = -1
    topic_id: UUID = NO_TOPIC_ID


class MemberMetadata(msgspec.Struct, frozen=True):
    member_id: str
    client_id: str
    client_host: str
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes
    group_instance_id: str | None = None
    rebalance_timeout_ms: int = -1


class GroupMetadataValue(msgspec.Struct, frozen=True):
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    members: tuple[MemberMetadata, ...] = ()
    state_timestamp: int = -1


Key = OffsetCommitKey | GroupMetadataKey | OtherKey


# Writing


def encode_offset_commit_key(group: str, topic: str, partition: int) -> bytes:
    group_bytes, topic_bytes = group.encode(), topic.encode()
    if len(group_bytes) > STRING_BYTES_MAX or len(topic_bytes) > STRING_BYTES_MAX:
        raise MalformedMessage("a group or topic name is longer than a record key can hold")
    return b"".join(
        (
            b"\x00\x01",
            _INT16.pack(len(group_bytes)), group_bytes,
            _INT16.pack(len(topic_bytes)), topic_bytes,
            _INT32.pack(partition),
        )
    )  # fmt: skip


def encode_group_metadata_key(group: str) -> bytes:
    return b"\x00\x02" + _string(group)


def encode_offset_commit_value(value: OffsetCommitValue, version: int | None = None) -> bytes:
    if version is None:
        expires = value.expire_timestamp != -1
        version = OFFSET_COMMIT_VALUE_VERSION_WITH_EXPIRY if expires else OFFSET_COMMIT_VALUE_VERSION
    if version == OFFSET_COMMIT_VALUE_VERSION:
        text = value.metadata.encode()
        topic_id = value.topic_id
        return b"".join(
            (
                _COMMIT_HEAD.pack(4, value.offset, value.leader_epoch),
                varint.unsigned(len(text) + 1), text,
                _INT64.pack(value.commit_timestamp),
                _NO_TAGS if topic_id is NO_TOPIC_ID or not topic_id.int else _TOPIC_ID_TAG + topic_id.bytes,
            )
        )  # fmt: skip
    parts = [_INT16.pack(version), _INT64.pack(value.offset)]
    if version >= 3:
        parts.append(_INT32.pack(value.leader_epoch))
    parts += (_string(value.metadata), _INT64.pack(value.commit_timestamp))
    if version == 1:
        parts.append(_INT64.pack(value.expire_timestamp))
    return b"".join(parts)


def encode_group_metadata_value(value: GroupMetadataValue, version: int = GROUP_METADATA_VALUE_VERSION) -> bytes:
    flexible = version >= FLEXIBLE_FROM
    string = _compact_string if flexible else _string
    parts = [
        _INT16.pack(version),
        string(value.protocol_type), _INT32.pack(value.generation), string(value.protocol), string(value.leader),
    ]  # fmt: skip
    if version >= 2:
        parts.append(_INT64.pack(value.state_timestamp))
    count = len(value.members)
    parts.append(varint.unsigned(count + 1) if flexible else _INT32.pack(count))
    for member in value.members:
        parts += _member(member, version, flexible)
    if flexible:
        parts.append(_NO_TAGS)
    return b"".join(parts)


def _member(member: MemberMetadata, version: int, flexible: bool) -> list[bytes]:
    string = _compact_string if flexible else _string
    parts = [string(member.member_id)]
    if version >= 3:
        parts.append(string(member.group_instance_id))
    parts += (string(member.client_id), string(member.client_host))
    if version >= 1:
        parts.append(_INT32.pack(member.rebalance_timeout_ms))
    parts.append(_INT32.pack(member.session_timeout_ms))
    for content in (member.subscription, member.assignment):
        parts += (varint.unsigned(len(content) + 1) if flexible else _INT32.pack(len(content)), content)
    if flexible:
        parts.append(_NO_TAGS)
    return parts


def _string(text: str | None) -> bytes:
    if text is None:
        return b"\xff\xff"
    content = text.encode()
    if len(content) > STRING_BYTES_MAX:
        raise MalformedMessage(f"a text of {len(content)} bytes does not fit a record's string")
    return _INT16.pack(len(content)) + content


def _compact_string(text: str | None) -> bytes:
    if text is None:
        return b"\x00"
    content = text.encode()
    return varint.unsigned(len(content) + 1) + content


# Reading


def decode_key(buffer: Buffer) -> Key:
    reader = StoredReader(buffer, "key")
    record_type = reader.int16()
    if record_type in (OFFSET_COMMIT_LEGACY, OFFSET_COMMIT):
        return OffsetCommitKey(reader.string(), reader.string(), reader.int32())
    if record_type == GROUP_METADATA:
        return GroupMetadataKey(reader.string())
    return OtherKey(record_type)


def decode_offset_commit_value(buffer: Buffer) -> OffsetCommitValue:
    size = len(buffer)
    if size in _PLAIN_COMMIT_SIZES:  # nearly every record: version 4 without text, loaded by the hundred thousand
        version, offset, leader_epoch, text_size, commit_timestamp, tags = _PLAIN_COMMIT.unpack_from(buffer)
        if version == 4 and text_size == 1:
            if not tags and size == _PLAIN_COMMIT.size:
                return OffsetCommitValue(offset, commit_timestamp, leader_epoch)
            if tags == 1 and buffer[_PLAIN_COMMIT.size - 1 : _PLAIN_COMMIT.size + 2] == _TOPIC_ID_TAG:
                topic_id = UUID(bytes=bytes(buffer[_PLAIN_COMMIT.size + 2 :]))
                return OffsetCommitValue(offset, commit_timestamp, leader_epoch, "", -1, topic_id)
    reader = StoredReader(buffer, "offset commit")
    version = reader.version(VALUE_VERSION_MAX, FLEXIBLE_FROM)
    offset = reader.int64()
    leader_epoch = reader.int32() if version >= 3 else -1
    metadata = reader.string()
    commit_timestamp = reader.int64()
    expire_timestamp = reader.int64() if version == 1 else -1
    topic_id = NO_TOPIC_ID
    for tag, content in reader.tagged_fields():
        if tag == 0 and len(content) == 16:
            topic_id = UUID(bytes=content)
    return OffsetCommitValue(offset, commit_timestamp, leader_epoch, metadata, expire_timestamp, topic_id)


def decode_group_metadata_value(buffer: Buffer) -> GroupMetadataValue:
    reader = StoredReader(buffer, "group metadata")
    version = reader.version(VALUE_VERSION_MAX, FLEXIBLE_FROM)
    protocol_type, generation = reader.string(), reader.int32()
    protocol, leader = reader.nullable_string(), reader.nullable_string()
    state_timestamp = reader.int64() if version >= 2 else -1
    members = tuple(_read_member(reader, version) for _ in range(reader.count()))
    reader.tagged_fields()
    return GroupMetadataValue(protocol_type, generation, protocol, leader, members, state_timestamp)


def _read_member(reader: StoredReader, version: int) -> MemberMetadata:
    member_id = reader.string()
    instance_id = reader.nullable_string() if version >= 3 else None
    client_id, client_host = reader.string(), reader.string()
    rebalance_timeout_ms = reader.int32() if version >= 1 else -1
    session_timeout_ms = reader.int32()
    subscription, assignment = reader.byte_string(), reader.byte_string()
    reader.tagged_fields()
    return MemberMetadata(
        member_id, client_id, client_host, session_timeout_ms, subscription, assignment,
        instance_id, rebalance_timeout_ms,
    )  # fmt: skip
