"""Messages of envelope. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from ottla.protocol.schema import Field, TopLevel


class EnvelopeRequest(TopLevel):
    NAME: ClassVar[str] = "Envelope"
    API_KEY: ClassVar[int] = 58
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("request_data", "bytes", 0),
        Field("request_principal", "bytes", 0, nullable_since=0),
        Field("client_host_address", "bytes", 0),
    )
    request_data: bytes = b""
    request_principal: bytes | None = b""
    client_host_address: bytes = b""


class EnvelopeResponse(TopLevel):
    NAME: ClassVar[str] = "Envelope"
    API_KEY: ClassVar[int] = 58
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("response_data", "bytes", 0, nullable_since=0),
        Field("error_code", "int16", 0),
    )
    response_data: bytes | None = None
    error_code: int = 0
