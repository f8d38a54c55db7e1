"""Values whose schemas a registry has, decoded in the executors: each by the schema of its id, asked for once.

A schema that differs from the reader's in fields alone (added with a default, removed, a wider number) costs no more
than the reader's own: the record is decoded as it was written, and what it lacks is filled in. Everything else is
resolved by Avro's rules, record by record.
"""

import io
import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import fastavro
import msgspec

from ottla.registry.client import RegistryClient, RegistrySchema
from ottla.registry.errors import RegistryError
from ottla.registry.framing import BadFraming, Framed, read_id
from ottla.registry.schemas.parsed import Referenced
from ottla.spark.formats.avro_schemas import plain
from ottla.spark.formats.decoding import Decode, Undecodable

UNKNOWN_SECONDS = 5.0
"""So long an id that the registry did not know is not asked for again."""
_WIDER = {
    ("int", "long"),
    ("int", "float"),
    ("int", "double"),
    ("long", "float"),
    ("long", "double"),
    ("float", "double"),
}


class RegistryAddress(NamedTuple):
    """Travels to the executors; clients are kept there."""

    urls: str
    user: str | None = None
    password: str | None = None
    ca_file: str | None = None

    def client(self) -> RegistryClient:
        known = _clients.get(self)
        if known is None:
            known = _clients[self] = RegistryClient(
                self.urls, user=self.user, password=self.password, ca_file=self.ca_file
            )
        return known


_clients: dict[RegistryAddress, RegistryClient] = {}
_readers: dict[tuple[Any, ...], "_Readers"] = {}

ReadBody = Callable[[bytes, int], dict[str, Any]]
"""From a value and where its body begins."""


class _Readers:
    """What reads the values of each schema, by id or guid."""

    def __init__(self, address: RegistryAddress, make: Callable[[RegistrySchema], ReadBody]) -> None:
        self._address = address
        self._make = make
        self._known: dict[int | str, ReadBody] = {}
        self._unknown: dict[int | str, tuple[float, str]] = {}

    def find(self, framed: Framed) -> ReadBody:
        key: int | str = framed.guid if framed.guid is not None else framed.schema_id or 0
        known = self._known.get(key)
        return known if known is not None else self._ask(key, framed)

    def _ask(self, key: int | str, framed: Framed) -> ReadBody:
        asked, why = self._unknown.get(key, (0.0, ""))
        if why and time.monotonic() - asked < UNKNOWN_SECONDS:
            raise Undecodable(why)
        client = self._address.client()
        try:
            schema = client.schema(int(key)) if framed.guid is None else client.schema_by_guid(str(key))
            made = self._known[key] = self._make(schema)
        except RegistryError as error:
            if error.status not in (404, 422):  # the registry is away: nobody knows whether the record is bad
                raise RegistryAway(str(error)) from error
            why = f"its schema, id {key}, is not known to the registry ({error})"
        except Undecodable as error:
            why = f"its schema, id {key}, cannot be read here: {error}"
        else:
            return made
        self._unknown[key] = (time.monotonic(), why)
        raise Undecodable(why)


class RegistryAway(BaseException):
    """Stops the task, which Spark tries again: no record may be given up for a registry that restarts."""


def make_decode(kind: str, address: RegistryAddress, reader: str, message: str, single: str = "") -> Decode:
    """`reader` is the schema of the columns; `message` a Protobuf message's name; `single` the one column of a schema
    that is no record."""
    key = (kind, address, reader, message, single)
    readers = _readers.get(key)
    if readers is None:
        makers: dict[str, Callable[[RegistrySchema], ReadBody]] = {
            "avro": lambda writer: _avro_reader(writer, json.loads(reader), single),
            "json": lambda writer: _json_reader(writer, single),
            "protobuf": lambda writer: _protobuf_reader(writer, reader, message),
        }
        readers = _readers[key] = _Readers(address, makers[kind])
    find = readers.find

    def decode(value: bytes) -> dict[str, Any]:
        try:
            framed = read_id(value)
        except BadFraming as error:
            raise Undecodable(str(error)) from None
        return find(framed)(value, framed.start)

    return decode


# Avro.


