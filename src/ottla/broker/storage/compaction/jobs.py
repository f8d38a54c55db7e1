"""What the broker and its cleaning process say to each other.

The broker sends a `CleanJob`. The process answers with one `Swap` per group of segments it has rewritten, waits for a
`GoOn` after each, and ends with `Done` or `Failed`. On the wire a message is its length in four bytes and MessagePack.
"""

import struct
from typing import Literal

import msgspec

LENGTH = struct.Struct(">I")


class SegmentPlace(msgspec.Struct, frozen=True, array_like=True):
    """A segment as the broker saw it; what lies behind `size` in the file is none of the cleaner's business."""

    base_offset: int
    size: int


class KnownProducer(msgspec.Struct, frozen=True, array_like=True):
    """A producer that the partition remembers; its last batch must stay, so that a restart can learn of it."""

    producer_id: int
    epoch: int
    last_offset: int
    """The end of its last batch of data, or -1 when only a marker of it is known."""


class CleanJob(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    directory: str
    segments: list[SegmentPlace]
    """From the start of the log to the first one that may not be touched."""
    first_dirty_offset: int
    end_offset: int
    """Where cleaning must stop: the base offset of the first segment that may not be touched."""
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    codec_levels: dict[int, int]
    aborted: list[tuple[int, int, int, int]]
    """Aborted transactions: producer id, first offset, offset of the marker, last stable offset."""
    producers: list[KnownProducer]
    map_bytes: int
    map_load_factor: float
    read_bytes: int
    bytes_per_second: float


class Stats(msgspec.Struct):
    """What a cleaning came to."""

    map_bytes_read: int = 0
    map_records_read: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_written: int = 0
    records_without_key: int = 0
    map_seconds: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    map_entries: int = 0
    map_slots: int = 0
    memory_bytes_max: int = 0
    """The most memory that the process has had since it began."""


class Swap(msgspec.Struct, frozen=True, tag=True):
    """These segments are to be replaced by the .cleaned files of the first one."""

    replaced: list[int]
    size: int


class GoOn(msgspec.Struct, frozen=True, tag=True):
    """The swap is done."""


class Done(msgspec.Struct, frozen=True, tag=True):
    cleaned_to: int
    """The log is clean before this offset."""
    stats: Stats


class Failed(msgspec.Struct, frozen=True, tag=True):
    reason: Literal["damaged", "disk", "gone"]
    message: str
    errno: int = 0


Request = CleanJob | GoOn
Report = Swap | Done | Failed

request_decoder: "msgspec.msgpack.Decoder[Request]" = msgspec.msgpack.Decoder(Request)
report_decoder: "msgspec.msgpack.Decoder[Report]" = msgspec.msgpack.Decoder(Report)
encoder = msgspec.msgpack.Encoder()


def frame(message: Request | Report) -> bytes:
    body = encoder.encode(message)
    return LENGTH.pack(len(body)) + body
