"""How a message is described: one class for all its versions, and a table of its fields.

The classes in `messages/` are generated from Kafka's schemas by tools/generate_messages.py.
"""

from typing import ClassVar, NamedTuple
from uuid import UUID

import msgspec

Records = bytes | bytearray | memoryview | None
"""Record batches, opaque here. Decoding gives a view of the received frame: nothing is copied."""

NO_UUID = UUID(int=0)

Kind = str | type["Message"]


class Field(NamedTuple):
    """One field. `kind` is a primitive's name or a nested message class."""

    name: str
    kind: Kind
    since: int
    until: int | None = None
    array: bool = False
    nullable_since: int | None = None
    tag: int | None = None

    def in_version(self, version: int) -> bool:
        return self.since <= version and (self.until is None or version <= self.until)

    def nullable_in(self, version: int) -> bool:
        return self.nullable_since is not None and self.nullable_since <= version


class Message(msgspec.Struct):
    """A message or a part of one. Fields absent from a version are skipped there and keep their defaults."""

    FIELDS: ClassVar[tuple[Field, ...]] = ()


class TopLevel(Message):
    """A whole request, response or stored document."""

    NAME: ClassVar[str] = ""
    API_KEY: ClassVar[int] = -1
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 1 << 15
