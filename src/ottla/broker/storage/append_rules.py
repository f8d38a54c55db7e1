"""A topic's settings in the form the append path asks for them."""

from typing import NamedTuple

from ottla.config.setting import LONG_MAX
from ottla.config.topic import TopicSettings
from ottla.protocol.compression import CODEC_NAMES, Codec

LONG_MIN = -(2**63)
NOTHING_FITS = -1
_KEEP_CODEC = "producer"


class SchemaCheck(NamedTuple):
    """Keys or values carry the id of a schema, of a subject that the strategy names."""

    part: str
    strategy: str


class AppendRules:
    __slots__ = (
        "_levels", "batch_bytes_max", "cleanup_policy", "log_append_time", "looks_at_records", "may_take_long",
        "mirrors", "needs_keys", "read_only", "schema_checks", "segment_bytes", "target_codec",
        "timestamp_after_max_ms", "timestamp_before_max_ms",
    )  # fmt: skip

    def __init__(self, config: TopicSettings) -> None:
        self.mirrors = config.mirror_source
        """What the topic is a copy of; it takes batches from there, and from nobody else."""
        self.read_only = bool(config.mirror_source)
        # No batch fits into a topic that producers may not write to: so the check costs the others nothing.
        self.batch_bytes_max = NOTHING_FITS if self.read_only else config.max_message_bytes
        self.segment_bytes = config.segment_bytes
        self.log_append_time = config.message_timestamp_type == "LogAppendTime"
        self.timestamp_before_max_ms = config.message_timestamp_before_max_ms
        self.timestamp_after_max_ms = config.message_timestamp_after_max_ms
        self.cleanup_policy = ",".join(config.cleanup_policy)
        self.needs_keys = "compact" in config.cleanup_policy
        self.looks_at_records = self.needs_keys or (
            self.timestamp_before_max_ms != LONG_MAX and not self.log_append_time
        )
        self.target_codec = None if config.compression_type == _KEEP_CODEC else CODEC_NAMES[config.compression_type]
        self.schema_checks = _schema_checks(config)
        self.may_take_long = self.target_codec is not None or bool(self.schema_checks) or self.read_only
        """Whether batches may have to leave the loop before they are appended, or are not to be appended at all."""
        self._levels = {
            Codec.GZIP: config.compression_gzip_level,
            Codec.LZ4: config.compression_lz4_level,
            Codec.ZSTD: config.compression_zstd_level,
        }

    def level(self, codec: Codec) -> int | None:
        return self._levels.get(codec)

    def timestamp_range(self, now_ms: int) -> tuple[int, int]:
        """The earliest and the latest time that a record may have; a topic that sets the time itself takes any."""
        if self.log_append_time:
            return LONG_MIN, LONG_MAX
        return now_ms - self.timestamp_before_max_ms, now_ms + self.timestamp_after_max_ms


def _schema_checks(config: TopicSettings) -> tuple[SchemaCheck, ...]:
    found = []
    if config.confluent_key_schema_validation:
        found.append(SchemaCheck("key", config.confluent_key_subject_name_strategy.rpartition(".")[2]))
    if config.confluent_value_schema_validation:
        found.append(SchemaCheck("value", config.confluent_value_subject_name_strategy.rpartition(".")[2]))
    return tuple(found)
