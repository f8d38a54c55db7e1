"""Messages of control_record_type_schema. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from ottla.protocol.schema import Field, TopLevel


class ControlRecordTypeSchema(TopLevel):
    NAME: ClassVar[str] = "ControlRecordTypeSchema"
    API_KEY: ClassVar[int] = -1
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 32768
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("type_", "int16", 0),
    )
    type_: int = 0
