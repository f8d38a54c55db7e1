"""Batches of another cluster that enter a log as they are: what must be true of them before anything is written. Pure.

Whoever sends them is trusted with the cluster, but not to have sound memory, a sound network or the newest version: a
batch that a log cannot bear must be refused here, because behind this check it counts as written by a leader.
"""

import struct
from typing import NamedTuple

from ottla.config.setting import LONG_MAX
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.compression import Buffer, Codec
from ottla.protocol.errors import CorruptBatch
from ottla.protocol.records import LENGTH_PREFIX_BYTES, NO_PRODUCER_ID, BatchHeader, check_crc, iterate_batches

PRODUCER_ID_MAX = 2**62
"""Ids above would leave too few to give out."""

_CODEC_MAX = max(Codec)
_INT32 = struct.Struct(">i")

Batches = list[tuple[int, BatchHeader]]
"""With their positions in the buffer."""


class MirroredBatches(NamedTuple):
    batches: Batches
    highest_producer_id: int


def check_mirrored(records: Buffer) -> MirroredBatches:
    """Whole, sound batches in order; ApiError says what is wrong with them."""
    found: Batches = []
    expected = at = 0
    try:
        for position, header in iterate_batches(records):
            check_crc(records, position, header)
            _check_shape(header, expected)
            expected, at = header.next_offset, position + header.size
            found.append((position, header))
    except CorruptBatch as error:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    if at != len(records):
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"{len(records) - at} bytes behind the last whole batch")
    return MirroredBatches(found, max((header.producer_id for _, header in found), default=NO_PRODUCER_ID))


def _check_shape(header: BatchHeader, expected: int) -> None:
    if header.codec > _CODEC_MAX:
        raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"codec {header.codec} is unknown")
    if header.base_offset < expected:
        raise _invalid(header, f"it is where {expected} or more comes next")
    if header.last_offset_delta < 0 or header.next_offset > LONG_MAX:
        raise _invalid(header, f"it ends at {header.last_offset}")
    if not 0 <= header.record_count <= header.last_offset_delta + 1:  # compaction leaves fewer
        raise _invalid(header, f"it claims {header.record_count} records up to {header.last_offset}")
    if not NO_PRODUCER_ID <= header.producer_id <= PRODUCER_ID_MAX:
        raise _invalid(header, f"{header.producer_id} is no producer id")


def _invalid(header: BatchHeader, what: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD, f"the batch at offset {header.base_offset} cannot be mirrored: {what}")


def new_batches(batches: Batches, end_offset: int) -> Batches:
    """Those that a log which ends here does not have yet. What comes again is known by its offset."""
    new = [(position, header) for position, header in batches if header.next_offset > end_offset]
    if new and new[0][1].base_offset < end_offset:
        raise _invalid(new[0][1], f"it reaches beyond the end of the log, {end_offset}, and begins before it")
    return new


def stamp_epochs(records: bytearray | memoryview, batches: Batches, leader_epoch: int) -> Batches:
    """Give batches the epoch of the leader that appends them, as a leader does: the CRC does not cover it.

    Consumers learn epochs from batches. One that is above the partition's own would make them ask for newer metadata,
    for ever.
    """
    for position, _ in batches:
        _INT32.pack_into(records, position + LENGTH_PREFIX_BYTES, leader_epoch)
    return [(position, header._replace(leader_epoch=leader_epoch)) for position, header in batches]
