"""Messages of list_config_resources. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class ListConfigResourcesRequest(TopLevel):
    NAME: ClassVar[str] = "ListConfigResources"
    API_KEY: ClassVar[int] = 74
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resource_types", "int8", 1, array=True),
    )
    resource_types: list[int] = field(default_factory=list[int])


class ConfigResource(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resource_name", "string", 0),
        Field("resource_type", "int8", 1),
    )
    resource_name: str = ""
    resource_type: int = 16


class ListConfigResourcesResponse(TopLevel):
    NAME: ClassVar[str] = "ListConfigResources"
    API_KEY: ClassVar[int] = 74
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("error_code", "int16", 0),
        Field("config_resources", ConfigResource, 0, array=True),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    config_resources: list[ConfigResource] = field(default_factory=list[ConfigResource])
