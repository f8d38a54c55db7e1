"""`schema: registry`: the columns come from a schema registry, and so does the schema of every record.

    format: avro
    schema: registry
    format_options: {registry: "http://127.0.0.1:8081", columns: latest}

Reading: `columns` are those of the subject's `latest` version, of a pinned one (its number), or of all versions
`merged`. A record with an unknown schema, or one that cannot become these columns, is a bad record that says so.
Writing: the columns' schema is registered (`register: true`), or the subject's latest is written with. `framing` is
where the id goes: before the value, or a guid in a header.
"""

import functools
import json
import os
from typing import Any, ClassVar, Literal

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from ottla.model.defaults import DEFAULT_REGISTRY, REGISTRY_VARIABLE
from ottla.registry.client import RegistryClient, RegistrySchema
from ottla.registry.errors import RegistryError
from ottla.registry.framing import VALUE_HEADER, guid_header, id_prefix, write_indexes
from ottla.registry.schemas.parsed import Referenced
from ottla.spark.formats.avro import make_encode as make_avro_encode
from ottla.spark.formats.avro_schemas import avro_of, columns_of
from ottla.spark.formats.decoding import encode_with, parse_with
from ottla.spark.formats.json_schemas import columns_of_json, json_schema_of
from ottla.spark.formats.json_text import JsonFormat
from ottla.spark.formats.registry_decoding import RegistryAddress, make_decode, self_contained
from ottla.spark.formats.spec import FormatProblem, FormatSpec, Tombstones, read_options

REGISTRY = "registry"
"""As `schema`."""
_FRAMED = "__framed"
KINDS = {"avro": "AVRO", "json": "JSON", "protobuf": "PROTOBUF"}


class RegistryOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    tombstones: Tombstones = "reject"
    registry: str | None = None
    """Its URL, or several with commas; without it $OTTLA_REGISTRY, or else the one on this machine."""
    user: str | None = None
    password: str | None = None
    ca: str | None = None
    """A file of certificates to trust, for https."""
    topic: str | None = None
    subject: str | None = None
    """Instead of the one that the strategy makes of the topic."""
    strategy: Literal["topic", "record", "topic-record"] = "topic"
    columns: int | Literal["latest", "merged"] = "latest"
    register: bool = True
    """Whether the schema of what is written is registered; else the subject's latest is used."""
    record: str = "Row"
    """The name of the record that is registered."""
    message: str | None = None
    """Protobuf: the message's full name; without it the first of the file."""
    framing: Literal["value", "header"] = "value"


