"""Walking the batches of a segment file."""

import os
from collections.abc import Iterator

from ottla.protocol.errors import CorruptBatch
from ottla.protocol.records import BATCH_OVERHEAD, BatchHeader, check_crc, read_header

HEADER_WINDOW_BYTES = 4096
VERIFY_WINDOW_BYTES = 1024 * 1024
# No producer may send more (message.max.bytes is an INT), so a longer batch is a damaged length field.
BATCH_BYTES_MAX = 2**31 - 1


def iterate_headers(descriptor: int, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of each batch in [position, end) without reading the records behind the headers.

    Raises CorruptBatch where the bytes stop being batches, the last one cut short included.
    """
    window = b""
    window_start = position
    while position < end:
        at = position - window_start
        if at + BATCH_OVERHEAD > len(window):
            window = os.pread(descriptor, HEADER_WINDOW_BYTES, position)
            window_start, at = position, 0
        header = read_header(window, at)
        if position + header.size > end:
            raise CorruptBatch(f"the batch at position {position} is cut short")
        yield position, header
        position += header.size


def verify_batches(descriptor: int, position: int, end: int) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Like `iterate_headers`, but reads everything, checks each CRC and also yields the batch's bytes."""
    window = memoryview(b"")
    window_start = position
    while position < end:
        at = position - window_start
        if at + BATCH_OVERHEAD > len(window):
            window = memoryview(os.pread(descriptor, VERIFY_WINDOW_BYTES, position))
            window_start, at = position, 0
        header = read_header(window, at)
        size = header.size
        if position + size > end:
            raise CorruptBatch(f"the batch at position {position} is cut short")
        if at + size > len(window):
            window = memoryview(os.pread(descriptor, max(size, VERIFY_WINDOW_BYTES), position))
            window_start, at = position, 0
        check_crc(window, at, header)
        yield position, header, window[at : at + size]
        position += size


def read_exactly(descriptor: int, length: int, position: int) -> bytes:
    data = os.pread(descriptor, length, position)
    if len(data) != length:
        raise CorruptBatch(f"{length} bytes were expected at position {position}, {len(data)} are there")
    return data
