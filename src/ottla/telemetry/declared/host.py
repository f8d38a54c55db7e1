"""The machine this broker runs on, from /proc."""

from ottla.telemetry.declaring import own
from ottla.telemetry.metric import Kind

CPU = own("ottla_host_cpu_seconds_total", Kind.COUNTER, "seconds", "Processor time of the machine by mode.", ("mode",))
LOAD = own("ottla_host_load1", Kind.GAUGE, "processes", "Processes that run or want to, over the last minute.")
MEMORY = own("ottla_host_memory_bytes", Kind.GAUGE, "bytes", "Memory of the machine.")
MEMORY_AVAILABLE = own("ottla_host_memory_available_bytes", Kind.GAUGE, "bytes", "Memory that programs could have.")
PAGE_CACHE = own(
    "ottla_host_page_cache_bytes", Kind.GAUGE, "bytes", "Files in memory: where consumers that keep up read."
)
DIRTY = own("ottla_host_dirty_bytes", Kind.GAUGE, "bytes", "Of the page cache, what is still to be written to disk.")
DISK_READ = own(
    "ottla_host_disk_read_bytes_total", Kind.COUNTER, "bytes", "Bytes read from a disk, by anybody.", ("device",)
)
DISK_WRITTEN = own(
    "ottla_host_disk_written_bytes_total", Kind.COUNTER, "bytes", "Bytes written to a disk, by anybody.", ("device",)
)
DISK_BUSY = own(
    "ottla_host_disk_busy_seconds_total", Kind.COUNTER, "seconds", "How long a disk had something to do.", ("device",)
)
NETWORK_IN = own(
    "ottla_host_network_received_bytes_total", Kind.COUNTER, "bytes", "Bytes received by an interface.", ("device",)
)
NETWORK_OUT = own(
    "ottla_host_network_sent_bytes_total", Kind.COUNTER, "bytes", "Bytes sent by an interface.", ("device",)
)
FILES = own("ottla_host_file_descriptors", Kind.GAUGE, "descriptors", "File descriptors that are open on the machine.")
DIRECTORY_FREE = own(
    "ottla_log_directory_free_bytes",
    Kind.GAUGE,
    "bytes",
    "What may still be written to a log directory's file system.",
    ("directory",),
)
DIRECTORY_SIZE = own(
    "ottla_log_directory_size_bytes", Kind.GAUGE, "bytes", "The size of a log directory's file system.", ("directory",)
)
