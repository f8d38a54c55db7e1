"""Messages of controller_registration. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from msgspec import field

from ottla.protocol.schema import NO_UUID, Field, Message, TopLevel


class Feature(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("min_supported_version", "int16", 0),
        Field("max_supported_version", "int16", 0),
    )
    name: str = ""
    min_supported_version: int = 0
    max_supported_version: int = 0


class Listener(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("host", "string", 0),
        Field("port", "uint16", 0),
        Field("security_protocol", "int16", 0),
    )
    name: str = ""
    host: str = ""
    port: int = 0
    security_protocol: int = 0


class ControllerRegistrationRequest(TopLevel):
    NAME: ClassVar[str] = "ControllerRegistration"
    API_KEY: ClassVar[int] = 70
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("controller_id", "int32", 0),
        Field("incarnation_id", "uuid", 0),
        Field("zk_migration_ready", "bool", 0),
        Field("listeners", Listener, 0, array=True),
        Field("features", Feature, 0, array=True),
    )
    controller_id: int = 0
    incarnation_id: UUID = NO_UUID
    zk_migration_ready: bool = False
    listeners: list[Listener] = field(default_factory=list[Listener])
    features: list[Feature] = field(default_factory=list[Feature])


class ControllerRegistrationResponse(TopLevel):
    NAME: ClassVar[str] = "ControllerRegistration"
    API_KEY: ClassVar[int] = 70
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
