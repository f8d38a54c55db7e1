"""Transaction markers: the control batches by which a coordinator ends a producer's transaction in a partition."""

import struct
from typing import NamedTuple

from ottla.protocol.compression import Buffer
from ottla.protocol.errors import CorruptBatch
from ottla.protocol.records import NewRecord, decode_batch, encode_batch

ABORT = 0
COMMIT = 1

_KEY = struct.Struct(">hh")  # version, type
_VALUE = struct.Struct(">hi")  # version, coordinator epoch


class Marker(NamedTuple):
    commit: bool
    coordinator_epoch: int


def encode_marker(producer_id: int, producer_epoch: int, marker: Marker, now_ms: int) -> bytearray:
    """The control batch that says how a transaction ended."""
    key = _KEY.pack(0, COMMIT if marker.commit else ABORT)
    record = NewRecord(key, _VALUE.pack(0, marker.coordinator_epoch), now_ms)
    return encode_batch(
        [record], producer_id=producer_id, producer_epoch=producer_epoch, transactional=True, control=True
    )


def read_marker(batch: Buffer) -> Marker | None:
    """How a control batch ends its transaction; None when it is no marker, or one that compaction has emptied."""
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
