"""`schema: registry`: the columns come from a schema registry, and so does the schema of every record.

    format: avro
    schema: registry
    format_options: {registry: "http://127.0.0.1:8081", columns: latest}

Reading: `columns` are those of the subject's `latest` version, of a pinned one (its number), or of all versions
`merged`. A record with an unknown schema, or one that cannot become these columns, is a bad record that says so.
Writing: the columns' schema is registered (`register: true`), or the one in `schema_file`, or the subject's latest is
written with. `framing` is where the id goes: before the value, or a guid in a header. A schema that is no record but a
single value, as keys often have, is one column.
"""

import functools
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType, DecimalType, StructField, StructType

from ottla.model.defaults import DEFAULT_REGISTRY, REGISTRY_VARIABLE
from ottla.registry.client import RegistryClient, RegistrySchema
from ottla.registry.errors import RegistryError
from ottla.registry.framing import KEY_HEADER, VALUE_HEADER, guid_header, id_prefix, write_indexes
from ottla.registry.schemas.avro import parse_avro
from ottla.registry.schemas.json_schema import parse_json_schema
from ottla.spark.formats import protobuf_messages as messages
from ottla.spark.formats import registry_protobuf as protobuf
from ottla.spark.formats.avro import make_encode as make_avro_encode
from ottla.spark.formats.avro_schemas import avro_of, avro_type_of, column_type
from ottla.spark.formats.decoding import encode_with, parse_with
from ottla.spark.formats.json_schemas import json_column_type, json_schema_of
from ottla.spark.formats.json_text import JsonFormat
from ottla.spark.formats.protobuf import make_encode as make_protobuf_encode
from ottla.spark.formats.protobuf_shapes import columns_of_shape
from ottla.spark.formats.registry_decoding import RegistryAddress, make_decode, self_contained
from ottla.spark.formats.registry_protobuf import ROW
from ottla.spark.formats.spec import FormatProblem, FormatSpec, Tombstones, read_options

REGISTRY = "registry"
"""As `schema`."""
_FRAMED = "__framed"
_SINGLE = "single"
KINDS = {"avro": "AVRO", "json": "JSON", "protobuf": "PROTOBUF"}
Part = Literal["value", "key"]


WHERE = ("registry", "user", "password", "ca")
"""Options that say where the registry is: said once for values and keys."""


def key_options(schema: str | None, own: Mapping[str, Any], of_values: Mapping[str, Any], topic: Any) -> dict[str, Any]:
    """The options of a key's format: with a registry it is that of the values, and the subject is the topic's."""
    if schema != REGISTRY:
        return dict(own)
    shared = {name: of_values[name] for name in WHERE if name in of_values}
    named = {"topic": topic} if isinstance(topic, str) else {}
    return {"part": "key", **named, **shared, **own}


class RegistryOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    tombstones: Tombstones = "reject"
    registry: str | None = None
    """Its URL, or several with commas; without it $OTTLA_REGISTRY, or else the one on this machine."""
    user: str | None = None
    password: str | None = None
    ca: str | None = None
    """A file of certificates to trust, for https."""
    topic: str | None = None
    part: Part = "value"
    """Which part of the record it is: the subject is the topic's `-value` or `-key`."""
    subject: str | None = None
    """Instead of the one that the strategy makes of the topic."""
    strategy: Literal["topic", "record", "topic-record"] = "topic"
    columns: int | Literal["latest", "merged"] = "latest"
    register: bool = True
    """Whether the schema of what is written is registered; else it must be there: the subject's latest is used, or the
    version that is `schema_file`."""
    schema_file: str | None = None
    """The schema to write with, instead of one made of the columns."""
    record: str = ROW
    """The name of the record that is registered."""
    message: str | None = None
    """Protobuf: the message's full name; without it the first of the file."""
    framing: Literal["value", "header"] = "value"


class _Reader(NamedTuple):
    """What executors need to make columns of values."""

    schema: str
    message: str
    kind: DataType


_registered: dict[tuple[object, ...], RegistrySchema] = {}
"""What was registered for columns: it is asked for with every batch, and stays what it is."""


