"""Messages of sync_group. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class SyncGroupRequestAssignment(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", 0),
        Field("assignment", "bytes", 0),
    )
    member_id: str = ""
    assignment: bytes = b""


class SyncGroupRequest(TopLevel):
    NAME: ClassVar[str] = "SyncGroup"
    API_KEY: ClassVar[int] = 14
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0),
        Field("generation_id", "int32", 0),
        Field("member_id", "string", 0),
        Field("group_instance_id", "string", 3, nullable_since=3),
        Field("protocol_type", "string", 5, nullable_since=5),
        Field("protocol_name", "string", 5, nullable_since=5),
        Field("assignments", SyncGroupRequestAssignment, 0, array=True),
    )
    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: list[SyncGroupRequestAssignment] = field(default_factory=list[SyncGroupRequestAssignment])


class SyncGroupResponse(TopLevel):
    NAME: ClassVar[str] = "SyncGroup"
    API_KEY: ClassVar[int] = 14
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1),
        Field("error_code", "int16", 0),
        Field("protocol_type", "string", 5, nullable_since=5),
        Field("protocol_name", "string", 5, nullable_since=5),
        Field("assignment", "bytes", 0),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""
