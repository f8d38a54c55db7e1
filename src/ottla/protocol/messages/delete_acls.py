"""Messages of delete_acls. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class DeleteAclsFilter(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resource_type_filter", "int8", 1),
        Field("resource_name_filter", "string", 1, nullable_since=1),
        Field("pattern_type_filter", "int8", 1),
        Field("principal_filter", "string", 1, nullable_since=1),
        Field("host_filter", "string", 1, nullable_since=1),
        Field("operation", "int8", 1),
        Field("permission_type", "int8", 1),
    )
    resource_type_filter: int = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int = 0
    permission_type: int = 0


class DeleteAclsRequest(TopLevel):
    NAME: ClassVar[str] = "DeleteAcls"
    API_KEY: ClassVar[int] = 31
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("filters", DeleteAclsFilter, 1, array=True),
    )
    filters: list[DeleteAclsFilter] = field(default_factory=list[DeleteAclsFilter])


class DeleteAclsMatchingAcl(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 1),
        Field("error_message", "string", 1, nullable_since=1),
        Field("resource_type", "int8", 1),
        Field("resource_name", "string", 1),
        Field("pattern_type", "int8", 1),
        Field("principal", "string", 1),
        Field("host", "string", 1),
        Field("operation", "int8", 1),
        Field("permission_type", "int8", 1),
    )
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


class DeleteAclsFilterResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 1),
        Field("error_message", "string", 1, nullable_since=1),
        Field("matching_acls", DeleteAclsMatchingAcl, 1, array=True),
    )
    error_code: int = 0
    error_message: str | None = ""
    matching_acls: list[DeleteAclsMatchingAcl] = field(default_factory=list[DeleteAclsMatchingAcl])


class DeleteAclsResponse(TopLevel):
    NAME: ClassVar[str] = "DeleteAcls"
    API_KEY: ClassVar[int] = 31
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1),
        Field("filter_results", DeleteAclsFilterResult, 1, array=True),
    )
    throttle_time_ms: int = 0
    filter_results: list[DeleteAclsFilterResult] = field(default_factory=list[DeleteAclsFilterResult])
