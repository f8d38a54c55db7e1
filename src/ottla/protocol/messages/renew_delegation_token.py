"""Messages of renew_delegation_token. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from ottla.protocol.schema import Field, TopLevel


class RenewDelegationTokenRequest(TopLevel):
    NAME: ClassVar[str] = "RenewDelegationToken"
    API_KEY: ClassVar[int] = 39
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("hmac", "bytes", 1),
        Field("renew_period_ms", "int64", 1),
    )
    hmac: bytes = b""
    renew_period_ms: int = 0


class RenewDelegationTokenResponse(TopLevel):
    NAME: ClassVar[str] = "RenewDelegationToken"
    API_KEY: ClassVar[int] = 39
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 1),
        Field("expiry_timestamp_ms", "int64", 1),
        Field("throttle_time_ms", "int32", 1),
    )
    error_code: int = 0
    expiry_timestamp_ms: int = 0
    throttle_time_ms: int = 0
