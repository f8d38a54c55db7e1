"""Messages of update_features. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class FeatureUpdateKey(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("feature", "string", 0),
        Field("max_version_level", "int16", 0),
        Field("allow_downgrade", "bool", 0, until=0),
        Field("upgrade_type", "int8", 1),
    )
    feature: str = ""
    max_version_level: int = 0
    allow_downgrade: bool = False
    upgrade_type: int = 1


class UpdateFeaturesRequest(TopLevel):
    NAME: ClassVar[str] = "UpdateFeatures"
    API_KEY: ClassVar[int] = 57
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("timeout_ms", "int32", 0),
        Field("feature_updates", FeatureUpdateKey, 0, array=True),
        Field("validate_only", "bool", 1),
    )
    timeout_ms: int = 60000
    feature_updates: list[FeatureUpdateKey] = field(default_factory=list[FeatureUpdateKey])
    validate_only: bool = False


class UpdatableFeatureResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("feature", "string", 0, until=1),
        Field("error_code", "int16", 0, until=1),
        Field("error_message", "string", 0, until=1, nullable_since=0),
    )
    feature: str = ""
    error_code: int = 0
    error_message: str | None = ""


class UpdateFeaturesResponse(TopLevel):
    NAME: ClassVar[str] = "UpdateFeatures"
    API_KEY: ClassVar[int] = 57
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
        Field("results", UpdatableFeatureResult, 0, until=1, array=True),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    results: list[UpdatableFeatureResult] = field(default_factory=list[UpdatableFeatureResult])
