"""How a record says which schema it was written with: byte 0 and the id before the payload, or a guid in a header."""

import uuid
from typing import NamedTuple

from ottla.protocol.errors import MalformedMessage
from ottla.protocol.varint import read_signed, signed

ID_MAGIC, GUID_MAGIC = 0, 1
ID_BYTES = 5
GUID_BYTES = 17
KEY_HEADER, VALUE_HEADER = "__key_schema_id", "__value_schema_id"
INDEXES_MAX = 100


class BadFraming(ValueError):
    """Bytes that do not begin as a framed value does; the message says how."""


class Framed(NamedTuple):
    """Where the schema's id ends and the rest begins; one of id and guid is known."""

    schema_id: int | None
    guid: str | None
    start: int


def read_id(value: bytes) -> Framed:
    """Of a framed value, or of a header: both begin with a byte that says which."""
    if len(value) >= ID_BYTES and value[0] == ID_MAGIC:
        return Framed(int.from_bytes(value[1:ID_BYTES], "big"), None, ID_BYTES)
    if len(value) >= GUID_BYTES and value[0] == GUID_MAGIC:
        return Framed(None, str(uuid.UUID(bytes=bytes(value[1:GUID_BYTES]))), GUID_BYTES)
    raise BadFraming("it has no schema id: a framed value begins with byte 0 and the four bytes of an id")


def id_prefix(schema_id: int) -> bytes:
    return bytes([ID_MAGIC]) + schema_id.to_bytes(4, "big")


def guid_header(guid: str) -> bytes:
    return bytes([GUID_MAGIC]) + uuid.UUID(guid).bytes


def write_indexes(indexes: list[int]) -> bytes:
    """The path of a Protobuf message in its file; the first message is a single 0."""
    if indexes == [0]:
        return b"\x00"
    return b"".join(signed(number) for number in (len(indexes), *indexes))


def read_indexes(data: bytes, start: int) -> tuple[list[int], int]:
    count, at = _number(data, start)
    if count == 0:
        return [0], at
    if not 0 < count <= INDEXES_MAX:
        raise BadFraming(f"the path of a Protobuf message has {count} parts")
    indexes = []
    for _ in range(count):
        number, at = _number(data, at)
        indexes.append(number)
    return indexes, at


def _number(data: bytes, at: int) -> tuple[int, int]:
    try:
        return read_signed(data, at)
    except (IndexError, MalformedMessage):
        raise BadFraming("the path of a Protobuf message is cut short, or no number") from None
