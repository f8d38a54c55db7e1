"""Settings of the log cleaner, which compacts topics."""

import dataclasses

from ottla.config.setting import LONG_MAX, SettingType, setting

_LONG = SettingType.LONG


@dataclasses.dataclass(frozen=True, kw_only=True)
class LogCleanerSettings:
    """What the cleaner may use, and what it leaves alone."""

    log_cleaner_enable: bool = setting(True, doc="Whether compacted topics are cleaned at all.")
    log_cleaner_threads: int = setting(
        1,
        at_least=1,
        dynamic="cluster-wide",
        doc="Processes that clean logs, each one log at a time. They are started when there is something to clean.",
    )
    log_cleaner_dedupe_buffer_size: int = setting(
        134_217_728,
        type=_LONG,
        at_least=1_048_576,
        dynamic="cluster-wide",
        doc="Bytes for the newest offsets of keys, over all cleaning processes; 24 bytes a key. A log with more keys "
        "is cleaned in several goes.",
    )
    log_cleaner_io_buffer_size: int = setting(
        4_194_304,
        kafka_default=524_288,
        differs="records are decoded many at a time, and that pays with more of them at hand",
        at_least=65_536,
        dynamic="cluster-wide",
        doc="Bytes of log that a cleaning process reads at a time, over all of them.",
    )
    log_cleaner_io_buffer_load_factor: float = setting(
        0.9,
        at_least=0.01,
        at_most=1,
        dynamic="cluster-wide",
        doc="How full the table of newest offsets may get; fuller is slower.",
    )
    log_cleaner_io_max_bytes_per_second: float = setting(
        1.7976931348623157e308,
        at_least=1,
        dynamic="cluster-wide",
        doc="Bytes that the cleaner may read and write in a second, over all of its processes.",
    )
    log_cleaner_backoff_ms: int = setting(
        15_000,
        type=_LONG,
        at_least=0,
        dynamic="cluster-wide",
        doc="Time the cleaner waits when no log has anything to clean.",
    )
    log_cleaner_min_cleanable_ratio: float = setting(
        0.5, at_least=0, at_most=1, dynamic="cluster-wide", doc="Default of the topics' min.cleanable.dirty.ratio."
    )
    log_cleaner_delete_retention_ms: int = setting(
        86_400_000,
        type=_LONG,
        at_least=0,
        dynamic="cluster-wide",
        doc="Default of the topics' delete.retention.ms.",
    )
    log_cleaner_min_compaction_lag_ms: int = setting(
        0,
        type=_LONG,
        at_least=0,
        dynamic="cluster-wide",
        doc="Default of the topics' min.compaction.lag.ms.",
    )
    log_cleaner_max_compaction_lag_ms: int = setting(
        LONG_MAX,
        type=_LONG,
        at_least=1,
        dynamic="cluster-wide",
        doc="Default of the topics' max.compaction.lag.ms.",
    )
