"""Messages of list_groups. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class ListGroupsRequest(TopLevel):
    NAME: ClassVar[str] = "ListGroups"
    API_KEY: ClassVar[int] = 16
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("states_filter", "string", 4, array=True),
        Field("types_filter", "string", 5, array=True),
    )
    states_filter: list[str] = field(default_factory=list[str])
    types_filter: list[str] = field(default_factory=list[str])


class ListedGroup(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0),
        Field("protocol_type", "string", 0),
        Field("group_state", "string", 4),
        Field("group_type", "string", 5),
    )
    group_id: str = ""
    protocol_type: str = ""
    group_state: str = ""
    group_type: str = ""


class ListGroupsResponse(TopLevel):
    NAME: ClassVar[str] = "ListGroups"
    API_KEY: ClassVar[int] = 16
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1),
        Field("error_code", "int16", 0),
        Field("groups", ListedGroup, 0, array=True),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    groups: list[ListedGroup] = field(default_factory=list[ListedGroup])
