"""Messages of consumer_protocol_subscription. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class TopicPartition(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", 1),
        Field("partitions", "int32", 1, array=True),
    )
    topic: str = ""
    partitions: list[int] = field(default_factory=list[int])


class ConsumerProtocolSubscription(TopLevel):
    NAME: ClassVar[str] = "ConsumerProtocolSubscription"
    API_KEY: ClassVar[int] = -1
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int] = 32768
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", "string", 0, array=True),
        Field("user_data", "bytes", 0, nullable_since=0),
        Field("owned_partitions", TopicPartition, 1, array=True),
        Field("generation_id", "int32", 2),
        Field("rack_id", "string", 3, nullable_since=3),
    )
    topics: list[str] = field(default_factory=list[str])
    user_data: bytes | None = None
    owned_partitions: list[TopicPartition] = field(default_factory=list[TopicPartition])
    generation_id: int = -1
    rack_id: str | None = None
