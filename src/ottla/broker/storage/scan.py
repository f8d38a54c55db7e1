"""Walking the batches of a segment file."""

import os
from collections.abc import Iterator

from ottla.broker.storage.disk import SegmentFile
from ottla.broker.storage.index import RELATIVE_OFFSET_MAX
from ottla.protocol.errors import CorruptBatch
from ottla.protocol.records import BATCH_OVERHEAD, BatchHeader, check_crc, read_header

HEADER_WINDOW_BYTES = 4096
VERIFY_WINDOW_BYTES = 1024 * 1024


def iterate_headers(
    file: SegmentFile, position: int, end: int, segment_base_offset: int
) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of each batch in [position, end) without reading the records behind the headers.

    Raises CorruptBatch where the bytes stop being batches with rising offsets, the last one cut short included.
    """
    window = b""
    window_start = position
    expected = segment_base_offset
    while position < end:
        at = position - window_start
        if at + BATCH_OVERHEAD > len(window):
            window = os.pread(file.fd, HEADER_WINDOW_BYTES, position)
            window_start, at = position, 0
        header = read_header(window, at)
        if position + header.size > end:
            raise CorruptBatch(f"the batch at position {position} is cut short")
        _check_offsets(header, expected, segment_base_offset)
        yield position, header
        expected = header.next_offset
        position += header.size


def verify_batches(
    file: SegmentFile, position: int, end: int, segment_base_offset: int
) -> Iterator[tuple[int, BatchHeader]]:
    """Like `iterate_headers`, but reads everything and checks each CRC."""
    window = memoryview(b"")
    window_start = position
    expected = segment_base_offset
    while position < end:
        at = position - window_start
        if at + BATCH_OVERHEAD > len(window):
            window = memoryview(os.pread(file.fd, VERIFY_WINDOW_BYTES, position))
            window_start, at = position, 0
        header = read_header(window, at)
        size = header.size
        if position + size > end:
            raise CorruptBatch(f"the batch at position {position} is cut short")
        if at + size > len(window):
            window = memoryview(os.pread(file.fd, max(size, VERIFY_WINDOW_BYTES), position))
            window_start, at = position, 0
        check_crc(window, at, header)
        _check_offsets(header, expected, segment_base_offset)
        yield position, header
        expected = header.next_offset
        position += size


def _check_offsets(header: BatchHeader, expected: int, segment_base_offset: int) -> None:
    # The CRC does not cover the base offset, so its plausibility is all there is.
    if header.base_offset < expected or header.last_offset_delta < 0:
        raise CorruptBatch(f"offset {header.base_offset} stands where {expected} or a later one should")
    if header.last_offset - segment_base_offset > RELATIVE_OFFSET_MAX:
        raise CorruptBatch(f"offset {header.last_offset} is too far from the segment's first")
