"""Messages of delete_topics. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from msgspec import field

from ottla.protocol.schema import NO_UUID, Field, Message, TopLevel


class DeleteTopicState(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 6, nullable_since=6),
        Field("topic_id", "uuid", 6),
    )
    name: str | None = None
    topic_id: UUID = NO_UUID


class DeleteTopicsRequest(TopLevel):
    NAME: ClassVar[str] = "DeleteTopics"
    API_KEY: ClassVar[int] = 20
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 6
    FLEXIBLE_FROM: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_names", "string", 1, until=5, array=True),
        Field("topics", DeleteTopicState, 6, array=True),
        Field("timeout_ms", "int32", 1),
    )
    topic_names: list[str] = field(default_factory=list[str])
    topics: list[DeleteTopicState] = field(default_factory=list[DeleteTopicState])
    timeout_ms: int = 0


class DeletableTopicResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 1, nullable_since=6),
        Field("topic_id", "uuid", 6),
        Field("error_code", "int16", 1),
        Field("error_message", "string", 5, nullable_since=5),
    )
    name: str | None = ""
    topic_id: UUID = NO_UUID
    error_code: int = 0
    error_message: str | None = None


class DeleteTopicsResponse(TopLevel):
    NAME: ClassVar[str] = "DeleteTopics"
    API_KEY: ClassVar[int] = 20
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 6
    FLEXIBLE_FROM: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1),
        Field("responses", DeletableTopicResult, 1, array=True),
    )
    throttle_time_ms: int = 0
    responses: list[DeletableTopicResult] = field(default_factory=list[DeletableTopicResult])
