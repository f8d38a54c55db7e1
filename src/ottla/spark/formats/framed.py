"""What Avro and Protobuf share: a schema that comes as a file, and values that may begin with a schema's id."""

from typing import Any, ClassVar, Literal

import msgspec
from pyspark.sql.types import StructType

from ottla.spark.formats.decoding import Undecodable
from ottla.spark.formats.spec import (
    REGISTRY_HEADER_BYTES,
    FormatProblem,
    FormatSpec,
    Tombstones,
    read_options,
    registry_header,
    registry_schema_id,
)


class FramedOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    tombstones: Tombstones = "reject"
    framing: Literal["none", "confluent"] = "none"
    """Whether values begin with a schema's id, as serializers of a schema registry write it."""
    schema_id: int | None = None
    """The id to write, with `framing: confluent`."""


class FramedFormat:
    NAME: ClassVar[str]
    Options: ClassVar[type[Any]]
    SCHEMA_IS: ClassVar[str]
    """What `schema` holds, in words."""

    def __init__(self, spec: FormatSpec) -> None:
        self._spec = spec
        self._options = read_options(spec, self.Options)
        if isinstance(spec.schema, StructType):
            raise FormatProblem(f"format {self.NAME}: `schema` is {self.SCHEMA_IS}")
        if self._options.schema_id is not None and self._options.framing == "none":
            raise FormatProblem(f"format {self.NAME}: `schema_id` is written with `framing: confluent`")

    @property
    def _framed(self) -> bool:
        return bool(self._options.framing == "confluent")

    def _header(self) -> bytes:
        """What values that are written begin with."""
        if not self._framed:
            return b""
        if self._options.schema_id is None:
            raise FormatProblem(f"format {self.NAME}: say which `schema_id` to write with `framing: confluent`")
        return registry_header(self._options.schema_id)


def body_start(value: bytes, framed: bool) -> int:
    """Where the record begins."""
    if not framed:
        return 0
    if registry_schema_id(value) is None:
        raise Undecodable("the value has no schema id (`framing: confluent` wants byte 0 and four more)")
    return REGISTRY_HEADER_BYTES


def framing_hint(value: bytes, framed: bool) -> str:
    """For a value that cannot be read: perhaps it is framed."""
    schema_id = None if framed else registry_schema_id(value)
    if schema_id is None:
        return ""
    return f" (it begins like a value framed for a schema registry, id {schema_id}: set `framing: confluent`)"
