"""Formatters for `__consumer_offsets`: committed offsets and groups, as JSON or in the older plain text."""

import json
from typing import BinaryIO

from confluent_kafka import Message

from ottla.cli.common.group_records_json import key_json, record_type, value_json
from ottla.cli.data.deserializers import UndecodableRecord
from ottla.protocol import coordinator_records as stored
from ottla.protocol.errors import MalformedMessage

OFFSETS = "OffsetsMessageFormatter"


def make_group_formatter(name: str, *, plain_text: bool) -> "JsonGroupFormatter | TextGroupFormatter":
    wanted = stored.OffsetCommitKey if name == OFFSETS else stored.GroupMetadataKey
    return TextGroupFormatter(wanted) if plain_text else JsonGroupFormatter(wanted)


WantedKey = type[stored.OffsetCommitKey] | type[stored.GroupMetadataKey]


class _GroupFormatter:
    """Picks the records of one kind; others, and records without a key, print nothing."""

    def __init__(self, wanted: WantedKey) -> None:
        self._wanted = wanted

    def write(self, record: Message, out: BinaryIO) -> None:
        raw_key, raw_value = record.key(), record.value()
        if raw_key is None:
            return
        try:
            key = stored.decode_key(raw_key)
            if not isinstance(key, self._wanted):
                return
            out.write(self._text(raw_key, key, raw_value).encode() + b"\n")
        except MalformedMessage as error:
            raise UndecodableRecord(f"cannot read the record at offset {record.offset()}: {error}") from error

    def _text(
        self, raw_key: bytes, key: stored.OffsetCommitKey | stored.GroupMetadataKey, raw_value: bytes | None
    ) -> str:
        raise NotImplementedError


class JsonGroupFormatter(_GroupFormatter):
    def _text(
        self, raw_key: bytes, key: stored.OffsetCommitKey | stored.GroupMetadataKey, raw_value: bytes | None
    ) -> str:
        document: dict[str, object] = {"key": {"type": record_type(raw_key), "data": key_json(key)}, "value": None}
        if raw_value is not None:
            version, fields = value_json(key, raw_value)
            document["value"] = {"version": version, "data": fields}
        return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


class TextGroupFormatter(_GroupFormatter):
    """What Kafka printed before version 4: `[group,topic,partition]::OffsetAndMetadata(...)`."""

    def _text(
        self, raw_key: bytes, key: stored.OffsetCommitKey | stored.GroupMetadataKey, raw_value: bytes | None
    ) -> str:
        if isinstance(key, stored.OffsetCommitKey):
            value = "NULL" if raw_value is None else _offset(stored.decode_offset_commit_value(raw_value))
            return f"[{key.group},{key.topic},{key.partition}]::{value}"
        value = "NULL" if raw_value is None else _group(key.group, stored.decode_group_metadata_value(raw_value))
        return f"{key.group}::{value}"


def _offset(value: stored.OffsetCommitValue) -> str:
    epoch = "Optional.empty" if value.leader_epoch < 0 else f"Optional[{value.leader_epoch}]"
    expires = "None" if value.expire_timestamp < 0 else f"Some({value.expire_timestamp})"
    return (
        f"OffsetAndMetadata(offset={value.offset}, leaderEpoch={epoch}, metadata={value.metadata}, "
        f"commitTimestamp={value.commit_timestamp}, expireTimestamp={expires})"
    )


def _group(group: str, value: stored.GroupMetadataValue) -> str:
    members = ", ".join(f"{member.member_id} -> {_member(member)}" for member in value.members)
    protocol_type = f"Some({value.protocol_type})" if value.protocol_type else "None"
    state = "Stable" if value.members else "Empty"
    return (
        f"GroupMetadata(groupId={group}, generation={value.generation}, protocolType={protocol_type}, "
        f"currentState={state}, members=Map({members}))"
    )


def _member(member: stored.MemberMetadata) -> str:
    instance = "None" if member.group_instance_id is None else f"Some({member.group_instance_id})"
    return (
        f"MemberMetadata(memberId={member.member_id}, groupInstanceId={instance}, clientId={member.client_id}, "
        f"clientHost={member.client_host}, sessionTimeoutMs={member.session_timeout_ms}, "
        f"rebalanceTimeoutMs={member.rebalance_timeout_ms})"
    )
