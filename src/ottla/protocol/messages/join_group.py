"""Messages of join_group. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class JoinGroupRequestProtocol(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("metadata", "bytes", 0),
    )
    name: str = ""
    metadata: bytes = b""


class JoinGroupRequest(TopLevel):
    NAME: ClassVar[str] = "JoinGroup"
    API_KEY: ClassVar[int] = 11
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 9
    FLEXIBLE_FROM: ClassVar[int] = 6
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0),
        Field("session_timeout_ms", "int32", 0),
        Field("rebalance_timeout_ms", "int32", 1),
        Field("member_id", "string", 0),
        Field("group_instance_id", "string", 5, nullable_since=5),
        Field("protocol_type", "string", 0),
        Field("protocols", JoinGroupRequestProtocol, 0, array=True),
        Field("reason", "string", 8, nullable_since=8),
    )
    group_id: str = ""
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str = ""
    protocols: list[JoinGroupRequestProtocol] = field(default_factory=list[JoinGroupRequestProtocol])
    reason: str | None = None


class JoinGroupResponseMember(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", 0),
        Field("group_instance_id", "string", 5, nullable_since=5),
        Field("metadata", "bytes", 0),
    )
    member_id: str = ""
    group_instance_id: str | None = None
    metadata: bytes = b""


class JoinGroupResponse(TopLevel):
    NAME: ClassVar[str] = "JoinGroup"
    API_KEY: ClassVar[int] = 11
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 9
    FLEXIBLE_FROM: ClassVar[int] = 6
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 2),
        Field("error_code", "int16", 0),
        Field("generation_id", "int32", 0),
        Field("protocol_type", "string", 7, nullable_since=7),
        Field("protocol_name", "string", 0, nullable_since=7),
        Field("leader", "string", 0),
        Field("skip_assignment", "bool", 9),
        Field("member_id", "string", 0),
        Field("members", JoinGroupResponseMember, 0, array=True),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = ""
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: list[JoinGroupResponseMember] = field(default_factory=list[JoinGroupResponseMember])
