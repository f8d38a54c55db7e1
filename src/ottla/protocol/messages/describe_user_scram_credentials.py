"""Messages of describe_user_scram_credentials. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class UserName(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
    )
    name: str = ""


class DescribeUserScramCredentialsRequest(TopLevel):
    NAME: ClassVar[str] = "DescribeUserScramCredentials"
    API_KEY: ClassVar[int] = 50
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("users", UserName, 0, array=True, nullable_since=0),
    )
    users: list[UserName] | None = field(default_factory=list[UserName])


class CredentialInfo(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("mechanism", "int8", 0),
        Field("iterations", "int32", 0),
    )
    mechanism: int = 0
    iterations: int = 0


class DescribeUserScramCredentialsResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("user", "string", 0),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
        Field("credential_infos", CredentialInfo, 0, array=True),
    )
    user: str = ""
    error_code: int = 0
    error_message: str | None = ""
    credential_infos: list[CredentialInfo] = field(default_factory=list[CredentialInfo])


class DescribeUserScramCredentialsResponse(TopLevel):
    NAME: ClassVar[str] = "DescribeUserScramCredentials"
    API_KEY: ClassVar[int] = 50
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
        Field("results", DescribeUserScramCredentialsResult, 0, array=True),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    results: list[DescribeUserScramCredentialsResult] = field(default_factory=list[DescribeUserScramCredentialsResult])
