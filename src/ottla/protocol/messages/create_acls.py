"""Messages of create_acls. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class AclCreation(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resource_type", "int8", 1),
        Field("resource_name", "string", 1),
        Field("resource_pattern_type", "int8", 1),
        Field("principal", "string", 1),
        Field("host", "string", 1),
        Field("operation", "int8", 1),
        Field("permission_type", "int8", 1),
    )
    resource_type: int = 0
    resource_name: str = ""
    resource_pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


class CreateAclsRequest(TopLevel):
    NAME: ClassVar[str] = "CreateAcls"
    API_KEY: ClassVar[int] = 30
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("creations", AclCreation, 1, array=True),
    )
    creations: list[AclCreation] = field(default_factory=list[AclCreation])


class AclCreationResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 1),
        Field("error_message", "string", 1, nullable_since=1),
    )
    error_code: int = 0
    error_message: str | None = ""


class CreateAclsResponse(TopLevel):
    NAME: ClassVar[str] = "CreateAcls"
    API_KEY: ClassVar[int] = 30
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1),
        Field("results", AclCreationResult, 1, array=True),
    )
    throttle_time_ms: int = 0
    results: list[AclCreationResult] = field(default_factory=list[AclCreationResult])
