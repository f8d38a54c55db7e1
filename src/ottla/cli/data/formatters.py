"""How console-consumer prints a record: Kafka's message formatters under their old and new class names."""

import base64
import json
import struct
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import BinaryIO, Protocol

from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, Message
from crc32c import crc32c

from ottla.cli.common.output import CommandError
from ottla.cli.data.deserializers import Deserializer, deserializer
from ottla.cli.data.own_code import HOW_TO_WRITE_ONE, OwnFormatter, is_own

_TIMESTAMP_TYPES = {TIMESTAMP_CREATE_TIME: "CreateTime", TIMESTAMP_LOG_APPEND_TIME: "LogAppendTime"}
_PACKAGES = ("org.apache.kafka.tools.consumer.", "kafka.tools.", "kafka.coordinator.group.GroupMetadataManager$")
DEFAULT_FORMATTER = "org.apache.kafka.tools.consumer.DefaultMessageFormatter"


class Formatter(Protocol):
    def write(self, record: Message, out: BinaryIO) -> None:
        """Print one record."""


class DefaultFormatter:
    """The columns that were asked for, between separators: timestamp, partition, offset, epoch, headers, key, value."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        def wanted(name: str, default: str = "false") -> bool:
            return properties.get(f"print.{name}", default).strip().lower() == "true"

        def text(name: str, default: str) -> bytes:
            return properties.get(name, default).encode()

        self._between = text("key.separator", "\t")
        self._end = text("line.separator", "\n")
        self._between_headers = text("headers.separator", ",")
        self._null = text("null.literal", "null")
        self._key = _deserializer_of(properties, "key.deserializer")
        self._value = _deserializer_of(properties, "value.deserializer")
        self._header = _deserializer_of(properties, "headers.deserializer", "header.deserializer")
        self._columns = [
            column
            for name, default, column in (
                ("timestamp", "false", _timestamp),
                ("partition", "false", lambda record: b"Partition:%d" % record.partition()),
                ("offset", "false", lambda record: b"Offset:%d" % record.offset()),
                ("delivery", "false", _delivery),
                ("epoch", "false", _epoch),
                ("headers", "false", self._headers),
                ("key", "false", lambda record: self._decoded(record.key(), self._key)),
                ("value", "true", lambda record: self._decoded(record.value(), self._value)),
            )
            if wanted(name, default)
        ]

    def write(self, record: Message, out: BinaryIO) -> None:
        if self._columns:
            out.write(self._between.join([column(record) for column in self._columns]) + self._end)

    def _decoded(self, data: bytes | None, decode: Deserializer | None) -> bytes:
        if data is None:
            return self._null
        return data if decode is None else decode(data)

    def _headers(self, record: Message) -> bytes:
        headers = record.headers()
        if not headers:
            return b"NO_HEADERS"
        return self._between_headers.join(
            [name.encode() + b":" + self._decoded(value, self._header) for name, value in headers]
        )


class LoggingFormatter:
    """The default output, and a log line at level INFO for each record."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._default = DefaultFormatter(properties)

    def write(self, record: Message, out: BinaryIO) -> None:
        self._default.write(record, out)
        kind, timestamp = record.timestamp()
        when = f"{_TIMESTAMP_TYPES[kind]}:{timestamp}, " if kind in _TIMESTAMP_TYPES else ""
        key, value = record.key(), record.value()
        key_text = "key:null " if key is None else f"key:{key.decode(errors='replace')}, "
        value_text = "value:null" if value is None else f"value:{value.decode(errors='replace')}"
        now = datetime.now().astimezone().isoformat(sep=" ", timespec="milliseconds")[:23].replace(".", ",")
        print(f"[{now}] INFO {when}{key_text}{value_text} (LoggingMessageFormatter)", file=sys.stderr)


