"""What a batch must satisfy before it enters a log, and the few bytes of it that the broker sets itself.

Only headers are read, except where a topic asks for more: compacted topics must see every key, a bound on old
timestamps every time, and a topic with its own codec the payload.
"""

import struct
from collections.abc import Iterator
from enum import Enum

from crc32c import crc32c

from ottla.config.topic import TopicSettings
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol import varint
from ottla.protocol.compression import CODEC_NAMES, Buffer, Codec, compress, decompress
from ottla.protocol.errors import CorruptBatch, MalformedMessage
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
    MAX_TIMESTAMP_POSITION,
    BatchHeader,
    check_crc,
    iterate_batches,
    read_header,
    seal_batch,
)

MAGIC_POSITION = 16
_LONG_MAX = 2**63 - 1
_KEEP_CODEC = "producer"
_CODEC_MAX = max(Codec)
_INT16 = struct.Struct(">h")
_UINT32 = struct.Struct(">I")
_INT64 = struct.Struct(">q")
_INT32 = struct.Struct(">i")


class AppendOrigin(Enum):
    CLIENT = "client"
    COORDINATOR = "coordinator"


class AppendRules:
    """A topic's settings in the form the append path asks for them."""

    __slots__ = (
        "_levels", "batch_bytes_max", "log_append_time", "looks_at_records", "needs_keys", "segment_bytes",
        "target_codec", "timestamp_after_max_ms", "timestamp_before_max_ms",
    )  # fmt: skip

    def __init__(self, config: TopicSettings) -> None:
        self.batch_bytes_max = config.max_message_bytes
        self.segment_bytes = config.segment_bytes
        self.log_append_time = config.message_timestamp_type == "LogAppendTime"
        self.timestamp_before_max_ms = config.message_timestamp_before_max_ms
        self.timestamp_after_max_ms = config.message_timestamp_after_max_ms
        self.needs_keys = "compact" in config.cleanup_policy
        self.looks_at_records = self.needs_keys or (
            self.timestamp_before_max_ms != _LONG_MAX and not self.log_append_time
        )
        self.target_codec = None if config.compression_type == _KEEP_CODEC else CODEC_NAMES[config.compression_type]
        self._levels = {
            Codec.GZIP: config.compression_gzip_level,
            Codec.LZ4: config.compression_lz4_level,
            Codec.ZSTD: config.compression_zstd_level,
        }

    def level(self, codec: Codec) -> int | None:
        return self._levels.get(codec)


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
    if size > rules.batch_bytes_max and not header.attributes & CONTROL:  # a marker must never be refused for its size
        raise ApiError(
            ErrorCode.MESSAGE_TOO_LARGE, f"the batch has {size} bytes, max.message.bytes is {rules.batch_bytes_max}"
        )
    if size > rules.segment_bytes:
        raise ApiError(
            ErrorCode.RECORD_LIST_TOO_LARGE, f"the batch has {size} bytes, segment.bytes is {rules.segment_bytes}"
        )
    if crc32c(memoryview(records)[CRC_START:]) != header.crc:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, "the batch fails its CRC")
    if header.attributes & CODEC_MASK > _CODEC_MAX:
        raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"codec {header.codec} is unknown")
    if header.last_offset_delta < 0 or header.record_count != header.last_offset_delta + 1:
        raise ApiError(
            ErrorCode.INVALID_RECORD,
            f"the batch claims {header.record_count} records but offsets 0 to {header.last_offset_delta}",
        )
    if origin is AppendOrigin.CLIENT:
        _check_client_batch(header)
    _check_timestamps(header, rules, now_ms)
    if rules.looks_at_records and origin is AppendOrigin.CLIENT:
        _check_records(records, header, rules, now_ms)
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


def _check_client_batch(header: BatchHeader) -> None:
    if header.is_control:
        raise ApiError(ErrorCode.INVALID_RECORD, "clients may not write control batches")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise ApiError(
            ErrorCode.INVALID_RECORD, f"sequence {header.base_sequence} of producer {header.producer_id} is invalid"
        )


def _check_timestamps(header: BatchHeader, rules: AppendRules, now_ms: int) -> None:
    if rules.log_append_time:
        if header.uses_log_append_time:
            raise ApiError(ErrorCode.INVALID_TIMESTAMP, "a producer may not claim the time of appending")
    elif header.max_timestamp - now_ms > rules.timestamp_after_max_ms:
        raise ApiError(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamp {header.max_timestamp} is more than {rules.timestamp_after_max_ms} ms ahead of {now_ms}",
        )


def _check_records(records: Buffer, header: BatchHeader, rules: AppendRules, now_ms: int) -> None:
    oldest = None if rules.log_append_time else now_ms - rules.timestamp_before_max_ms
    seen = 0
    try:
        for timestamp_delta, key_length in _record_heads(_payload(records, header)):
            seen += 1
            if rules.needs_keys and key_length < 0:
                raise ApiError(ErrorCode.INVALID_RECORD, "a compacted topic does not take records without a key")
            timestamp = header.base_timestamp + timestamp_delta
            if oldest is not None and timestamp != -1 and timestamp < oldest:
                raise ApiError(
                    ErrorCode.INVALID_TIMESTAMP,
                    f"timestamp {timestamp} is more than {rules.timestamp_before_max_ms} ms before {now_ms}",
                )
    except (IndexError, MalformedMessage) as error:
        raise ApiError(ErrorCode.INVALID_RECORD, f"the records do not parse: {error}") from None
    if seen != header.record_count:
        raise ApiError(ErrorCode.INVALID_RECORD, f"the batch claims {header.record_count} records and holds {seen}")


def _payload(records: Buffer, header: BatchHeader) -> Buffer:
    payload = memoryview(records)[BATCH_OVERHEAD : header.size]
    return decompress(Codec(header.codec), payload)


def _record_heads(payload: Buffer) -> Iterator[tuple[int, int]]:
    """Yield (timestamp delta, key length or -1) of each record, skipping over the rest of it."""
    position, end = 0, len(payload)
    while position < end:
        length, position = varint.read_signed(payload, position)
        if length < 0 or position + length > end:
            raise CorruptBatch("a record is cut short")
        timestamp_delta, at = varint.read_signed(payload, position + 1)
        _, at = varint.read_signed(payload, at)
        key_length, at = varint.read_signed(payload, at)
        if at + max(key_length, 0) > position + length:
            raise CorruptBatch("a record is cut short")
        yield timestamp_delta, key_length
        position += length


def stamp_offset(records: bytearray | memoryview, base_offset: int, leader_epoch: int) -> None:
    """Give a batch its place in the log. The CRC does not cover these two fields."""
    _INT64.pack_into(records, 0, base_offset)
    _INT32.pack_into(records, LENGTH_PREFIX_BYTES, leader_epoch)


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
