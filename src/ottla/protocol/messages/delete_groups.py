"""Messages of delete_groups. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class DeleteGroupsRequest(TopLevel):
    NAME: ClassVar[str] = "DeleteGroups"
    API_KEY: ClassVar[int] = 42
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("groups_names", "string", 0, array=True),
    )
    groups_names: list[str] = field(default_factory=list[str])


class DeletableGroupResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0),
        Field("error_code", "int16", 0),
    )
    group_id: str = ""
    error_code: int = 0


class DeleteGroupsResponse(TopLevel):
    NAME: ClassVar[str] = "DeleteGroups"
    API_KEY: ClassVar[int] = 42
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("results", DeletableGroupResult, 0, array=True),
    )
    throttle_time_ms: int = 0
    results: list[DeletableGroupResult] = field(default_factory=list[DeletableGroupResult])
