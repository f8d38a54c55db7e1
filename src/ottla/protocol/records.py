"""Record batches of format 2, the unit that is produced, stored and fetched.

The broker reads headers and checks CRCs; only tools, coordinators and the rare slow path decode records.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
from crc32c import crc32c

from ottla.protocol import varint
from ottla.protocol.compression import Buffer, Codec, compress, decompress
from ottla.protocol.errors import CorruptBatch, MalformedMessage

__all__ = [
    "BATCH_OVERHEAD", "BatchHeader", "Codec", "CorruptBatch", "NewRecord", "Record", "check_crc", "compress",
    "decode_batch", "decompress", "encode_batch", "iterate_batches", "read_header",
]  # fmt: skip

_HEADER = struct.Struct(">qiibIhiqqqhii")
_new_tuple = tuple.__new__
_FROM_ATTRIBUTES = struct.Struct(">hiqqqhii")
_PREFIX = struct.Struct(">qiibI")
BATCH_OVERHEAD = _HEADER.size
LENGTH_PREFIX_BYTES = 12  # base offset and batch length: `batch_length` counts what follows them
CRC_POSITION = 17
CRC_START = 21  # the CRC covers attributes to the end, so offset and leader epoch can be set in place
ATTRIBUTES_POSITION = 21
MAX_TIMESTAMP_POSITION = 35
MAGIC = 2

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
HAS_DELETE_HORIZON = 0x40
MAGIC_POSITION = 16

NO_PRODUCER_ID = -1
NO_SEQUENCE = -1


class BatchHeader(NamedTuple):
    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        return self.batch_length + LENGTH_PREFIX_BYTES

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def uses_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME)


class Record(msgspec.Struct):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


class NewRecord(msgspec.Struct):
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Sequence[tuple[str, bytes | None]] = ()


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Read one batch header; the records behind it may still be cut short or fail their CRC."""
    try:
        # What `_make` does, without a call of Python's own: every batch that comes or goes is read here.
        header: BatchHeader = _new_tuple(BatchHeader, _HEADER.unpack_from(buffer, position))
    except struct.error:
        raise CorruptBatch(f"a record batch has at least {BATCH_OVERHEAD} bytes") from None
    if header.magic != MAGIC:
        raise CorruptBatch(f"record batch format {header.magic} is not supported, only format {MAGIC}")
    if header.batch_length < BATCH_OVERHEAD - LENGTH_PREFIX_BYTES:
        raise CorruptBatch(f"a record batch cannot be {header.batch_length} bytes long")
    return header


def check_crc(buffer: Buffer, position: int, header: BatchHeader) -> None:
    end = position + header.batch_length + LENGTH_PREFIX_BYTES
    if end > len(buffer):
        raise CorruptBatch(f"the batch at offset {header.base_offset} is cut short")
    actual = crc32c(memoryview(buffer)[position + CRC_START : end])
    if actual != header.crc:
        raise CorruptBatch(
            f"the batch at offset {header.base_offset} fails its CRC: {actual:#x} is not {header.crc:#x}"
        )


