"""Settings of logs: where they are, when segments roll, go and are flushed. log_cleaner.py has the cleaner."""

import dataclasses
from collections.abc import Mapping

from ottla.config.setting import LONG_MAX, SettingType, setting

_LONG = SettingType.LONG
_CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")

# The finer unit wins; DescribeConfigs lists the coarser ones as synonyms of the finest.
UNIT_FAMILIES: Mapping[str, tuple[str, ...]] = {
    "log.roll.ms": ("log.roll.ms", "log.roll.hours"),
    "log.roll.jitter.ms": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "log.retention.ms": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "log.retention.minutes": ("log.retention.minutes", "log.retention.hours"),
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class LogSettings:
    """Directories, segments, retention, flushing and compression."""

    log_dir: tuple[str, ...] = setting(
        ("/tmp/kafka-logs",),  # noqa: S108 - Kafka's default, which users of a laptop expect
        check=lambda dirs: None if dirs and all(dirs) else "give at least one directory",
        doc="Where data is kept when log.dirs is not given.",
    )
    log_dirs: tuple[str, ...] | None = setting(
        None,
        type=SettingType.LIST,
        check=lambda dirs: None if dirs and all(dirs) else "give at least one directory",
        doc="Directories where data is kept; a new partition goes to the one with the fewest. The first also holds the "
        "metadata.",
    )
    log_segment_bytes: int = setting(
        1_073_741_824, at_least=1_048_576, dynamic="cluster-wide", doc="Default of the topics' segment.bytes."
    )
    log_roll_ms: int | None = setting(
        None,
        type=_LONG,
        at_least=1,
        dynamic="cluster-wide",
        doc="Default of segment.ms; wins over log.roll.hours.",
    )
    log_roll_hours: int = setting(168, at_least=1, doc="Default of segment.ms, in hours.")
    log_roll_jitter_ms: int | None = setting(
        None,
        type=_LONG,
        at_least=0,
        dynamic="cluster-wide",
        doc="Default of segment.jitter.ms; wins over log.roll.jitter.hours.",
    )
    log_roll_jitter_hours: int = setting(0, at_least=0, doc="Default of segment.jitter.ms, in hours.")
    log_retention_ms: int | None = setting(
        None,
        type=_LONG,
        at_least=-1,
        dynamic="cluster-wide",
        check=lambda value: "0 would delete every record at once" if value == 0 else None,
        doc="Default of retention.ms; wins over the minutes and hours. -1 keeps records for ever.",
    )
    log_retention_minutes: int | None = setting(
        None,
        type=SettingType.INT,
        at_least=-1,
        check=lambda value: "0 would delete every record at once" if value == 0 else None,
        doc="Default of retention.ms, in minutes; wins over the hours.",
    )
    log_retention_hours: int = setting(
        168,
        at_least=-1,
        check=lambda value: "0 would delete every record at once" if value == 0 else None,
        doc="Default of retention.ms, in hours.",
    )
    log_retention_bytes: int = setting(
        -1, type=_LONG, dynamic="cluster-wide", doc="Default of the topics' retention.bytes."
    )
    log_retention_check_interval_ms: int = setting(
        300_000, type=_LONG, at_least=1, doc="Time between two looks for segments that retention lets go."
    )
    log_cleanup_policy: tuple[str, ...] = setting(
        ("delete",), choices=("compact", "delete"), dynamic="cluster-wide", doc="Default of the topics' cleanup.policy."
    )
    log_index_size_max_bytes: int = setting(
        10_485_760, at_least=4, dynamic="cluster-wide", doc="Default of the topics' segment.index.bytes."
    )
    log_index_interval_bytes: int = setting(
        4096, at_least=0, dynamic="cluster-wide", doc="Default of the topics' index.interval.bytes."
    )
    log_segment_delete_delay_ms: int = setting(
        60_000,
        type=_LONG,
        at_least=0,
        dynamic="cluster-wide",
        doc="Default of the topics' file.delete.delay.ms.",
    )
    log_flush_interval_messages: int = setting(
        LONG_MAX,
        type=_LONG,
        at_least=1,
        dynamic="cluster-wide",
        doc="Default of the topics' flush.messages.",
    )
    log_flush_interval_ms: int | None = setting(
        None,
        type=_LONG,
        at_least=0,
        dynamic="cluster-wide",
        doc="Default of the topics' flush.ms; without it log.flush.scheduler.interval.ms.",
    )
    log_flush_scheduler_interval_ms: int = setting(
        LONG_MAX,
        type=_LONG,
        at_least=1,
        doc="Time between two looks for logs that flush.ms says to force to disk.",
    )
    log_flush_offset_checkpoint_interval_ms: int = setting(
        60_000, at_least=1, doc="Time between two writes of the recovery points, which bound the work after a crash."
    )
    log_flush_start_offset_checkpoint_interval_ms: int = setting(
        60_000, at_least=1, doc="Time between two writes of the log start offsets."
    )
    log_preallocate: bool = setting(False, dynamic="cluster-wide", doc="Default of the topics' preallocate.")
    log_message_timestamp_type: str = setting(
        "CreateTime",
        choices=("CreateTime", "LogAppendTime"),
        dynamic="cluster-wide",
        doc="Default of the topics' message.timestamp.type.",
    )
    log_message_timestamp_before_max_ms: int = setting(
        LONG_MAX,
        type=_LONG,
        at_least=0,
        dynamic="cluster-wide",
        doc="Default of the topics' message.timestamp.before.max.ms.",
    )
    log_message_timestamp_after_max_ms: int = setting(
        3_600_000,
        type=_LONG,
        at_least=0,
        dynamic="cluster-wide",
        doc="Default of the topics' message.timestamp.after.max.ms.",
    )
    num_recovery_threads_per_data_dir: int = setting(
        2, at_least=1, doc="Threads that open, recover and close the logs of one directory at start and stop."
    )
    num_replica_alter_log_dirs_threads: int | None = setting(
        None,
        type=SettingType.INT,
        at_least=1,
        doc="Replicas that may be on their way to another of the log.dirs at a time. Without it as many as there are "
        "directories.",
    )
    replica_alter_log_dirs_io_max_bytes_per_second: int = setting(
        LONG_MAX,
        type=_LONG,
        at_least=0,
        dynamic="cluster-wide",
        doc="How fast replicas are copied from one of the log.dirs to another, all together.",
    )
    alter_log_dirs_replication_quota_window_num: int = setting(
        11, at_least=1, doc="Pieces of the window over which the speed of moves between log.dirs is measured."
    )
    alter_log_dirs_replication_quota_window_size_seconds: int = setting(
        1, at_least=1, doc="Length of each of these pieces."
    )
    compression_type: str = setting(
        "producer", choices=_CODECS, dynamic="cluster-wide", doc="Default of the topics' compression.type."
    )
    compression_gzip_level: int = setting(
        -1,
        at_least=-1,
        at_most=9,
        check=lambda level: "0 is not a level of gzip, use -1 or 1 to 9" if level == 0 else None,
        dynamic="cluster-wide",
        doc="Default of the topics' compression.gzip.level.",
    )
    compression_lz4_level: int = setting(
        9, at_least=1, at_most=17, dynamic="cluster-wide", doc="Default of the topics' compression.lz4.level."
    )
    compression_zstd_level: int = setting(
        3, at_least=-131072, at_most=22, dynamic="cluster-wide", doc="Default of the topics' compression.zstd.level."
    )

    @property
    def data_dirs(self) -> tuple[str, ...]:
        """The directories in force."""
        return self.log_dirs or self.log_dir


def log_problems(settings: LogSettings) -> list[str]:
    """Problems that only show when several settings are seen together."""
    if len(set(settings.data_dirs)) != len(settings.data_dirs):
        return ["log.dirs: the same directory is given twice"]
    return []
