"""Transaction markers: the control batches by which a coordinator ends a producer's transaction in a partition."""

import struct
from typing import NamedTuple

from ottla.protocol.compression import Buffer
from ottla.protocol.errors import CorruptBatch
from ottla.protocol.records import (
    ATTRIBUTES_POSITION,
    BATCH_OVERHEAD,
    CODEC_MASK,
    CONTROL,
    NO_SEQUENCE,
    TRANSACTIONAL,
    decode_batch,
    seal_batch,
)

ABORT = 0
COMMIT = 1

_KEY = struct.Struct(">hh")  # version, type
_VALUE = struct.Struct(">hi")  # version, coordinator epoch
# The one record of a marker always has these bytes: 16 of them after the length, no attributes, no deltas, a key of
# four bytes, a value of six, no headers. So it need not be put together and taken apart in the general way.
_RECORD = struct.Struct(">5shhchic")
_BEFORE_KEY, _BEFORE_VALUE, _NO_HEADERS = b"\x20\x00\x00\x00\x08", b"\x0c", b"\x00"


class Marker(NamedTuple):
    commit: bool
    coordinator_epoch: int


def encode_marker(producer_id: int, producer_epoch: int, marker: Marker, now_ms: int) -> bytearray:
    """The control batch that says how a transaction ended."""
    record = _RECORD.pack(
        _BEFORE_KEY, 0, COMMIT if marker.commit else ABORT, _BEFORE_VALUE, 0, marker.coordinator_epoch, _NO_HEADERS
    )
    return seal_batch(
        record, base_offset=0, leader_epoch=0, attributes=TRANSACTIONAL | CONTROL, last_offset_delta=0,
        base_timestamp=now_ms, max_timestamp=now_ms, producer_id=producer_id, producer_epoch=producer_epoch,
        base_sequence=NO_SEQUENCE, record_count=1,
    )  # fmt: skip


def read_marker(batch: Buffer) -> Marker | None:
    """How a control batch ends its transaction; None when it is no marker, or one that compaction has emptied."""
    if len(batch) >= BATCH_OVERHEAD + _RECORD.size and not batch[ATTRIBUTES_POSITION + 1] & CODEC_MASK:
        before_key, _, kind, before_value, _, epoch, end = _RECORD.unpack_from(batch, BATCH_OVERHEAD)
        if (before_key, before_value, end) == (_BEFORE_KEY, _BEFORE_VALUE, _NO_HEADERS) and kind in (ABORT, COMMIT):
            return Marker(kind == COMMIT, epoch)
    try:
        records = decode_batch(batch)
    except CorruptBatch:
        return None
    if not records:
        return None
    key, value = records[0].key or b"", records[0].value or b""
    if len(key) < _KEY.size or len(value) < _VALUE.size:
        return None
    kind = _KEY.unpack_from(key)[1]
    return Marker(kind == COMMIT, _VALUE.unpack_from(value)[1]) if kind in (ABORT, COMMIT) else None