def self_contained(schema: RegistrySchema) -> Any:
    """With what it refers to in it, and without logical types that no column has."""
    from ottla.registry.schemas.avro import parse_avro  # noqa: PLC0415 - once for each schema

    references = [Referenced(name, text) for name, text in schema.references]
    return plain(json.loads(parse_avro(schema.text, references).formatted("resolved")))


def _avro_reader(written: RegistrySchema, reader: Any, single: str) -> ReadBody:
    if written.schema_type != "AVRO":
        raise Undecodable(f"it is a schema of type {written.schema_type}, and the format is avro")
    document = self_contained(written)
    defaults = fillings(document, reader)
    writing = fastavro.parse_schema(document)
    if defaults is not None and not single:
        return _plain_reader(writing, defaults)
    from ottla.registry.compatibility.avro import check_avro  # noqa: PLC0415 - once for each schema
    from ottla.registry.schemas.avro import parse_avro  # noqa: PLC0415

    reasons = check_avro(parse_avro(json.dumps(reader)).root, parse_avro(json.dumps(document)).root)
    if reasons:
        raise Undecodable("; ".join(reason.text for reason in reasons[:3]))
    reading = fastavro.parse_schema(reader)

    def resolve(value: bytes, start: int) -> dict[str, Any]:
        stream = io.BytesIO(value)
        stream.seek(start)
        record = fastavro.schemaless_reader(stream, writing, reading)
        _all_used(stream, value)
        return {single: record} if single else record

    return resolve


def _plain_reader(writing: Any, defaults: dict[str, Any]) -> ReadBody:
    read = fastavro.schemaless_reader

    def decode(value: bytes, start: int) -> dict[str, Any]:
        stream = io.BytesIO(value)
        stream.seek(start)
        record: dict[str, Any] = read(stream, writing, None)
        if stream.tell() != len(value):
            _all_used(stream, value)
        return {**defaults, **record} if defaults else record

    return decode


def _all_used(stream: io.BytesIO, value: bytes) -> None:
    left = len(value) - stream.tell()
    if left:
        raise Undecodable(f"{left} bytes are left over after the record")


def fillings(writer: Any, reader: Any) -> dict[str, Any] | None:
    """What a record of the writer lacks, if that is all there is to do; None: Avro's rules are needed."""
    if writer == reader:
        return {}
    if not (isinstance(writer, dict) and isinstance(reader, dict)):
        return None
    if writer.get("type") != "record" or reader.get("type") != "record" or writer.get("name") != reader.get("name"):
        return None
    written = {field["name"]: field["type"] for field in writer["fields"]}
    found: dict[str, Any] = {}
    for field in reader["fields"]:
        if field.get("aliases"):
            return None
        if field["name"] in written:
            if not _reads(written[field["name"]], field["type"]):
                return None
        elif "default" not in field or not isinstance(field["default"], int | float | str | bool | None):
            return None
        else:
            found[field["name"]] = field["default"]
    return found


def _reads(writer: Any, reader: Any) -> bool:
    if writer == reader:
        return True
    if isinstance(reader, list) and "null" in reader and len(reader) == 2:
        return _reads(writer, next(branch for branch in reader if branch != "null"))
    return isinstance(writer, str) and isinstance(reader, str) and (writer, reader) in _WIDER


# JSON and Protobuf.


def _json_reader(written: RegistrySchema, single: str) -> ReadBody:
    if written.schema_type != "JSON":
        raise Undecodable(f"it is a schema of type {written.schema_type}, and the format is json")

    def decode(value: bytes, start: int) -> dict[str, Any]:
        try:
            record = msgspec.json.decode(memoryview(value)[start:])
        except msgspec.DecodeError as error:
            raise Undecodable(f"not JSON: {error}") from None
        if single:
            return {single: record}
        if not isinstance(record, dict):
            raise Undecodable("it is no JSON object, and only those have columns")
        return record

    return decode


def _protobuf_reader(written: RegistrySchema, shape: str, name: str) -> ReadBody:
    from ottla.spark.formats.registry_protobuf import make_reader  # noqa: PLC0415 - where there is Protobuf

    return make_reader(written, shape, name)
