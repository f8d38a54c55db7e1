"""Protobuf with a registry: versions of a message as columns, values of any of them as rows, columns as a new one."""

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from google.protobuf import message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError
from pyspark.sql.types import StructType

from ottla.registry.client import RegistryClient, RegistrySchema
from ottla.registry.errors import Code, RegistryError
from ottla.registry.framing import BadFraming, read_indexes
from ottla.registry.schemas.parsed import Referenced
from ottla.registry.schemas.protobuf import parse_protobuf
from ottla.spark.formats import protobuf_messages as messages
from ottla.spark.formats.decoding import Undecodable
from ottla.spark.formats.protobuf_schemas import fits, proto_of
from ottla.spark.formats.protobuf_shapes import Shape, merge, row_reader, shape_of
from ottla.spark.formats.spec import FormatProblem

_IMPORT = re.compile(r"""(?:^|;)\s*import\s+(?:public\s+|weak\s+)?["']([^"']+)["']\s*(?=;)""", re.MULTILINE)
IMPORTS_MAX = 500
KIND = "PROTOBUF"
ROW = "Row"
"""What a record is called that nobody has named."""


@functools.lru_cache(maxsize=256)
def compiled(text: str, references: tuple[tuple[str, str], ...] = ()) -> tuple[bytes, bytes]:
    """A descriptor set of a schema and what it refers to, and the descriptor of its own file. Takes a process."""
    parsed = parse_protobuf(text, [Referenced(*each) for each in references])
    files = FileDescriptorSet(file=parsed.files.values())
    return files.SerializeToString(deterministic=True), parsed.main.SerializeToString(deterministic=True)


def names_of(schema: RegistrySchema) -> list[str]:
    """The full names of the messages of its file: the outermost in order, then what is in them."""
    main = FileDescriptorProto.FromString(compiled(schema.text, schema.references)[1])
    prefix = f"{main.package}." if main.package else ""
    level = [(f"{prefix}{message.name}", message) for message in main.message_type]
    found: list[str] = []
    while level:
        found += [name for name, _ in level]
        level = [(f"{name}.{each.name}", each) for name, message in level for each in message.nested_type]
    return found


def chosen(schema: RegistrySchema, message: str | None, record: str | None) -> str:
    """The message that is meant: the one that is named, or the first of the file."""
    if message is not None:
        return message
    names = names_of(schema)
    if not names:
        raise FormatProblem("format protobuf: the schema has no message")
    return record if record in names else names[0]


def shape_over(schemas: Sequence[RegistrySchema], name: str) -> Shape:
    """The columns of one version, or of all of them together; versions that lack the message say nothing about it."""
    *older, last = schemas
    having = [*(each for each in older if name in names_of(each)), last]
    shapes = [shape_of(messages.find(compiled(each.text, each.references)[0], name)) for each in having]
    return merge(shapes) if older else shapes[0]


# In the executors.

ReadBody = Callable[[bytes, int], dict[str, Any]]


def make_reader(written: RegistrySchema, shape: str, name: str) -> ReadBody:
    """Which message of its file a value is, stands before it."""
    if written.schema_type != KIND:
        raise Undecodable(f"it is a schema of type {written.schema_type}, and the format is protobuf")
    descriptors, described = compiled(written.text, written.references)
    main = FileDescriptorProto.FromString(described)
    if name not in names_of(written):
        raise Undecodable(f"it has no message `{name}`")
    message = messages.find(descriptors, name)
    message_type, place = message_factory.GetMessageClass(message), messages.place_in_file(message)
    to_row = row_reader(msgspec.json.decode(shape, type=Shape), message)

    def decode(value: bytes, start: int) -> dict[str, Any]:
        try:
            indexes, body = read_indexes(value, start)
        except BadFraming as error:
            raise Undecodable(str(error)) from None
        if indexes != place:
            raise Undecodable(f"it is a `{_message_name(main, indexes)}`, and `{name}` is read")
        try:
            return to_row(message_type.FromString(value[body:]))
        except DecodeError as error:
            raise Undecodable(f"not a `{name}`: {error}") from None

    return decode


def _message_name(main: Any, indexes: list[int]) -> str:
    parts = [main.package] if main.package else []
    inside = main.message_type
    for number in indexes:
        if not 0 <= number < len(inside):
            raise Undecodable(f"its schema has no message {indexes}")
        parts.append(inside[number].name)
        inside = inside[number].nested_type
    return ".".join(parts)


# Registering.


def register_columns(
    client: RegistryClient, subject: str, columns: StructType, message: str | None = None
) -> RegistrySchema:
    """The latest version if it has these columns; else a new one, in which columns keep the numbers that they had.

    `message` is the name of what the columns make; without it that of the latest version. Versions that were deleted
    count too: records that were written with them may still be there.
    """
    known = _versions(client, subject)
    latest = next((schema for schema, live in reversed(known) if live), None)
    other = latest is None or latest.schema_type != KIND  # of another type: the registry will say so
    name = message or (ROW if latest is None or other else chosen(latest, None, None))
    having = [schema for schema, _ in known if schema.schema_type == KIND and name in names_of(schema)]
    if latest in having and fits(columns, shape_over([latest], name)):
        return latest
    earlier = merge([shape_over([schema], name) for schema in having]) if having else None
    return client.register(subject, proto_of(columns, name, earlier), KIND)


def _versions(client: RegistryClient, subject: str) -> list[tuple[RegistrySchema, bool]]:
    """Oldest first, with whether it is still shown."""
    try:
        numbers = client.versions(subject, deleted=True)
    except RegistryError as error:
        if error.code != Code.SUBJECT_NOT_FOUND:
            raise
        return []
    try:
        live = client.versions(subject)
    except RegistryError as error:
        if error.code != Code.SUBJECT_NOT_FOUND:
            raise
        live = []
    return [(client.version(subject, number, deleted=True), number in live) for number in numbers]


def imports(path: Path, text: str) -> dict[str, str]:
    """The texts of the files that a .proto imports from its own folder, those that are imported first. Others are the
    language's own, or missing: then the compiler says so."""
    found: dict[str, str] = {}

    def add(inside: str) -> None:
        for name in _IMPORT.findall(inside):
            file = path.parent / name
            if name in found or not file.is_file():
                continue
            if len(found) >= IMPORTS_MAX:
                raise FormatProblem(f"format protobuf: {path} imports more than {IMPORTS_MAX} files")
            found[name] = ""  # files that import each other end here
            found[name] = file.read_text(encoding="utf-8")
            add(found[name])
            found[name] = found.pop(name)

    add(text)
    return found


Ask = Callable[[str, str, str, Sequence[Mapping[str, Any]]], RegistrySchema]
"""To register a schema, or to look it up: subject, text, type and references."""


def given_file(ask: Ask, subject: str, path: Path, text: str) -> RegistrySchema:
    """A .proto and what it imports from its folder: each of those under its own path as subject, as Confluent's
    serializers do."""
    files = imports(path, text)
    made: dict[str, dict[str, Any]] = {}

    def references(inside: str) -> list[dict[str, Any]]:
        return [made[name] for name in dict.fromkeys(_IMPORT.findall(inside)) if name in made]

    for name, inside in files.items():
        schema = ask(name, inside, KIND, references(inside))
        made[name] = {"name": name, "subject": name, "version": schema.version or -1}
    schema = ask(subject, text, KIND, references(text))
    return schema._replace(references=tuple(files.items()))
