"""Messages of leave_group. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class MemberIdentity(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", 3),
        Field("group_instance_id", "string", 3, nullable_since=3),
        Field("reason", "string", 5, nullable_since=5),
    )
    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None


class LeaveGroupRequest(TopLevel):
    NAME: ClassVar[str] = "LeaveGroup"
    API_KEY: ClassVar[int] = 13
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0),
        Field("member_id", "string", 0, until=2),
        Field("members", MemberIdentity, 3, array=True),
    )
    group_id: str = ""
    member_id: str = ""
    members: list[MemberIdentity] = field(default_factory=list[MemberIdentity])


class MemberResponse(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", 3),
        Field("group_instance_id", "string", 3, nullable_since=3),
        Field("error_code", "int16", 3),
    )
    member_id: str = ""
    group_instance_id: str | None = ""
    error_code: int = 0


class LeaveGroupResponse(TopLevel):
    NAME: ClassVar[str] = "LeaveGroup"
    API_KEY: ClassVar[int] = 13
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1),
        Field("error_code", "int16", 0),
        Field("members", MemberResponse, 3, array=True),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    members: list[MemberResponse] = field(default_factory=list[MemberResponse])
