"""Values with a schema as console tools read and print them: JSON on the terminal, its format in the topic."""

import os
from collections.abc import Iterator, Mapping
from typing import IO, Any, BinaryIO

from ottla.cli.common.options import read_text
from ottla.cli.common.output import CommandError
from ottla.cli.common.passwords import login_from
from ottla.cli.data.console_reader import LineReader
from ottla.cli.data.own_code import Record
from ottla.model.defaults import DEFAULT_REGISTRY, REGISTRY_VARIABLE
from ottla.registry.client import RegistryClient
from ottla.registry.framing import KEY_HEADER, VALUE_HEADER, id_prefix, read_id
from ottla.registry.schemas.values import Codec, codec_of

LOGIN = "basic.auth.user.info"
_READER_PROPERTIES = (
    "parse.key", "key.separator", "parse.headers", "headers.delimiter", "headers.separator", "headers.key.separator",
    "ignore.error", "null.marker",
)  # fmt: skip


def registry_of(properties: Mapping[str, str]) -> RegistryClient:
    user, password = login_from(properties.get(LOGIN, ""), LOGIN)
    return RegistryClient(
        properties.get("schema.registry.url") or os.environ.get(REGISTRY_VARIABLE) or DEFAULT_REGISTRY,
        user=user,
        password=password,
        ca_file=properties.get("schema.registry.ssl.ca.location"),
    )


class SchemaFormatter:
    """For `--formatter`: key and value as JSON, each by the schema that its id names."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._registry = registry_of(properties)
        self._codecs: dict[int | str, Codec] = {}
        self._print_key = properties.get("print.key", "false").lower() == "true"
        self._print_ids = properties.get("print.schema.ids", "false").lower() == "true"
        self._string_key = properties.get("key.deserializer", "").endswith("StringDeserializer")
        self._separator = properties.get("key.separator", "\t")

    def write(self, record: Record, out: BinaryIO) -> None:
        headers = {name: value for name, value in record.headers if value is not None}
        parts = []
        if self._print_key:
            plain = self._string_key and record.key is not None
            parts.append(
                record.key.decode() if plain and record.key else self._shown(record.key, headers.get(KEY_HEADER))
            )
        parts.append(self._shown(record.value, headers.get(VALUE_HEADER)))
        out.write(self._separator.join(parts).encode() + b"\n")

    def _shown(self, data: bytes | None, header: bytes | None) -> str:
        if data is None:
            return "null"
        framed = read_id(header if header is not None else data)
        known: int | str = framed.guid or framed.schema_id or 0
        if known not in self._codecs:
            with self._registry as registry:  # asked once for each id: no connection is kept for that
                guid, schema_id = framed.guid, framed.schema_id or 0
                schema = registry.schema(schema_id) if guid is None else registry.schema_by_guid(guid)
            self._codecs[known] = codec_of(schema)
        text = self._codecs[known].decode(data, 0 if header is not None else framed.start)
        return f"{text}{self._separator}{known}" if self._print_ids else text


class SchemaReader:
    """For `--line-reader`: lines of JSON, written with a schema that is registered first, or found by its id."""

    SCHEMA_TYPE = "AVRO"

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._registry = registry_of(properties)
        self._lines = LineReader({name: properties[name] for name in _READER_PROPERTIES if name in properties})
        topic = properties.get("topic", "")
        has_keys = properties.get("parse.key", "false").lower() == "true"
        string_key = properties.get("key.serializer", "").endswith("StringSerializer")
        with self._registry:
            self._value = self._serializer(properties, "value", topic)
            self._key = self._serializer(properties, "key", topic) if has_keys and not string_key else None

    def _serializer(self, properties: Mapping[str, str], part: str, topic: str) -> tuple[bytes, Codec]:
        subject = properties.get(f"{part}.subject.name") or f"{topic}-{part}"
        if f"{part}.schema.id" in properties:
            schema = self._registry.schema(int(properties[f"{part}.schema.id"]))
        else:
            text = properties.get(f"{part}.schema")
            if text is None and f"{part}.schema.file" in properties:
                text = read_text(properties[f"{part}.schema.file"])
            if text is None:
                raise CommandError(
                    f"say what the {part}'s schema is: --property {part}.schema='...', {part}.schema.file=FILE "
                    f"or {part}.schema.id=N"
                )
            schema = self._registry.register(subject, text, self.SCHEMA_TYPE)
        return id_prefix(schema.schema_id), codec_of(schema)

    def read_records(self, stream: IO[bytes]) -> Iterator[dict[str, Any]]:
        for number, raw in enumerate(stream, 1):
            line = raw.decode().rstrip("\r\n")
            if not line:
                continue
            parsed = self._lines.parse(line, number)
            key = parsed.key
            if key is not None and self._key is not None:
                key = self._key[0] + self._key[1].encode(key.decode())
            value = None if parsed.value is None else self._value[0] + self._value[1].encode(parsed.value.decode())
            yield {"key": key, "value": value, "headers": parsed.headers}


class JsonSchemaReader(SchemaReader):
    SCHEMA_TYPE = "JSON"


class ProtobufReader(SchemaReader):
    SCHEMA_TYPE = "PROTOBUF"
