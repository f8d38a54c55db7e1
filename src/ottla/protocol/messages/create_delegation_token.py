"""Messages of create_delegation_token. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class CreatableRenewers(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("principal_type", "string", 1),
        Field("principal_name", "string", 1),
    )
    principal_type: str = ""
    principal_name: str = ""


class CreateDelegationTokenRequest(TopLevel):
    NAME: ClassVar[str] = "CreateDelegationToken"
    API_KEY: ClassVar[int] = 38
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("owner_principal_type", "string", 3, nullable_since=3),
        Field("owner_principal_name", "string", 3, nullable_since=3),
        Field("renewers", CreatableRenewers, 1, array=True),
        Field("max_lifetime_ms", "int64", 1),
    )
    owner_principal_type: str | None = ""
    owner_principal_name: str | None = ""
    renewers: list[CreatableRenewers] = field(default_factory=list[CreatableRenewers])
    max_lifetime_ms: int = 0


class CreateDelegationTokenResponse(TopLevel):
    NAME: ClassVar[str] = "CreateDelegationToken"
    API_KEY: ClassVar[int] = 38
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 1),
        Field("principal_type", "string", 1),
        Field("principal_name", "string", 1),
        Field("token_requester_principal_type", "string", 3),
        Field("token_requester_principal_name", "string", 3),
        Field("issue_timestamp_ms", "int64", 1),
        Field("expiry_timestamp_ms", "int64", 1),
        Field("max_timestamp_ms", "int64", 1),
        Field("token_id", "string", 1),
        Field("hmac", "bytes", 1),
        Field("throttle_time_ms", "int32", 1),
    )
    error_code: int = 0
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = ""
    token_requester_principal_name: str = ""
    issue_timestamp_ms: int = 0
    expiry_timestamp_ms: int = 0
    max_timestamp_ms: int = 0
    token_id: str = ""
    hmac: bytes = b""
    throttle_time_ms: int = 0
