"""Logs on this broker's disks, their flushing and their cleaning."""

from ottla.telemetry.declaring import gauge, histogram

_MANAGER = "kafka.log:type=LogManager,name="
_CLEANER = "kafka.log:type=LogCleaner,name="
_CLEANERS = "kafka.log:type=LogCleanerManager,name="
_DIRECTORY = ",logDirectory={logdirectory}"

DIRECTORY_OFFLINE = gauge(_MANAGER + "LogDirectoryOffline" + _DIRECTORY, "0 or 1", "1 if the log directory has failed.")
LOGS_TO_RECOVER = gauge(
    _MANAGER + "remainingLogsToRecover,dir={dir}",
    "logs",
    "Logs of a directory that are still to be opened at this start.",
)
FLUSH_TIME = histogram(
    "kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs",
    "milliseconds",
    "How long it took to force a log to disk.",
)
RECOPY_PERCENT = gauge(
    _CLEANER + "cleaner-recopy-percent", "percent", "How much of what the last cleaning read it wrote again."
)
CLEAN_TIME = gauge(_CLEANER + "max-clean-time-secs", "seconds", "How long the last cleaning took.")
BUFFER_USED = gauge(
    _CLEANER + "max-buffer-utilization-percent", "percent", "How much of its table of keys the last cleaning used."
)
MAX_DIRTY = gauge(
    _CLEANERS + "max-dirty-percent",
    "percent",
    "The largest share of bytes of a compacted log that were not cleaned yet.",
)
SINCE_LAST_RUN = gauge(
    _CLEANERS + "time-since-last-run-ms", "milliseconds", "How long ago the cleaner looked for logs to clean."
)
UNCLEANABLE = gauge(
    _CLEANERS + "uncleanable-partitions-count" + _DIRECTORY, "partitions", "Logs that cannot be cleaned: damaged."
)
UNCLEANABLE_BYTES = gauge(
    _CLEANERS + "uncleanable-bytes" + _DIRECTORY, "bytes", "Bytes of logs that cannot be cleaned."
)
