"""Messages of describe_configs. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class DescribeConfigsResource(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resource_type", "int8", 1),
        Field("resource_name", "string", 1),
        Field("configuration_keys", "string", 1, array=True, nullable_since=1),
    )
    resource_type: int = 0
    resource_name: str = ""
    configuration_keys: list[str] | None = field(default_factory=list[str])


class DescribeConfigsRequest(TopLevel):
    NAME: ClassVar[str] = "DescribeConfigs"
    API_KEY: ClassVar[int] = 32
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resources", DescribeConfigsResource, 1, array=True),
        Field("include_synonyms", "bool", 1),
        Field("include_documentation", "bool", 3),
    )
    resources: list[DescribeConfigsResource] = field(default_factory=list[DescribeConfigsResource])
    include_synonyms: bool = False
    include_documentation: bool = False


class DescribeConfigsSynonym(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 1),
        Field("value", "string", 1, nullable_since=1),
        Field("source", "int8", 1),
    )
    name: str = ""
    value: str | None = ""
    source: int = 0


class DescribeConfigsResourceResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 1),
        Field("value", "string", 1, nullable_since=1),
        Field("read_only", "bool", 1),
        Field("config_source", "int8", 1),
        Field("is_sensitive", "bool", 1),
        Field("synonyms", DescribeConfigsSynonym, 1, array=True),
        Field("config_type", "int8", 3),
        Field("documentation", "string", 3, nullable_since=3),
    )
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False
    synonyms: list[DescribeConfigsSynonym] = field(default_factory=list[DescribeConfigsSynonym])
    config_type: int = 0
    documentation: str | None = ""


class DescribeConfigsResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 1),
        Field("error_message", "string", 1, nullable_since=1),
        Field("resource_type", "int8", 1),
        Field("resource_name", "string", 1),
        Field("configs", DescribeConfigsResourceResult, 1, array=True),
    )
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    configs: list[DescribeConfigsResourceResult] = field(default_factory=list[DescribeConfigsResourceResult])


class DescribeConfigsResponse(TopLevel):
    NAME: ClassVar[str] = "DescribeConfigs"
    API_KEY: ClassVar[int] = 32
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1),
        Field("results", DescribeConfigsResult, 1, array=True),
    )
    throttle_time_ms: int = 0
    results: list[DescribeConfigsResult] = field(default_factory=list[DescribeConfigsResult])
