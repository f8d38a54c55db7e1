"""Messages of push_telemetry. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from ottla.protocol.schema import NO_UUID, Field, TopLevel


class PushTelemetryRequest(TopLevel):
    NAME: ClassVar[str] = "PushTelemetry"
    API_KEY: ClassVar[int] = 72
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("client_instance_id", "uuid", 0),
        Field("subscription_id", "int32", 0),
        Field("terminating", "bool", 0),
        Field("compression_type", "int8", 0),
        Field("metrics", "bytes", 0),
    )
    client_instance_id: UUID = NO_UUID
    subscription_id: int = 0
    terminating: bool = False
    compression_type: int = 0
    metrics: bytes = b""


class PushTelemetryResponse(TopLevel):
    NAME: ClassVar[str] = "PushTelemetry"
    API_KEY: ClassVar[int] = 72
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("error_code", "int16", 0),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