class RegistryFormat:
    NAME: ClassVar[str] = REGISTRY
    Options: ClassVar[type[RegistryOptions]] = RegistryOptions

    def __init__(self, spec: FormatSpec) -> None:
        if spec.name not in KINDS:
            raise FormatProblem(f"format {spec.name} has no schemas in a registry: choose avro, json or protobuf")
        self._spec = spec
        self._kind = spec.name
        self._options = read_options(spec, RegistryOptions)
        self.single = False
        """Set by `parse`: the schema is no record but one value, which is one column."""
        options = self._options
        named = options.subject or (options.topic if options.strategy == "topic" else options.record != ROW)
        if not named:
            raise FormatProblem(
                f"format {spec.name}: say which `subject` the schemas have, or which `topic` they are for "
                "(with strategy record or topic-record also the `record`)"
            )
        if isinstance(options.columns, int) and options.columns < 1:
            raise FormatProblem(f"format {spec.name}: `columns` is latest, merged or a version from 1 on")

    def check_schema(self) -> None:
        """The file that a schema is in, without asking the registry."""
        if self._options.schema_file is None:
            return
        try:
            if self._kind == "protobuf":
                text = self._given()
                protobuf.compiled(text, tuple(protobuf.imports(self._path, text).items()))
            else:
                (parse_avro if self._kind == "avro" else parse_json_schema)(self._given())
        except RegistryError as error:
            raise FormatProblem(f"format {self._kind}: {self._path}: {error}") from error

    # Reading.

    def parse(self, frame: DataFrame, column: str) -> DataFrame:
        reader = self._reader()
        self.single = not isinstance(reader.kind, StructType)
        columns = reader.kind if isinstance(reader.kind, StructType) else StructType([StructField(column, reader.kind)])
        single = column if self.single else ""
        make = functools.partial(make_decode, self._kind, self._address(), reader.schema, reader.message, single)
        tombstones = self._options.tombstones
        if "headers" not in frame.columns:
            return parse_with(frame, column, make, columns, tombstones)
        framed = frame.withColumn(_FRAMED, _with_header(sf.col(column), sf.col("headers"), self._header))
        return parse_with(framed, _FRAMED, make, columns, tombstones).drop(_FRAMED)

    def _reader(self) -> _Reader:
        with self._client() as client:
            found: list[RegistrySchema] = self._asked(client, self._versions)
        if self._kind == "json":
            return _Reader("", "", json_column_type([json.loads(each.text) for each in found]))
        if self._kind == "protobuf":
            name = protobuf.chosen(found[-1], self._options.message, self._options.record)
            shape = protobuf.shape_over(found, name)
            return _Reader(msgspec.json.encode(shape).decode(), name, columns_of_shape(shape))
        schema = merged([self_contained(each) for each in found])
        return _Reader(json.dumps(schema), "", column_type(schema))

    def _versions(self, client: RegistryClient) -> list[RegistrySchema]:
        """Oldest first; the last is the one that counts."""
        options = self._options
        if options.columns == "merged":
            return [client.version(self.subject, number) for number in client.versions(self.subject)]
        return [client.version(self.subject, options.columns)]

    # Writing.

    def encode(self, row: Column, row_type: StructType) -> Column:
        schema = self._written(row_type)
        prefix = b"" if self._options.framing == "header" else id_prefix(schema.schema_id)
        if self._kind == "avro":
            return encode_with(row, functools.partial(make_avro_encode, self._avro(schema, single=False), prefix))
        if self._kind == "json":
            body = JsonFormat(FormatSpec(name="json")).encode(row, row_type)
            return sf.concat(sf.lit(prefix), body) if prefix else body
        descriptors, name = self._message(schema)
        found = messages.find(descriptors, name)
        messages.check_columns(found, row_type)
        place = write_indexes(messages.place_in_file(found)) if prefix else b""
        return encode_with(row, functools.partial(make_protobuf_encode, descriptors, name, prefix + place))

    def encode_single(self, value: Column, kind: DataType) -> Column:
        """One value that is no struct: a schema of its type, without a record around it. Null stays null."""
        if self._kind == "protobuf":
            raise FormatProblem(
                "format protobuf writes messages, and this is a single value: name its columns in a list, `[id]`"
            )
        if self._kind == "json" and isinstance(kind, DecimalType):
            raise FormatProblem("format json has no decimals for a single value: cast it to STRING or DOUBLE")
        schema = self._written(kind)
        prefix = b"" if self._options.framing == "header" else id_prefix(schema.schema_id)
        make: Callable[[], Callable[[Any], bytes]] = functools.partial(_make_json_encode, prefix)
        if self._kind == "avro":
            make = functools.partial(make_avro_encode, self._avro(schema, single=True), prefix)
        return encode_with(sf.struct(value.alias(_SINGLE)), functools.partial(_make_single, make))

    def _avro(self, schema: RegistrySchema, *, single: bool) -> str:
        """The text to write with, which is a record where columns are written."""
        document = self_contained(schema)
        record = isinstance(document, dict) and document.get("type") == "record"
        if record == single:
            wanted = "a record: name its columns in a list" if record else "no record: give one column or expression"
            raise FormatProblem(f"format avro: the schema of {self.subject} is {wanted}")
        return json.dumps(document)

    def record_headers(self, kind: DataType) -> dict[str, bytes]:
        """What every record that is written has in its headers."""
        if self._options.framing != "header":
            return {}
        schema = self._written(kind)
        if not schema.guid:
            raise FormatProblem(f"format {self._kind}: `framing: header` needs a registry that gives guids")
        value = guid_header(schema.guid)
        if self._kind == "protobuf":
            value += write_indexes(messages.place_in_file(messages.find(*self._message(schema))))
        return {self._header: value}

    def _written(self, kind: DataType) -> RegistrySchema:
        """The schema to write with. `kind` is the type of the columns, or of a single value."""
        options = self._options
        if not options.register and options.schema_file is None:
            with self._client() as client:
                latest: RegistrySchema = self._asked(client, lambda asked: asked.latest(self.subject))
            return latest
        text = self._given() if options.schema_file is not None else ""
        key = (self._kind, self._address(), self.subject, options, kind.json(), text)
        known = _registered.get(key)
        if known is None:
            with self._client() as client:
                known = self._asked(client, lambda asked: self._ask(asked, kind, text))
            _registered[key] = known
        return known

    def _ask(self, client: RegistryClient, kind: DataType, text: str) -> RegistrySchema:
        options, subject = self._options, self.subject
        ask = client.register if options.register else client.look_up
        if self._kind == "protobuf":
            if text:
                return protobuf.given_file(ask, subject, self._path, text)
            assert isinstance(kind, StructType), "single values were refused"
            named = options.record if options.record != ROW else None
            return protobuf.register_columns(client, subject, kind, options.message or named)
        if text:
            return ask(subject, text, KINDS[self._kind])
        if self._kind == "json":
            return client.register(subject, json.dumps(json_schema_of(kind, options.record)), "JSON")
        made = avro_of(kind, options.record) if isinstance(kind, StructType) else avro_type_of(kind, options.record)
        return client.register(subject, json.dumps(made))

    # Both.

    @property
    def subject(self) -> str:
        options = self._options
        if options.subject is not None:
            return options.subject
        made = {
            "topic": f"{options.topic}-{options.part}",
            "record": options.record,
            "topic-record": f"{options.topic}-{options.record}",
        }
        return made[options.strategy]

    @property
    def _header(self) -> str:
        return KEY_HEADER if self._options.part == "key" else VALUE_HEADER

    @property
    def _path(self) -> Path:
        return self._spec.base_dir / str(self._options.schema_file)

    def _given(self) -> str:
        try:
            text = self._path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise FormatProblem(f"format {self._kind}: cannot read the schema file {self._path}: {reason}") from error
        if not text.strip():
            raise FormatProblem(f"format {self._kind}: the schema file {self._path} is empty")
        return text

    def _address(self) -> RegistryAddress:
        options = self._options
        urls = options.registry or os.environ.get(REGISTRY_VARIABLE) or DEFAULT_REGISTRY
        return RegistryAddress(urls, options.user, options.password, options.ca)

    def _client(self) -> RegistryClient:
        address = self._address()
        return RegistryClient(address.urls, user=address.user, password=address.password, ca_file=address.ca_file)

    def _asked(self, client: RegistryClient, ask: Callable[[RegistryClient], Any]) -> Any:
        try:
            return ask(client)
        except RegistryError as error:
            raise FormatProblem(f"format {self._kind}: subject {self.subject}: {error}") from error

    def _message(self, schema: RegistrySchema) -> tuple[bytes, str]:
        """A descriptor set, and the message that is meant."""
        name = protobuf.chosen(schema, self._options.message, self._options.record)
        return protobuf.compiled(schema.text, schema.references)[0], name


def _with_header(value: Column, headers: Column, name: str) -> Column:
    """A guid from a header stands before the value, where an id would: the first byte of both says what it is."""
    found = sf.filter(headers, lambda header: header["key"] == name)
    return sf.when(sf.size(found) > 0, sf.concat(sf.element_at(found, -1)["value"], value)).otherwise(value)


# In the executors.


def _make_single(make: Callable[[], Callable[[Any], bytes]]) -> Callable[[dict[str, Any]], bytes | None]:
    encode = make()

    def one(row: dict[str, Any]) -> bytes | None:
        value = row[_SINGLE]
        return None if value is None else encode(value)

    return one


def _make_json_encode(prefix: bytes) -> Callable[[Any], bytes]:
    return lambda value: prefix + msgspec.json.encode(value)


# Versions of Avro in one.


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
