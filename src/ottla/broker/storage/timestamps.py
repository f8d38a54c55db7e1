"""Finding records by time, exact to the record."""

from collections.abc import Sequence

from ottla.broker.storage.scan import iterate_headers
from ottla.broker.storage.segment import Segment
from ottla.protocol.records import decode_batch

Found = tuple[int, int, int]
"""Timestamp, offset and leader epoch of a record."""


def first_at_or_after(segments: Sequence[Segment], timestamp: int, start_offset: int) -> Found | None:
    """The first record, in log order, that is at least this recent."""
    for segment in segments:
        if segment.checked_largest_timestamp() >= timestamp:
            found = _search(segment, timestamp, start_offset)
            if found is not None:
                return found
    return None


def newest(segments: Sequence[Segment], start_offset: int) -> Found | None:
    """The first record that has the largest timestamp."""
    segment = max(segments, key=Segment.checked_largest_timestamp)
    timestamp = segment.largest_timestamp
    return _search(segment, timestamp, start_offset) if segment.size and timestamp >= 0 else None


def _search(segment: Segment, timestamp: int, start_offset: int) -> Found | None:
    position = segment.find_time(timestamp)
    if start_offset > segment.base_offset:
        first = segment.find(start_offset)
        if first is None:
            return None
        position = max(position, first)
    for at, header in iterate_headers(segment.file, position, segment.size, segment.base_offset):
        if header.max_timestamp < timestamp:
            continue
        for record in decode_batch(segment.read_batch(at)):
            if record.timestamp >= timestamp and record.offset >= start_offset:
                return record.timestamp, record.offset, header.leader_epoch
    return None
