"""Messages of alter_client_quotas. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class OpData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", 0),
        Field("value", "float64", 0),
        Field("remove", "bool", 0),
    )
    key: str = ""
    value: float = 0.0
    remove: bool = False


class RequestEntityData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("entity_type", "string", 0),
        Field("entity_name", "string", 0, nullable_since=0),
    )
    entity_type: str = ""
    entity_name: str | None = ""


class RequestEntryData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("entity", RequestEntityData, 0, array=True),
        Field("ops", OpData, 0, array=True),
    )
    entity: list[RequestEntityData] = field(default_factory=list[RequestEntityData])
    ops: list[OpData] = field(default_factory=list[OpData])


class AlterClientQuotasRequest(TopLevel):
    NAME: ClassVar[str] = "AlterClientQuotas"
    API_KEY: ClassVar[int] = 49
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("entries", RequestEntryData, 0, array=True),
        Field("validate_only", "bool", 0),
    )
    entries: list[RequestEntryData] = field(default_factory=list[RequestEntryData])
    validate_only: bool = False


class ResponseEntityData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("entity_type", "string", 0),
        Field("entity_name", "string", 0, nullable_since=0),
    )
    entity_type: str = ""
    entity_name: str | None = ""


class ResponseEntryData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
        Field("entity", ResponseEntityData, 0, array=True),
    )
    error_code: int = 0
    error_message: str | None = ""
    entity: list[ResponseEntityData] = field(default_factory=list[ResponseEntityData])


class AlterClientQuotasResponse(TopLevel):
    NAME: ClassVar[str] = "AlterClientQuotas"
    API_KEY: ClassVar[int] = 49
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("entries", ResponseEntryData, 0, array=True),
    )
    throttle_time_ms: int = 0
    entries: list[ResponseEntryData] = field(default_factory=list[ResponseEntryData])
