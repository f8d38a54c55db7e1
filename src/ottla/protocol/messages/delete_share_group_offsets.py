"""Messages of delete_share_group_offsets. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from msgspec import field

from ottla.protocol.schema import NO_UUID, Field, Message, TopLevel


class DeleteShareGroupOffsetsRequestTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 0),
    )
    topic_name: str = ""


class DeleteShareGroupOffsetsRequest(TopLevel):
    NAME: ClassVar[str] = "DeleteShareGroupOffsets"
    API_KEY: ClassVar[int] = 92
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0),
        Field("topics", DeleteShareGroupOffsetsRequestTopic, 0, array=True),
    )
    group_id: str = ""
    topics: list[DeleteShareGroupOffsetsRequestTopic] = field(default_factory=list[DeleteShareGroupOffsetsRequestTopic])


class DeleteShareGroupOffsetsResponseTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 0),
        Field("topic_id", "uuid", 0),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
    )
    topic_name: str = ""
    topic_id: UUID = NO_UUID
    error_code: int = 0
    error_message: str | None = None


class DeleteShareGroupOffsetsResponse(TopLevel):
    NAME: ClassVar[str] = "DeleteShareGroupOffsets"
    API_KEY: ClassVar[int] = 92
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
        Field("responses", DeleteShareGroupOffsetsResponseTopic, 0, array=True),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: list[DeleteShareGroupOffsetsResponseTopic] = field(default_factory=list[DeleteShareGroupOffsetsResponseTopic])
