"""Messages of sasl_authenticate. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from ottla.protocol.schema import Field, TopLevel


class SaslAuthenticateRequest(TopLevel):
    NAME: ClassVar[str] = "SaslAuthenticate"
    API_KEY: ClassVar[int] = 36
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("auth_bytes", "bytes", 0),
    )
    auth_bytes: bytes = b""


class SaslAuthenticateResponse(TopLevel):
    NAME: ClassVar[str] = "SaslAuthenticate"
    API_KEY: ClassVar[int] = 36
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
        Field("auth_bytes", "bytes", 0),
        Field("session_lifetime_ms", "int64", 1),
    )
    error_code: int = 0
    error_message: str | None = ""
    auth_bytes: bytes = b""
    session_lifetime_ms: int = 0
