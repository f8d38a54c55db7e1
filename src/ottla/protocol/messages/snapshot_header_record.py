"""Messages of snapshot_header_record. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from ottla.protocol.schema import Field, TopLevel


class SnapshotHeaderRecord(TopLevel):
    NAME: ClassVar[str] = "SnapshotHeaderRecord"
    API_KEY: ClassVar[int] = -1
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("version", "int16", 0),
        Field("last_contained_log_timestamp", "int64", 0),
    )
    version: int = 0
    last_contained_log_timestamp: int = 0
