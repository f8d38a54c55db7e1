"""Messages of broker_heartbeat. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from msgspec import field

from ottla.protocol.schema import Field, TopLevel


class BrokerHeartbeatRequest(TopLevel):
    NAME: ClassVar[str] = "BrokerHeartbeat"
    API_KEY: ClassVar[int] = 63
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", 0),
        Field("broker_epoch", "int64", 0),
        Field("current_metadata_offset", "int64", 0),
        Field("want_fence", "bool", 0),
        Field("want_shut_down", "bool", 0),
        Field("offline_log_dirs", "uuid", 1, array=True, tag=0),
        Field("cordoned_log_dirs", "uuid", 2, array=True, nullable_since=2, tag=1),
    )
    broker_id: int = 0
    broker_epoch: int = -1
    current_metadata_offset: int = 0
    want_fence: bool = False
    want_shut_down: bool = False
    offline_log_dirs: list[UUID] = field(default_factory=list[UUID])
    cordoned_log_dirs: list[UUID] | None = None


class BrokerHeartbeatResponse(TopLevel):
    NAME: ClassVar[str] = "BrokerHeartbeat"
    API_KEY: ClassVar[int] = 63
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("error_code", "int16", 0),
        Field("is_caught_up", "bool", 0),
        Field("is_fenced", "bool", 0),
        Field("should_shut_down", "bool", 0),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False
