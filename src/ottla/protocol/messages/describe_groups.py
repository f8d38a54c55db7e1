"""Messages of describe_groups. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class DescribeGroupsRequest(TopLevel):
    NAME: ClassVar[str] = "DescribeGroups"
    API_KEY: ClassVar[int] = 15
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 6
    FLEXIBLE_FROM: ClassVar[int] = 5
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("groups", "string", 0, array=True),
        Field("include_authorized_operations", "bool", 3),
    )
    groups: list[str] = field(default_factory=list[str])
    include_authorized_operations: bool = False


class DescribedGroupMember(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", 0),
        Field("group_instance_id", "string", 4, nullable_since=4),
        Field("client_id", "string", 0),
        Field("client_host", "string", 0),
        Field("member_metadata", "bytes", 0),
        Field("member_assignment", "bytes", 0),
    )
    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


class DescribedGroup(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0),
        Field("error_message", "string", 6, nullable_since=6),
        Field("group_id", "string", 0),
        Field("group_state", "string", 0),
        Field("protocol_type", "string", 0),
        Field("protocol_data", "string", 0),
        Field("members", DescribedGroupMember, 0, array=True),
        Field("authorized_operations", "int32", 3),
    )
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedGroupMember] = field(default_factory=list[DescribedGroupMember])
    authorized_operations: int = -2147483648


class DescribeGroupsResponse(TopLevel):
    NAME: ClassVar[str] = "DescribeGroups"
    API_KEY: ClassVar[int] = 15
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 6
    FLEXIBLE_FROM: ClassVar[int] = 5
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1),
        Field("groups", DescribedGroup, 0, array=True),
    )
    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = field(default_factory=list[DescribedGroup])
