"""Messages of describe_client_quotas. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class ComponentData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("entity_type", "string", 0),
        Field("match_type", "int8", 0),
        Field("match", "string", 0, nullable_since=0),
    )
    entity_type: str = ""
    match_type: int = 0
    match: str | None = ""


class DescribeClientQuotasRequest(TopLevel):
    NAME: ClassVar[str] = "DescribeClientQuotas"
    API_KEY: ClassVar[int] = 48
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("components", ComponentData, 0, array=True),
        Field("strict", "bool", 0),
    )
    components: list[ComponentData] = field(default_factory=list[ComponentData])
    strict: bool = False


class ValueData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", 0),
        Field("value", "float64", 0),
    )
    key: str = ""
    value: float = 0.0


class EntityData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("entity_type", "string", 0),
        Field("entity_name", "string", 0, nullable_since=0),
    )
    entity_type: str = ""
    entity_name: str | None = ""


class EntryData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("entity", EntityData, 0, array=True),
        Field("values", ValueData, 0, array=True),
    )
    entity: list[EntityData] = field(default_factory=list[EntityData])
    values: list[ValueData] = field(default_factory=list[ValueData])


class DescribeClientQuotasResponse(TopLevel):
    NAME: ClassVar[str] = "DescribeClientQuotas"
    API_KEY: ClassVar[int] = 48
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
        Field("entries", EntryData, 0, array=True, nullable_since=0),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    entries: list[EntryData] | None = field(default_factory=list[EntryData])
