"""Messages of api_versions. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class ApiVersionsRequest(TopLevel):
    NAME: ClassVar[str] = "ApiVersions"
    API_KEY: ClassVar[int] = 18
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("client_software_name", "string", 3),
        Field("client_software_version", "string", 3),
    )
    client_software_name: str = ""
    client_software_version: str = ""


class FinalizedFeatureKey(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 3),
        Field("max_version_level", "int16", 3),
        Field("min_version_level", "int16", 3),
    )
    name: str = ""
    max_version_level: int = 0
    min_version_level: int = 0


class SupportedFeatureKey(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 3),
        Field("min_version", "int16", 3),
        Field("max_version", "int16", 3),
    )
    name: str = ""
    min_version: int = 0
    max_version: int = 0


class ApiVersion(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("api_key", "int16", 0),
        Field("min_version", "int16", 0),
        Field("max_version", "int16", 0),
    )
    api_key: int = 0
    min_version: int = 0
    max_version: int = 0


class ApiVersionsResponse(TopLevel):
    NAME: ClassVar[str] = "ApiVersions"
    API_KEY: ClassVar[int] = 18
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0),
        Field("api_keys", ApiVersion, 0, array=True),
        Field("throttle_time_ms", "int32", 1),
        Field("supported_features", SupportedFeatureKey, 3, array=True, tag=0),
        Field("finalized_features_epoch", "int64", 3, tag=1),
        Field("finalized_features", FinalizedFeatureKey, 3, array=True, tag=2),
        Field("zk_migration_ready", "bool", 3, tag=3),
    )
    error_code: int = 0
    api_keys: list[ApiVersion] = field(default_factory=list[ApiVersion])
    throttle_time_ms: int = 0
    supported_features: list[SupportedFeatureKey] = field(default_factory=list[SupportedFeatureKey])
    finalized_features_epoch: int = -1
    finalized_features: list[FinalizedFeatureKey] = field(default_factory=list[FinalizedFeatureKey])
    zk_migration_ready: bool = False
