"""Messages of alter_configs. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class AlterableConfig(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("value", "string", 0, nullable_since=0),
    )
    name: str = ""
    value: str | None = ""


class AlterConfigsResource(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resource_type", "int8", 0),
        Field("resource_name", "string", 0),
        Field("configs", AlterableConfig, 0, array=True),
    )
    resource_type: int = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = field(default_factory=list[AlterableConfig])


class AlterConfigsRequest(TopLevel):
    NAME: ClassVar[str] = "AlterConfigs"
    API_KEY: ClassVar[int] = 33
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resources", AlterConfigsResource, 0, array=True),
        Field("validate_only", "bool", 0),
    )
    resources: list[AlterConfigsResource] = field(default_factory=list[AlterConfigsResource])
    validate_only: bool = False


class AlterConfigsResourceResponse(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
        Field("resource_type", "int8", 0),
        Field("resource_name", "string", 0),
    )
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""


class AlterConfigsResponse(TopLevel):
    NAME: ClassVar[str] = "AlterConfigs"
    API_KEY: ClassVar[int] = 33
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("responses", AlterConfigsResourceResponse, 0, array=True),
    )
    throttle_time_ms: int = 0
    responses: list[AlterConfigsResourceResponse] = field(default_factory=list[AlterConfigsResourceResponse])
