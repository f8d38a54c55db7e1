"""What a batch must satisfy before it enters a log, and the few bytes of it that the broker sets itself.

Only headers are read, except where a topic asks for more: compacted topics must see every key, a bound on old
timestamps every time, and a topic with its own codec the payload. A header that shows a wrong time makes the broker
look as well, to name the records (record_errors.py).
"""

import struct
from enum import Enum

from crc32c import crc32c

from ottla.broker.storage.append_rules import AppendRules
from ottla.broker.storage.record_errors import check_records, out_of_range
from ottla.config.topic import PROMOTING, RESTORING
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.compression import Buffer, Codec, compress, decompress
from ottla.protocol.errors import CorruptBatch
from ottla.protocol.records import (
    ATTRIBUTES_POSITION,
    BATCH_OVERHEAD,
    CODEC_MASK,
    CONTROL,
    CRC_POSITION,
    CRC_START,
    LENGTH_PREFIX_BYTES,
    LOG_APPEND_TIME,
    MAGIC,
    MAGIC_POSITION,
    MAX_TIMESTAMP_POSITION,
    BatchHeader,
    check_crc,
    iterate_batches,
    read_header,
    seal_batch,
)

_CODEC_MAX = max(Codec)
_INT16 = struct.Struct(">h")
_UINT32 = struct.Struct(">I")
_INT64 = struct.Struct(">q")
_PLACE = struct.Struct(">qii")  # base offset, batch length, leader epoch


class AppendOrigin(Enum):
    CLIENT = "client"
    COORDINATOR = "coordinator"


def check_batch(records: Buffer, rules: AppendRules, now_ms: int, origin: AppendOrigin) -> BatchHeader:
    """Check that `records` is one sound batch that the topic takes; raises ApiError saying what is wrong with it."""
    length = len(records)
    try:
        header = read_header(records)
    except CorruptBatch as error:
        raise _header_error(records, str(error)) from None
    size = header.batch_length + LENGTH_PREFIX_BYTES
    if size != length:
        raise ApiError(
            ErrorCode.INVALID_RECORD,
            f"a produce carries exactly one whole batch, this one has {length} bytes for a batch of {size}",
        )
    attributes = header.attributes
    if size > rules.batch_bytes_max and not attributes & CONTROL:  # a marker must never be refused for its size
        raise _too_large(size, rules)
    if size > rules.segment_bytes:
        raise ApiError(
            ErrorCode.RECORD_LIST_TOO_LARGE, f"the batch has {size} bytes, segment.bytes is {rules.segment_bytes}"
        )
    if crc32c(memoryview(records)[CRC_START:]) != header.crc:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, "the batch fails its CRC")
    if attributes & CODEC_MASK > _CODEC_MAX:
        raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"codec {header.codec} is unknown")
    if header.last_offset_delta < 0 or header.record_count != header.last_offset_delta + 1:
        raise ApiError(
            ErrorCode.INVALID_RECORD,
            f"the batch claims {header.record_count} records but offsets 0 to {header.last_offset_delta}",
        )
    if origin is AppendOrigin.CLIENT:
        _check_client_batch(header)
    # Whether the header alone shows that times are wrong; the records then say whose.
    if rules.log_append_time:
        suspicious = bool(attributes & LOG_APPEND_TIME)
    else:
        suspicious = header.max_timestamp - now_ms > rules.timestamp_after_max_ms
    if suspicious or (rules.looks_at_records and origin is AppendOrigin.CLIENT):
        _check_records(records, header, rules, now_ms)
        if suspicious:  # and yet no record is at fault: the header is
            raise ApiError(ErrorCode.INVALID_TIMESTAMP, out_of_range(header.max_timestamp, rules, now_ms))
    return header


def check_replicated(records: Buffer, expected: int) -> list[tuple[int, BatchHeader]]:
    """Position and header of each whole batch that a leader sent; raises ApiError if they do not follow on."""
    batches = []
    try:
        for position, header in iterate_batches(records):
            check_crc(records, position, header)
            if header.base_offset < expected:
                raise CorruptBatch(f"offset {header.base_offset} was sent where {expected} comes next")
            expected = header.next_offset
            batches.append((position, header))
    except CorruptBatch as error:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    return batches


def _header_error(records: Buffer, reason: str) -> ApiError:
    # Too short for a header is "no batch at all"; another magic is a format clients must not send any more.
    if len(records) < BATCH_OVERHEAD or records[MAGIC_POSITION] != MAGIC:
        return ApiError(ErrorCode.INVALID_RECORD, reason)
    return ApiError(ErrorCode.CORRUPT_MESSAGE, reason)


