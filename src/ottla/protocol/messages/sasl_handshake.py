"""Messages of sasl_handshake. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, TopLevel


class SaslHandshakeRequest(TopLevel):
    NAME: ClassVar[str] = "SaslHandshake"
    API_KEY: ClassVar[int] = 17
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int] = 32768
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("mechanism", "string", 0),
    )
    mechanism: str = ""


class SaslHandshakeResponse(TopLevel):
    NAME: ClassVar[str] = "SaslHandshake"
    API_KEY: ClassVar[int] = 17
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int] = 32768
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0),
        Field("mechanisms", "string", 0, array=True),
    )
    error_code: int = 0
    mechanisms: list[str] = field(default_factory=list[str])
