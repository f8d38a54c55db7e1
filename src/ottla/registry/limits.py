"""How large schemas may be. Beyond it a request is refused; nobody else notices."""

from typing import NamedTuple


class SchemaLimits(NamedTuple):
    schema_bytes_max: int = 1024 * 1024
    """Of one schema's text, and of all that it refers to together."""
    depth_max: int = 100
    """Levels of nesting in a document."""
    references_max: int = 500
    """Direct and indirect, of one schema."""
    number_digits_max: int = 1000
    """Of one number in a document; comparing such numbers exactly takes work."""
    steps_max: int = 50_000
    """Of one comparison; more means a schema that was made to be expensive."""
    protoc_seconds_max: float = 10.0


LIMITS = SchemaLimits()
RECORD_BYTES_MAX = 5 * LIMITS.schema_bytes_max
"""Of the topic's records: a text of quotes doubles as JSON, and references, metadata and rules come with it."""
