"""What stands before a message on a connection: the size, and the request or response header."""

import struct

import msgspec

from ottla.protocol import varint
from ottla.protocol.errors import MalformedMessage

SIZE = struct.Struct(">i")
_REQUEST = struct.Struct(">hhih")
_CORRELATION = struct.Struct(">i")
_SIZE_AND_CORRELATION = struct.Struct(">ii")
_SIZE_CORRELATION_AND_TAGS = struct.Struct(">iib")

Buffer = bytes | bytearray | memoryview


class RequestHeader(msgspec.Struct):
    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    body_start: int


def read_request_header(frame: Buffer, flexible_from: "dict[int, int]") -> RequestHeader:
    """Read the header of a request. `flexible_from` tells by API key from which version headers carry tags."""
    try:
        api_key, version, correlation_id, length = _REQUEST.unpack_from(frame)
        position = _REQUEST.size
        client_id = None
        if length >= 0:
            end = position + length
            if end > len(frame):
                raise MalformedMessage("the client id is longer than the request")
            client_id = str(frame[position:end], "utf-8")
            position = end
        if version >= flexible_from.get(api_key, 1 << 15):
            position = _skip_tags(frame, position)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise MalformedMessage(f"the request header does not parse: {error}") from None
    return RequestHeader(api_key, version, correlation_id, client_id, position)


def _skip_tags(frame: Buffer, position: int) -> int:
    if frame[position] == 0:
        return position + 1
    count, position = varint.read_unsigned(frame, position)
    for _ in range(count):
        _, position = varint.read_unsigned(frame, position)
        size, position = varint.read_unsigned(frame, position)
        position += size
        if position > len(frame):
            raise MalformedMessage("a tagged field of the request header is cut short")
    return position


def request_frame(
    api_key: int, version: int, correlation_id: int, client_id: str | None, body: Buffer, *, flexible: bool
) -> bytes:
    name = b"" if client_id is None else client_id.encode()
    head = _REQUEST.pack(api_key, version, correlation_id, -1 if client_id is None else len(name)) + name
    if flexible:
        head += b"\x00"
    return SIZE.pack(len(head) + len(body)) + head + bytes(body)


def response_head(correlation_id: int, body_bytes: int, *, flexible: bool) -> bytes:
    """The size and header of a response whose body is sent behind it."""
    if flexible:
        return _SIZE_CORRELATION_AND_TAGS.pack(body_bytes + 5, correlation_id, 0)
    return _SIZE_AND_CORRELATION.pack(body_bytes + 4, correlation_id)


def read_response_header(frame: Buffer, *, flexible: bool) -> tuple[int, int]:
    """Return (correlation id, where the body starts) of a response frame without its size."""
    try:
        (correlation_id,) = _CORRELATION.unpack_from(frame)
        return correlation_id, _skip_tags(frame, _CORRELATION.size) if flexible else _CORRELATION.size
    except (struct.error, IndexError) as error:
        raise MalformedMessage(f"the response header does not parse: {error}") from None
