"""Messages of alter_user_scram_credentials. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class ScramCredentialUpsertion(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("mechanism", "int8", 0),
        Field("iterations", "int32", 0),
        Field("salt", "bytes", 0),
        Field("salted_password", "bytes", 0),
    )
    name: str = ""
    mechanism: int = 0
    iterations: int = 0
    salt: bytes = b""
    salted_password: bytes = b""


class ScramCredentialDeletion(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("mechanism", "int8", 0),
    )
    name: str = ""
    mechanism: int = 0


class AlterUserScramCredentialsRequest(TopLevel):
    NAME: ClassVar[str] = "AlterUserScramCredentials"
    API_KEY: ClassVar[int] = 51
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("deletions", ScramCredentialDeletion, 0, array=True),
        Field("upsertions", ScramCredentialUpsertion, 0, array=True),
    )
    deletions: list[ScramCredentialDeletion] = field(default_factory=list[ScramCredentialDeletion])
    upsertions: list[ScramCredentialUpsertion] = field(default_factory=list[ScramCredentialUpsertion])


class AlterUserScramCredentialsResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("user", "string", 0),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
    )
    user: str = ""
    error_code: int = 0
    error_message: str | None = ""


class AlterUserScramCredentialsResponse(TopLevel):
    NAME: ClassVar[str] = "AlterUserScramCredentials"
    API_KEY: ClassVar[int] = 51
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("results", AlterUserScramCredentialsResult, 0, array=True),
    )
    throttle_time_ms: int = 0
    results: list[AlterUserScramCredentialsResult] = field(default_factory=list[AlterUserScramCredentialsResult])