class RegistryFormat:
    NAME: ClassVar[str] = REGISTRY
    Options: ClassVar[type[RegistryOptions]] = RegistryOptions

    def __init__(self, spec: FormatSpec) -> None:
        if spec.name not in KINDS:
            raise FormatProblem(f"format {spec.name} has no schemas in a registry: choose avro, json or protobuf")
        self._spec = spec
        self._kind = spec.name
        self._options = read_options(spec, RegistryOptions)
        options = self._options
        named = options.subject or (options.topic if options.strategy == "topic" else options.record != "Row")
        if not named:
            raise FormatProblem(
                f"format {spec.name}: say which `subject` the schemas have, or which `topic` they are for "
                "(with strategy record or topic-record also the `record`)"
            )
        if isinstance(options.columns, int) and options.columns < 1:
            raise FormatProblem(f"format {spec.name}: `columns` is latest, merged or a version from 1 on")
        if options.columns == "merged" and self._kind == "protobuf":
            raise FormatProblem(
                "format protobuf: versions are not merged, because fields go by number; choose `columns: latest` "
                "(numbers that it has dropped are left out) or a version"
            )

    # Reading.

    def parse(self, frame: DataFrame, column: str) -> DataFrame:
        reader, message, columns = self._reader()
        make = functools.partial(make_decode, self._kind, self._address(), reader, message)
        tombstones = self._options.tombstones
        if "headers" not in frame.columns:
            return parse_with(frame, column, make, columns, tombstones)
        framed = frame.withColumn(_FRAMED, _with_header(sf.col(column), sf.col("headers")))
        return parse_with(framed, _FRAMED, make, columns, tombstones).drop(_FRAMED)

    def _reader(self) -> tuple[str, str, StructType]:
        """The schema of the columns as executors need it, a message's name, and the columns."""
        with self._client() as client:
            found = self._asked(client, self._versions)
        if self._kind == "json":
            return "", "", columns_of_json([json.loads(each.text) for each in found])
        if self._kind == "protobuf":
            from ottla.spark.formats import protobuf_messages as messages  # noqa: PLC0415

            descriptors, name = self._descriptors(found[-1])
            return descriptors.hex(), name, messages.columns_of(messages.find(descriptors, name))
        schema = merged([self_contained(each) for each in found])
        return json.dumps(schema), "", columns_of(schema)

    def _versions(self, client: RegistryClient) -> list[RegistrySchema]:
        """Oldest first; the last is the one that counts."""
        options = self._options
        if options.columns == "merged":
            return [client.version(self.subject, number) for number in client.versions(self.subject)]
        return [client.version(self.subject, options.columns)]

    # Writing.

    def encode(self, row: Column, row_type: StructType) -> Column:
        with self._client() as client:
            schema = self._asked(client, lambda asked: self._written(asked, row_type))
        prefix = b"" if self._options.framing == "header" else id_prefix(schema.schema_id)
        if self._kind == "avro":
            text = json.dumps(self_contained(schema))
            return encode_with(row, functools.partial(make_avro_encode, text, prefix))
        if self._kind == "json":
            body = JsonFormat(FormatSpec(name="json")).encode(row, row_type)
            return sf.concat(sf.lit(prefix), body) if prefix else body
        return self._encode_protobuf(row, row_type, schema, prefix)

    def _encode_protobuf(self, row: Column, row_type: StructType, schema: RegistrySchema, prefix: bytes) -> Column:
        from ottla.spark.formats import protobuf_messages as messages  # noqa: PLC0415
        from ottla.spark.formats.protobuf import make_encode  # noqa: PLC0415

        descriptors, name = self._descriptors(schema)
        found = messages.find(descriptors, name)
        messages.check_columns(found, row_type)
        place = write_indexes(messages.place_in_file(found)) if prefix else b""
        return encode_with(row, functools.partial(make_encode, descriptors, name, prefix + place))

    def record_headers(self, row_type: StructType) -> dict[str, bytes]:
        """What every record that is written has in its headers."""
        if self._options.framing != "header":
            return {}
        with self._client() as client:
            schema = self._asked(client, lambda asked: self._written(asked, row_type))
        if not schema.guid:
            raise FormatProblem(f"format {self._kind}: `framing: header` needs a registry that gives guids")
        value = guid_header(schema.guid)
        if self._kind == "protobuf":
            from ottla.spark.formats import protobuf_messages as messages  # noqa: PLC0415

            value += write_indexes(messages.place_in_file(messages.find(*self._descriptors(schema))))
        return {VALUE_HEADER: value}

    def _written(self, client: RegistryClient, row_type: StructType) -> RegistrySchema:
        if not self._options.register:
            return client.latest(self.subject)
        if self._kind == "protobuf":
            raise FormatProblem(
                "format protobuf: columns have no field numbers, so no schema can be made of them: register one with "
                "`ottla schema register`, and write with `register: false`"
            )
        if self._kind == "json":
            return client.register(self.subject, json.dumps(json_schema_of(row_type, self._options.record)), "JSON")
        return client.register(self.subject, json.dumps(avro_of(row_type, self._options.record)))

    # Both.

    @property
    def subject(self) -> str:
        options = self._options
        if options.subject is not None:
            return options.subject
        made = {
            "topic": f"{options.topic}-value",
            "record": options.record,
            "topic-record": f"{options.topic}-{options.record}",
        }
        return made[options.strategy]

    def _address(self) -> RegistryAddress:
        options = self._options
        urls = options.registry or os.environ.get(REGISTRY_VARIABLE) or DEFAULT_REGISTRY
        return RegistryAddress(urls, options.user, options.password, options.ca)

    def _client(self) -> RegistryClient:
        address = self._address()
        return RegistryClient(address.urls, user=address.user, password=address.password, ca_file=address.ca_file)

    def _asked(self, client: RegistryClient, ask: Any) -> Any:
        try:
            return ask(client)
        except RegistryError as error:
            raise FormatProblem(f"format {self._kind}: subject {self.subject}: {error}") from error

    def _descriptors(self, schema: RegistrySchema) -> tuple[bytes, str]:
        """A descriptor set, and the message that is meant."""
        from google.protobuf.descriptor_pb2 import FileDescriptorSet  # noqa: PLC0415

        from ottla.registry.schemas.protobuf import parse_protobuf  # noqa: PLC0415

        parsed = parse_protobuf(schema.text, [Referenced(*each) for each in schema.references])
        package = f"{parsed.main.package}." if parsed.main.package else ""
        if not parsed.main.message_type:
            raise FormatProblem(f"format protobuf: the schema of {self.subject} has no message")
        name = self._options.message or f"{package}{parsed.main.message_type[0].name}"
        return FileDescriptorSet(file=parsed.files.values()).SerializeToString(deterministic=True), name


def _with_header(value: Column, headers: Column) -> Column:
    """A guid from a header stands before the value, where an id would: the first byte of both says what it is."""
    found = sf.filter(headers, lambda header: header["key"] == VALUE_HEADER)
    return sf.when(sf.size(found) > 0, sf.concat(sf.element_at(found, -1)["value"], value)).otherwise(value)


def merged(schemas: list[Any]) -> Any:
    """The last schema, with the fields that only older ones have; those, and what some lack, may be null."""
    *older, last = schemas
    if not older or not all(isinstance(each, dict) and each.get("type") == "record" for each in schemas):
        return last
    fields: dict[str, dict[str, Any]] = {}
    for schema in schemas:
        for each in schema["fields"]:
            fields[each["name"]] = each
    everywhere = set.intersection(*({each["name"] for each in schema["fields"]} for schema in schemas))
    now = [each["name"] for each in last["fields"]]
    ordered = [*now, *(name for name in fields if name not in now)]
    return {**last, "fields": [_nullable(fields[name], always=name in everywhere) for name in ordered]}


def _nullable(field: dict[str, Any], *, always: bool) -> dict[str, Any]:
    if always or "default" in field:
        return field
    kind = field["type"]
    branches = kind if isinstance(kind, list) else [kind]
    return {**field, "type": ["null", *(branch for branch in branches if branch != "null")], "default": None}
