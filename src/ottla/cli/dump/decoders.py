"""How dump-log turns the key and value of a record into text."""

import json
import struct
from collections.abc import Callable

from ottla.cli.common import transaction_records_json
from ottla.cli.common.group_records_json import (
    camel_case,
    key_json,
    message_json,
    record_type,
    value_json,
    with_decoded_members,
)
from ottla.cli.common.output import CommandError
from ottla.protocol import coordinator_records as stored
from ottla.protocol.consumer_group_records import ConsumerKey, decode_consumer_key, decode_consumer_value
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.records import Record
from ottla.protocol.transaction_records import TRANSACTION_LOG, decode_transaction_key

Decode = Callable[[Record], tuple[str | None, str | None]]
"""A record to the text of its key and of its value; None prints nothing."""

DECODERS_NOT_SERVED = {
    "cluster-metadata-decoder": "cluster metadata is kept in SQLite, not in a log",
    "remote-log-metadata-decoder": "there is no remote storage",
    "share-group-state-decoder": "share groups are not served yet, so there is no __share_group_state",
}
DELETED = "<DELETE>"


def choose_decoder(*, offsets: bool, transactions: bool, key_class: str | None, value_class: str | None) -> Decode:
    if offsets:
        return _decode_group_record
    if transactions:
        return _decode_transaction_record
    decode_key, decode_value = _part_decoder(key_class), _part_decoder(value_class)

    def decode(record: Record) -> tuple[str | None, str | None]:
        key = None if record.key is None else decode_key(record.key)
        return key, None if record.value is None else decode_value(record.value)

    return decode


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _number(layout: str) -> Callable[[bytes], str]:
    def decode(data: bytes) -> str:
        if len(data) < struct.calcsize(layout):
            raise CommandError(f"{len(data)} bytes are too few for a number of {struct.calcsize(layout)}")
        return str(struct.unpack_from(layout, data)[0])

    return decode


_DECODERS: dict[str, Callable[[bytes], str]] = {
    "": _text,
    "StringDecoder": _text,
    "DefaultDecoder": lambda data: data.hex(),
    "IntegerDecoder": _number(">i"),
    "LongDecoder": _number(">q"),
}


def _part_decoder(class_name: str | None) -> Callable[[bytes], str]:
    short = (class_name or "").removeprefix("org.apache.kafka.tools.api.").removeprefix("kafka.serializer.")
    if short not in _DECODERS:
        known = ", ".join(name for name in _DECODERS if name)
        raise CommandError(f"there is no decoder {class_name}: Java classes cannot be loaded here. There are {known}")
    return _DECODERS[short]


def _decode_group_record(record: Record) -> tuple[str | None, str | None]:
    if record.key is None:
        raise CommandError(f"the record at offset {record.offset} has no key, so it is none of __consumer_offsets")
    try:
        key = stored.decode_key(record.key)
        consumer_key = decode_consumer_key(record.key) if isinstance(key, stored.OtherKey) else None
        if consumer_key is not None:
            return _decode_consumer_record(consumer_key, record)
        if isinstance(key, stored.OtherKey):
            return f"Unknown record type {key.record_type} at offset {record.offset}, skipping.", None
        key_text = _json({"type": str(record_type(record.key)), "data": key_json(key)})
        if record.value is None:
            return key_text, DELETED
        version, fields = value_json(key, record.value)
    except MalformedMessage as error:
        return f"Error at offset {record.offset}, skipping. {error}", None
    return key_text, _json({"version": str(version), "data": with_decoded_members(fields)})


_KEY_NAMES = {"group": "groupId", "member": "memberId", "regex": "regularExpression"}


def _decode_consumer_record(key: ConsumerKey, record: Record) -> tuple[str, str]:
    """A record about a group of the consumer protocol."""
    data = {_KEY_NAMES[name]: text for name, text in key._asdict().items()}
    key_text = _json({"type": str(record_type(record.key or b"")), "data": data})
    if record.value is None:
        return key_text, DELETED
    value = decode_consumer_value(key, record.value)
    # Fields that may be left out of a record are left out here too, where they have nothing to say.
    tagged = [field.name for field in value.FIELDS if field.tag is not None]
    silent = {camel_case(name) for name in tagged if not getattr(value, name)}
    fields = {name: content for name, content in message_json(value, 0).items() if name not in silent}
    return key_text, _json({"version": str(record_type(record.value)), "data": fields})


def _decode_transaction_record(record: Record) -> tuple[str | None, str | None]:
    if record.key is None:
        raise CommandError(f"the record at offset {record.offset} has no key, so it is none of __transaction_state")
    try:
        name = decode_transaction_key(record.key)
        if name is None:
            kind = record_type(record.key)
            return f"Unknown record type {kind} at offset {record.offset}, skipping.", None
        key_text = _json({"type": str(TRANSACTION_LOG), "data": transaction_records_json.key_json(name)})
        if record.value is None:
            return key_text, DELETED
        version, fields = transaction_records_json.value_json(record.value)
    except MalformedMessage as error:
        return f"Error at offset {record.offset}, skipping. {error}", None
    return key_text, _json({"version": str(version), "data": fields})


def _json(document: dict[str, object]) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)
