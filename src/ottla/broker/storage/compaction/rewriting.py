"""A batch with some of its records left out: the bytes of the others stay as they are, under a new header."""

from collections.abc import Iterable
from typing import NamedTuple

from ottla.model.sentinels import NO_TIMESTAMP
from ottla.protocol import varint
from ottla.protocol.compression import Buffer, Codec, compress
from ottla.protocol.records import (
    CODEC_MASK,
    HAS_DELETE_HORIZON,
    BatchHeader,
    read_header,
    seal_batch,
)

_ATTRIBUTES_BYTES = 1


class Kept(NamedTuple):
    """The records of a batch that stay, as runs of bytes in its decompressed payload."""

    records: int
    runs: list[tuple[int, int]]
    """(start, end) of records that lie behind each other."""
    max_timestamp: int


def rewrite_batch(
    header: BatchHeader, payload: memoryview, kept: Kept, *, delete_horizon_ms: int | None, level: int | None
) -> bytearray:
    """The same offsets, sequence numbers and codec as before, with fewer records.

    A `delete_horizon_ms` is noted where Kafka's format keeps it: in place of the base timestamp, which the records'
    own times are counted from.
    """
    attributes, base_timestamp = header.attributes, header.base_timestamp
    body: Buffer
    if delete_horizon_ms is None:
        body = b"".join([payload[start:end] for start, end in kept.runs])
    else:
        shift = base_timestamp - delete_horizon_ms
        attributes |= HAS_DELETE_HORIZON
        base_timestamp = delete_horizon_ms
        if header.uses_log_append_time:  # then all records have the batch's largest timestamp, whatever they say
            body = b"".join([payload[start:end] for start, end in kept.runs])
        else:
            body = b"".join(_shifted(payload, kept.runs, shift))
    codec = Codec(header.attributes & CODEC_MASK)
    return seal_batch(
        compress(codec, body, level) if codec else body,
        base_offset=header.base_offset, leader_epoch=header.leader_epoch, attributes=attributes,
        last_offset_delta=header.last_offset_delta, base_timestamp=base_timestamp,
        max_timestamp=kept.max_timestamp, producer_id=header.producer_id, producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence, record_count=kept.records,
    )  # fmt: skip


def _shifted(payload: memoryview, runs: Iterable[tuple[int, int]], shift: int) -> list[Buffer]:
    """Records with `shift` added to their timestamp deltas."""
    parts: list[Buffer] = []
    for start, run_end in runs:
        at = start
        while at < run_end:
            length, body = varint.read_signed(payload, at)
            end = body + length
            delta, after = varint.read_signed(payload, body + _ATTRIBUTES_BYTES)
            encoded = varint.signed(delta + shift)
            new_length = length + len(encoded) - (after - body - _ATTRIBUTES_BYTES)
            parts += (
                varint.signed(new_length), payload[body : body + _ATTRIBUTES_BYTES], encoded, payload[after:end]
            )  # fmt: skip
            at = end
    return parts


def empty_batch(batch: memoryview) -> bytearray:
    """The header alone: it still tells the producer's sequence numbers and which offsets there have been."""
    header = read_header(batch)
    return seal_batch(
        b"",
        base_offset=header.base_offset, leader_epoch=header.leader_epoch,
        attributes=header.attributes & ~(CODEC_MASK | HAS_DELETE_HORIZON),
        last_offset_delta=header.last_offset_delta, base_timestamp=NO_TIMESTAMP,
        max_timestamp=header.max_timestamp, producer_id=header.producer_id, producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence, record_count=0,
    )  # fmt: skip
