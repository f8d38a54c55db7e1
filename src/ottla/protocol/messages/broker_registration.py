"""Messages of broker_registration. Written by tools/generate_messages.py; do not edit."""

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


class BrokerRegistrationRequest(TopLevel):
    NAME: ClassVar[str] = "BrokerRegistration"
    API_KEY: ClassVar[int] = 62
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", 0),
        Field("cluster_id", "string", 0),
        Field("incarnation_id", "uuid", 0),
        Field("listeners", Listener, 0, array=True),
        Field("features", Feature, 0, array=True),
        Field("rack", "string", 0, nullable_since=0),
        Field("is_migrating_zk_broker", "bool", 1),
        Field("log_dirs", "uuid", 2, array=True),
        Field("previous_broker_epoch", "int64", 3),
    )
    broker_id: int = 0
    cluster_id: str = ""
    incarnation_id: UUID = NO_UUID
    listeners: list[Listener] = field(default_factory=list[Listener])
    features: list[Feature] = field(default_factory=list[Feature])
    rack: str | None = ""
    is_migrating_zk_broker: bool = False
    log_dirs: list[UUID] = field(default_factory=list[UUID])
    previous_broker_epoch: int = -1


class BrokerRegistrationResponse(TopLevel):
    NAME: ClassVar[str] = "BrokerRegistration"
    API_KEY: ClassVar[int] = 62
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("error_code", "int16", 0),
        Field("broker_epoch", "int64", 0),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    broker_epoch: int = -1
