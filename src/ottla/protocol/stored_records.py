"""Reading what coordinators keep in their topics: keys and values of records, in Kafka's formats."""

import struct

from ottla.protocol import varint
from ottla.protocol.compression import Buffer
from ottla.protocol.errors import MalformedMessage

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")


class StoredReader:
    """Walks a stored key or value; whatever does not fit raises MalformedMessage."""

    def __init__(self, buffer: Buffer, what: str) -> None:
        self._buffer = buffer
        self._position = 0
        self._what = what
        self.flexible = False

    def version(self, known_to: int, flexible_from: int) -> int:
        version = self.int16()
        self.check_version(version, known_to, flexible_from)
        return version

    def check_version(self, version: int, known_to: int, flexible_from: int) -> None:
        if not 0 <= version <= known_to:
            raise MalformedMessage(f"version {version} of a {self._what} record is not known")
        self.flexible = version >= flexible_from

    def unpack(self, layout: struct.Struct) -> tuple[int, ...]:
        try:
            values = layout.unpack_from(self._buffer, self._position)
        except struct.error:
            raise MalformedMessage(f"a {self._what} record is cut short") from None
        self._position += layout.size
        return values

    def int16(self) -> int:
        return self.unpack(_INT16)[0]

    def int32(self) -> int:
        return self.unpack(_INT32)[0]

    def int64(self) -> int:
        return self.unpack(_INT64)[0]

    def string(self) -> str:
        text = self.nullable_string()
        if text is None:
            raise MalformedMessage(f"a {self._what} record lacks a text that it must have")
        return text

    def nullable_string(self) -> str | None:
        size = self._unsigned() - 1 if self.flexible else self.int16()
        if size < 0:
            return None
        try:
            return self._take(size).decode()
        except UnicodeDecodeError:
            raise MalformedMessage(f"a {self._what} record has a text that is not UTF-8") from None

    def byte_string(self) -> bytes:
        return self._take(self._unsigned() - 1 if self.flexible else self.int32())

    def count(self, *, nullable: bool = False) -> int:
        """How many elements follow. Null is minus one, and says the same as none."""
        count = self._unsigned() - 1 if self.flexible else self.int32()
        if not (-1 if nullable else 0) <= count <= len(self._buffer):
            raise MalformedMessage(f"a {self._what} record cannot have {count} elements")
        return max(count, 0)

    def tagged_fields(self) -> list[tuple[int, bytes]]:
        """None in a version that has no such thing."""
        if not self.flexible:
            return []
        return [(self._unsigned(), self._take(self._unsigned())) for _ in range(self._unsigned())]

    def _unsigned(self) -> int:
        try:
            value, self._position = varint.read_unsigned(self._buffer, self._position)
        except IndexError:
            raise MalformedMessage(f"a {self._what} record is cut short") from None
        return value

    def _take(self, size: int) -> bytes:
        end = self._position + size
        if size < 0 or end > len(self._buffer):
            raise MalformedMessage(f"a {self._what} record is cut short")
        content = bytes(self._buffer[self._position : end])
        self._position = end
        return content