class NoOpFormatter:
    """Prints nothing: for counting and for timing."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        del properties  # any are accepted, there is nothing to print

    def write(self, record: Message, out: BinaryIO) -> None:
        del record, out


class JsonFormatter:
    """One JSON object a line with everything a record has; bytes that are no text are wrapped as base64."""

    def write(self, record: Message, out: BinaryIO) -> None:
        kind, timestamp = record.timestamp()
        document = {
            "topic": record.topic(),
            "partition": record.partition(),
            "offset": record.offset(),
            "timestamp": timestamp if kind in _TIMESTAMP_TYPES else None,
            "timestampType": _TIMESTAMP_TYPES.get(kind),
            "headers": [[name, _json_text(value)] for name, value in record.headers() or ()],
            "key": _json_text(record.key()),
            "value": _json_text(record.value()),
        }
        out.write(json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")


def _json_text(data: bytes | None) -> str | dict[str, str] | None:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


class ChecksumFormatter:
    """The checksum that Kafka's clients give a record: CRC-32C of its timestamp and of the sizes of key and value."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        topic = properties.get("topic")
        self._prefix = f"{topic}:".encode() if topic else b""

    def write(self, record: Message, out: BinaryIO) -> None:
        key, value = record.key(), record.value()
        sizes = (-1 if part is None else len(part) for part in (key, value))
        checksum = crc32c(struct.pack(">qii", record.timestamp()[1], *sizes))
        out.write(b"%schecksum:%d\n" % (self._prefix, checksum))


_FORMATTERS: dict[str, type[DefaultFormatter | LoggingFormatter | NoOpFormatter | ChecksumFormatter]] = {
    "DefaultMessageFormatter": DefaultFormatter,
    "LoggingMessageFormatter": LoggingFormatter,
    "NoOpMessageFormatter": NoOpFormatter,
    "ChecksumMessageFormatter": ChecksumFormatter,
}
_GROUP_FORMATTERS = ("OffsetsMessageFormatter", "GroupMetadataMessageFormatter")
_TRANSACTION_FORMATTER = "TransactionLogMessageFormatter"
_NOT_SERVED = {"ShareGroupStateMessageFormatter": "share groups"}


def make_formatter(class_name: str, properties: Mapping[str, str]) -> Formatter:
    """The formatter that Kafka knows by this class name, with its properties."""
    if is_own(class_name):
        return OwnFormatter(class_name, properties)
    package = next((known for known in _PACKAGES if class_name.startswith(known)), "")
    name = class_name.removeprefix(package)
    if name in _FORMATTERS:
        return _FORMATTERS[name](properties)
    if name in _GROUP_FORMATTERS:
        from ottla.cli.data.group_formatters import make_group_formatter

        return make_group_formatter(name, plain_text="$" in package)
    if name == _TRANSACTION_FORMATTER:
        from ottla.cli.data.transaction_formatters import TransactionLogFormatter

        return TransactionLogFormatter()
    if name in _NOT_SERVED:
        raise CommandError(f"{class_name}: {_NOT_SERVED[name]} are not served yet, so there is nothing to format")
    known = ", ".join((*_FORMATTERS, *_GROUP_FORMATTERS, _TRANSACTION_FORMATTER))
    raise CommandError(
        f"there is no formatter {class_name}: Java classes cannot be loaded here. There are {known}; for another, "
        f"{HOW_TO_WRITE_ONE}"
    )


def _timestamp(record: Message) -> bytes:
    kind, timestamp = record.timestamp()
    return f"{_TIMESTAMP_TYPES[kind]}:{timestamp}".encode() if kind in _TIMESTAMP_TYPES else b"NO_TIMESTAMP"


def _delivery(record: Message) -> bytes:
    count = record.delivery_count()
    return b"Delivery:NOT_PRESENT" if count is None else b"Delivery:%d" % count


def _epoch(record: Message) -> bytes:
    epoch = record.leader_epoch()
    return b"Epoch:NOT_PRESENT" if epoch is None else b"Epoch:%d" % epoch


def _deserializer_of(properties: Mapping[str, str], *names: str) -> Deserializer | None:
    """The deserializer under the first of these names, with the properties that carry its name as a prefix."""
    for name in names:
        if name in properties:
            own = {
                key.removeprefix(f"{name}."): value for key, value in properties.items() if key.startswith(f"{name}.")
            }
            return deserializer(properties[name], own, name)
    return None