def read_only(rules: AppendRules) -> ApiError:
    """What a producer is told: a code that none of them tries again."""
    source = rules.mirrors.removeprefix(PROMOTING)
    if source.startswith(RESTORING):
        return ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"the topic is being restored from backup {source.removeprefix(RESTORING)}: wait until it is whole, or run "
            "the same `ottla backup restore` again if that was cut short",
        )
    return ApiError(
        ErrorCode.POLICY_VIOLATION,
        f"the topic is a read-only mirror of {source}: write there, or promote it (ottla mirror promote)",
    )


def _too_large(size: int, rules: AppendRules) -> ApiError:
    if rules.read_only:
        return read_only(rules)
    return ApiError(
        ErrorCode.MESSAGE_TOO_LARGE, f"the batch has {size} bytes, max.message.bytes is {rules.batch_bytes_max}"
    )


def _check_client_batch(header: BatchHeader) -> None:
    if header.attributes & CONTROL:
        raise ApiError(ErrorCode.INVALID_RECORD, "clients may not write control batches")
    if header.base_offset:
        raise ApiError(
            ErrorCode.INVALID_RECORD,
            f"the base offset of a produced batch is 0, this one has {header.base_offset}: the broker gives offsets",
        )
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise ApiError(
            ErrorCode.INVALID_RECORD, f"sequence {header.base_sequence} of producer {header.producer_id} is invalid"
        )


def _check_records(records: Buffer, header: BatchHeader, rules: AppendRules, now_ms: int) -> None:
    try:
        payload = _payload(records, header)
    except CorruptBatch as error:
        raise ApiError(ErrorCode.INVALID_RECORD, str(error)) from None
    check_records(payload, header, rules, now_ms)


def _payload(records: Buffer, header: BatchHeader) -> Buffer:
    payload = memoryview(records)[BATCH_OVERHEAD : header.size]
    return decompress(Codec(header.codec), payload)


def stamp_offset(records: bytearray | memoryview, base_offset: int, leader_epoch: int) -> None:
    """Give a batch its place in the log. The CRC does not cover these two fields."""
    _PLACE.pack_into(records, 0, base_offset, len(records) - LENGTH_PREFIX_BYTES, leader_epoch)


def stamp_time(records: bytearray | memoryview, header: BatchHeader, append_time_ms: int | None) -> BatchHeader:
    """Set the time of appending, or with None take back a producer's claim to it; the CRC is made anew."""
    if append_time_ms is None:
        attributes, max_timestamp = header.attributes & ~LOG_APPEND_TIME, header.max_timestamp
    else:
        attributes, max_timestamp = header.attributes | LOG_APPEND_TIME, append_time_ms
    _INT16.pack_into(records, ATTRIBUTES_POSITION, attributes)
    _INT64.pack_into(records, MAX_TIMESTAMP_POSITION, max_timestamp)
    crc = crc32c(memoryview(records)[CRC_START:])
    _UINT32.pack_into(records, CRC_POSITION, crc)
    return header._replace(attributes=attributes, max_timestamp=max_timestamp, crc=crc)


def needs_recompression(records: Buffer, rules: AppendRules) -> bool:
    """Whether the topic names a codec that this batch does not have.

    Markers are never compressed, and a header that does not parse needs nothing.
    """
    if rules.target_codec is None or len(records) < BATCH_OVERHEAD:
        return False
    (attributes,) = _INT16.unpack_from(records, ATTRIBUTES_POSITION)
    return int(attributes & CODEC_MASK) != rules.target_codec and not attributes & CONTROL


def recompress(records: Buffer, rules: AppendRules) -> bytearray:
    """The same batch in the topic's codec. Slow: meant for a thread. Raises ApiError if the batch is not sound."""
    if rules.target_codec is None:
        return bytearray(records)
    try:
        header = read_header(records)
        if header.size != len(records):
            raise CorruptBatch("a produce carries exactly one whole batch")
        if header.size > rules.batch_bytes_max:  # as it came: what it would be afterwards does not help it
            raise _too_large(header.size, rules)
        if crc32c(memoryview(records)[CRC_START:]) != header.crc:
            raise ApiError(ErrorCode.CORRUPT_MESSAGE, "the batch fails its CRC")
        if header.codec > _CODEC_MAX:
            raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"codec {header.codec} is unknown")
        payload = _payload(records, header)
    except CorruptBatch as error:
        raise ApiError(ErrorCode.INVALID_RECORD, str(error)) from None
    target = rules.target_codec
    return seal_batch(
        compress(target, payload, rules.level(target)),
        base_offset=header.base_offset, leader_epoch=header.leader_epoch,
        attributes=(header.attributes & ~CODEC_MASK) | target,
        last_offset_delta=header.last_offset_delta, base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp, producer_id=header.producer_id, producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence, record_count=header.record_count,
    )  # fmt: skip
