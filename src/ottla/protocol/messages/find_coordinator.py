"""Messages of find_coordinator. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class FindCoordinatorRequest(TopLevel):
    NAME: ClassVar[str] = "FindCoordinator"
    API_KEY: ClassVar[int] = 10
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 6
    FLEXIBLE_FROM: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", 0, until=3),
        Field("key_type", "int8", 1),
        Field("coordinator_keys", "string", 4, array=True),
    )
    key: str = ""
    key_type: int = 0
    coordinator_keys: list[str] = field(default_factory=list[str])


class Coordinator(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", 4),
        Field("node_id", "int32", 4),
        Field("host", "string", 4),
        Field("port", "int32", 4),
        Field("error_code", "int16", 4),
        Field("error_message", "string", 4, nullable_since=4),
    )
    key: str = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    error_code: int = 0
    error_message: str | None = ""


class FindCoordinatorResponse(TopLevel):
    NAME: ClassVar[str] = "FindCoordinator"
    API_KEY: ClassVar[int] = 10
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 6
    FLEXIBLE_FROM: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1),
        Field("error_code", "int16", 0, until=3),
        Field("coordinators", Coordinator, 4, array=True),
        Field("error_message", "string", 1, until=3, nullable_since=1),
        Field("node_id", "int32", 0, until=3),
        Field("host", "string", 0, until=3),
        Field("port", "int32", 0, until=3),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    coordinators: list[Coordinator] = field(default_factory=list[Coordinator])
    error_message: str | None = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