def iterate_batches(buffer: Buffer, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of each complete batch; a last one that is cut short is left out."""
    length = len(buffer)
    while position + BATCH_OVERHEAD <= length:
        header = read_header(buffer, position)
        end = position + header.batch_length + LENGTH_PREFIX_BYTES
        if end > length:
            return
        yield position, header
        position = end


def decode_batch(buffer: Buffer, position: int = 0) -> list[Record]:
    """Decode every record of the batch at `position`, decompressing it if needed."""
    header, payload = open_batch(buffer, position)
    return decode_records(payload, header)


def open_batch(buffer: Buffer, position: int = 0) -> tuple[BatchHeader, Buffer]:
    """The header of the batch at `position`, and its records as bytes, decompressed."""
    header = read_header(buffer, position)
    end = position + header.batch_length + LENGTH_PREFIX_BYTES
    if end > len(buffer):
        raise CorruptBatch(f"the batch at offset {header.base_offset} is cut short")
    payload: Buffer = memoryview(buffer)[position + BATCH_OVERHEAD : end]
    try:
        codec = Codec(header.codec)
    except ValueError:
        raise CorruptBatch(f"compression codec {header.codec} is unknown") from None
    if codec:
        payload = decompress(codec, payload)
    if not 0 <= header.record_count <= len(payload):
        raise CorruptBatch(f"{len(payload)} bytes cannot hold {header.record_count} records")
    return header, payload


def decode_records(payload: Buffer, header: BatchHeader) -> list[Record]:
    records = []
    position = 0
    fixed_timestamp = header.max_timestamp if header.uses_log_append_time else None
    try:
        for _ in range(header.record_count):
            length, position = varint.read_signed(payload, position)
            record_end = position + length
            delta, at = varint.read_signed(payload, position + 1)  # one byte of unused attributes first
            offset_delta, at = varint.read_signed(payload, at)
            key, at = _read_bytes(payload, at)
            value, at = _read_bytes(payload, at)
            headers, at = _read_headers(payload, at)
            if at != record_end:
                raise CorruptBatch(f"a record of the batch at offset {header.base_offset} has a wrong length")
            position = at
            timestamp = header.base_timestamp + delta if fixed_timestamp is None else fixed_timestamp
            records.append(Record(header.base_offset + offset_delta, timestamp, key, value, headers))
    except (IndexError, UnicodeDecodeError) as error:
        raise CorruptBatch(f"the batch at offset {header.base_offset} does not parse: {error}") from None
    except CorruptBatch:
        raise
    except MalformedMessage as error:
        raise CorruptBatch(str(error)) from None
    return records


def _read_bytes(payload: Buffer, position: int) -> tuple[bytes | None, int]:
    length, position = varint.read_signed(payload, position)
    if length < 0:
        return None, position
    end = position + length
    if end > len(payload):
        raise CorruptBatch("a record is cut short")
    return bytes(payload[position:end]), end


def _read_headers(payload: Buffer, position: int) -> tuple[list[tuple[str, bytes | None]], int]:
    count, position = varint.read_signed(payload, position)
    if count < 0 or count > len(payload):
        raise CorruptBatch(f"a record cannot have {count} headers")
    headers = []
    for _ in range(count):
        name, position = _read_bytes(payload, position)
        if name is None:
            raise CorruptBatch("a header has no name")
        value, position = _read_bytes(payload, position)
        headers.append((name.decode(), value))
    return headers, position


def encode_batch(
    records: Sequence[NewRecord],
    *,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    leader_epoch: int = 0,
) -> bytearray:
    """Encode records with dense offsets as one batch, ready to be appended."""
    if not records:
        raise ValueError("a batch needs at least one record")
    base_timestamp = records[0].timestamp
    body = b"".join([_encode_record(delta, record, base_timestamp) for delta, record in enumerate(records)])
    attributes = codec | (TRANSACTIONAL if transactional else 0) | (CONTROL if control else 0)
    return seal_batch(
        compress(codec, body, level) if codec else body,
        base_offset=base_offset, leader_epoch=leader_epoch, attributes=attributes, last_offset_delta=len(records) - 1,
        base_timestamp=base_timestamp, max_timestamp=max(record.timestamp for record in records),
        producer_id=producer_id, producer_epoch=producer_epoch, base_sequence=base_sequence,
        record_count=len(records),
    )  # fmt: skip


def seal_batch(
    payload: Buffer,
    *,
    base_offset: int,
    leader_epoch: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    record_count: int,
) -> bytearray:
    """Put a header with its CRC before an already encoded (and compressed) payload."""
    tail = _FROM_ATTRIBUTES.pack(
        attributes, last_offset_delta, base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence,
        record_count,
    )  # fmt: skip
    crc = crc32c(payload, crc32c(tail))
    batch = bytearray(
        _PREFIX.pack(base_offset, BATCH_OVERHEAD - LENGTH_PREFIX_BYTES + len(payload), leader_epoch, MAGIC, crc)
    )
    batch += tail
    batch += payload
    return batch


def _encode_record(offset_delta: int, record: NewRecord, base_timestamp: int) -> bytes:
    key, value = record.key, record.value
    parts = [
        b"\x00",
        varint.signed(record.timestamp - base_timestamp),
        varint.signed(offset_delta),
        *((varint.signed(len(key)), key) if key is not None else (_NULL,)),
        *((varint.signed(len(value)), value) if value is not None else (_NULL,)),
        varint.signed(len(record.headers)),
    ]
    for name, content in record.headers:
        encoded = name.encode()
        parts += (varint.signed(len(encoded)), encoded)
        parts += (varint.signed(len(content)), content) if content is not None else (_NULL,)
    body = b"".join(parts)
    return varint.signed(len(body)) + body


_NULL = varint.signed(-1)
