"""Messages of describe_delegation_token. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class DescribeDelegationTokenOwner(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("principal_type", "string", 1),
        Field("principal_name", "string", 1),
    )
    principal_type: str = ""
    principal_name: str = ""


class DescribeDelegationTokenRequest(TopLevel):
    NAME: ClassVar[str] = "DescribeDelegationToken"
    API_KEY: ClassVar[int] = 41
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("owners", DescribeDelegationTokenOwner, 1, array=True, nullable_since=1),
    )
    owners: list[DescribeDelegationTokenOwner] | None = field(default_factory=list[DescribeDelegationTokenOwner])


class DescribedDelegationTokenRenewer(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("principal_type", "string", 1),
        Field("principal_name", "string", 1),
    )
    principal_type: str = ""
    principal_name: str = ""


class DescribedDelegationToken(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("principal_type", "string", 1),
        Field("principal_name", "string", 1),
        Field("token_requester_principal_type", "string", 3),
        Field("token_requester_principal_name", "string", 3),
        Field("issue_timestamp", "int64", 1),
        Field("expiry_timestamp", "int64", 1),
        Field("max_timestamp", "int64", 1),
        Field("token_id", "string", 1),
        Field("hmac", "bytes", 1),
        Field("renewers", DescribedDelegationTokenRenewer, 1, array=True),
    )
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = ""
    token_requester_principal_name: str = ""
    issue_timestamp: int = 0
    expiry_timestamp: int = 0
    max_timestamp: int = 0
    token_id: str = ""
    hmac: bytes = b""
    renewers: list[DescribedDelegationTokenRenewer] = field(default_factory=list[DescribedDelegationTokenRenewer])


class DescribeDelegationTokenResponse(TopLevel):
    NAME: ClassVar[str] = "DescribeDelegationToken"
    API_KEY: ClassVar[int] = 41
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 1),
        Field("tokens", DescribedDelegationToken, 1, array=True),
        Field("throttle_time_ms", "int32", 1),
    )
    error_code: int = 0
    tokens: list[DescribedDelegationToken] = field(default_factory=list[DescribedDelegationToken])
    throttle_time_ms: int = 0
