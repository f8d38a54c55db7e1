"""Messages of get_telemetry_subscriptions. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from msgspec import field

from ottla.protocol.schema import NO_UUID, Field, TopLevel


class GetTelemetrySubscriptionsRequest(TopLevel):
    NAME: ClassVar[str] = "GetTelemetrySubscriptions"
    API_KEY: ClassVar[int] = 71
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("client_instance_id", "uuid", 0),
    )
    client_instance_id: UUID = NO_UUID


class GetTelemetrySubscriptionsResponse(TopLevel):
    NAME: ClassVar[str] = "GetTelemetrySubscriptions"
    API_KEY: ClassVar[int] = 71
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("error_code", "int16", 0),
        Field("client_instance_id", "uuid", 0),
        Field("subscription_id", "int32", 0),
        Field("accepted_compression_types", "int8", 0, array=True),
        Field("push_interval_ms", "int32", 0),
        Field("telemetry_max_bytes", "int32", 0),
        Field("delta_temporality", "bool", 0),
        Field("requested_metrics", "string", 0, array=True),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    client_instance_id: UUID = NO_UUID
    subscription_id: int = 0
    accepted_compression_types: list[int] = field(default_factory=list[int])
    push_interval_ms: int = 0
    telemetry_max_bytes: int = 0
    delta_temporality: bool = False
    requested_metrics: list[str] = field(default_factory=list[str])
