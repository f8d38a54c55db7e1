"""Records of `__consumer_offsets` as the JSON that Kafka's tools print."""

import base64
import struct
from typing import Any
from uuid import UUID

from ottla.model.names import format_topic_id
from ottla.protocol import coordinator_records as stored
from ottla.protocol.codec import decode
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from ottla.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from ottla.protocol.schema import Message, TopLevel

Json = dict[str, Any]
CONSUMER_PROTOCOL = "consumer"


def record_type(key: bytes) -> int:
    if len(key) < 2:
        raise MalformedMessage("a key without a record type")
    (kind,) = struct.unpack_from(">h", key)
    return int(kind)


def key_json(key: stored.OffsetCommitKey | stored.GroupMetadataKey) -> Json:
    return dict(key._asdict())


def value_json(key: stored.OffsetCommitKey | stored.GroupMetadataKey, data: bytes) -> tuple[int, Json]:
    """(version, fields) of a value that stands under `key`."""
    version = record_type(data)  # a value starts with its version as a key with its type
    if isinstance(key, stored.OffsetCommitKey):
        return version, _offset_commit(version, stored.decode_offset_commit_value(data))
    return version, _group(version, stored.decode_group_metadata_value(data))


def _offset_commit(version: int, value: stored.OffsetCommitValue) -> Json:
    fields: Json = {"offset": value.offset}
    if version >= 3:
        fields["leaderEpoch"] = value.leader_epoch
    fields |= {"metadata": value.metadata, "commitTimestamp": value.commit_timestamp}
    if version == 1:
        fields["expireTimestamp"] = value.expire_timestamp
    if value.topic_id.int:
        fields["topicId"] = format_topic_id(value.topic_id)
    return fields


def _group(version: int, value: stored.GroupMetadataValue) -> Json:
    fields: Json = {
        "protocolType": value.protocol_type,
        "generation": value.generation,
        "protocol": value.protocol,
        "leader": value.leader,
    }
    if version >= 2:
        fields["currentStateTimestamp"] = value.state_timestamp
    fields["members"] = [_member(version, member) for member in value.members]
    return fields


def _member(version: int, member: stored.MemberMetadata) -> Json:
    fields: Json = {"memberId": member.member_id}
    if version >= 3:
        fields["groupInstanceId"] = member.group_instance_id
    fields |= {"clientId": member.client_id, "clientHost": member.client_host}
    if version >= 1:
        fields["rebalanceTimeout"] = member.rebalance_timeout_ms
    return fields | {
        "sessionTimeout": member.session_timeout_ms,
        "subscription": base64.b64encode(member.subscription).decode(),
        "assignment": base64.b64encode(member.assignment).decode(),
    }


def with_decoded_members(group: Json) -> Json:
    """The group with its members' subscriptions and assignments taken apart, where they are a consumer's."""
    if group.get("protocolType") != CONSUMER_PROTOCOL:
        return group
    members = [
        member
        | {
            "subscription": _decoded(member["subscription"], ConsumerProtocolSubscription),
            "assignment": _decoded(member["assignment"], ConsumerProtocolAssignment),
        }
        for member in group["members"]
    ]
    return group | {"members": members}


def _decoded(encoded: str, message: type[TopLevel]) -> Any:
    data = base64.b64decode(encoded)
    try:
        version = record_type(data)
        return message_json(decode(message, min(version, message.MAX_VERSION), data, 2), version)
    except MalformedMessage:
        return encoded  # not what it should be: leave the bytes for someone to look at


def message_json(message: Message, version: int) -> Json:
    """A message with the fields of a version, under the names of Kafka's schemas (camelCase), bytes as base64."""
    return {
        camel_case(field.name): _field_json(getattr(message, field.name), version)
        for field in message.FIELDS
        if field.in_version(version)
    }


def _field_json(value: Any, version: int) -> Any:
    if isinstance(value, Message):
        return message_json(value, version)
    if isinstance(value, list):
        return [_field_json(item, version) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, UUID):
        return format_topic_id(value)
    return value


def camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
