"""The table of kinds: from a type's name to what reads it."""

from collections.abc import Sequence

from ottla.registry.content import AVRO, JSON
from ottla.registry.errors import InvalidSchema
from ottla.registry.limits import LIMITS, SchemaLimits
from ottla.registry.schemas.parsed import ParsedSchema, Referenced


def parse_schema(
    schema_type: str, text: str, references: Sequence[Referenced] = (), limits: SchemaLimits = LIMITS
) -> ParsedSchema:
    """Each kind is imported when the first schema of it comes."""
    if not text.strip():
        raise InvalidSchema("Empty schema")
    if schema_type == AVRO:
        from ottla.registry.schemas.avro import parse_avro  # noqa: PLC0415

        return parse_avro(text, references, limits)
    if schema_type == JSON:
        from ottla.registry.schemas.json_schema import parse_json_schema  # noqa: PLC0415

        return parse_json_schema(text, references, limits)
    from ottla.registry.schemas.protobuf import parse_protobuf  # noqa: PLC0415

    return parse_protobuf(text, references, limits)
