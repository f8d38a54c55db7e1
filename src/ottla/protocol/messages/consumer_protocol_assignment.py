"""Messages of consumer_protocol_assignment. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class TopicPartition(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", 0),
        Field("partitions", "int32", 0, array=True),
    )
    topic: str = ""
    partitions: list[int] = field(default_factory=list[int])


class ConsumerProtocolAssignment(TopLevel):
    NAME: ClassVar[str] = "ConsumerProtocolAssignment"
    API_KEY: ClassVar[int] = -1
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int] = 32768
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("assigned_partitions", TopicPartition, 0, array=True),
        Field("user_data", "bytes", 0, nullable_since=0),
    )
    assigned_partitions: list[TopicPartition] = field(default_factory=list[TopicPartition])
    user_data: bytes | None = None
