"""Protobuf schemas: .proto texts, or descriptors in base64 as clients send them, and back."""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError

from ottla.registry.content import PROTOBUF
from ottla.registry.errors import InvalidSchema
from ottla.registry.limits import LIMITS, SchemaLimits
from ottla.registry.schemas.parsed import Referenced, check_encodable
from ottla.registry.schemas.proto_text import proto_text
from ottla.registry.schemas.protoc import MAIN, compile_protos

_WORDS = ("syntax", "edition", "package", "message", "enum", "import", "option", "service", "extend", "//", "/*", ";")


@dataclass(slots=True)
class ProtobufSchema:
    text: str
    files: dict[str, FileDescriptorProto]
    """The schema itself (MAIN) and all that it imports."""

    @property
    def schema_type(self) -> str:
        return PROTOBUF

    @property
    def main(self) -> FileDescriptorProto:
        return self.files[MAIN]

    @property
    def canonical(self) -> str:
        return self.text

    def normalized(self) -> str:
        return proto_text(self.main, sort=True)

    def formatted(self, form: str) -> str:
        """`serialized` is the descriptor in base64."""
        return base64.b64encode(self.descriptor()).decode() if form == "serialized" else self.text

    def descriptor(self) -> bytes:
        """The same for every text that means the same: without its name, comments and places."""
        found = FileDescriptorProto()
        found.CopyFrom(self.main)
        found.name = "default"
        return found.SerializeToString(deterministic=True)


def parse_protobuf(text: str, references: Sequence[Referenced] = (), limits: SchemaLimits = LIMITS) -> ProtobufSchema:
    own = as_text(text)
    files = {reference.name: as_text(reference.text) for reference in references}
    return ProtobufSchema(own, compile_protos({**files, MAIN: own}, limits))


def as_text(text: str) -> str:
    """A .proto text stays as it was written; a descriptor is written as one."""
    check_encodable(text, "Invalid schema")
    stripped = text.strip()
    if not stripped:
        raise InvalidSchema("the schema is empty")
    if stripped.startswith(_WORDS):
        return stripped + "\n"
    try:
        descriptor = FileDescriptorProto.FromString(base64.b64decode(stripped, validate=True))
    except (binascii.Error, DecodeError, ValueError):
        return stripped + "\n"  # protoc will say what is wrong with it
    try:
        return proto_text(descriptor)
    except (LookupError, StopIteration, TypeError, ValueError) as error:  # TypeError: a text that is not UTF-8
        raise InvalidSchema(f"the descriptor names something that it does not have: {error}") from None
