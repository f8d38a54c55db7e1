"""The five codecs a record batch may use, over cramjam."""

import struct
from enum import IntEnum

import cramjam

from ottla.protocol.errors import CorruptBatch

# Snappy comes in two shapes: a bare block, or blocks inside the frame of the xerial Java library.
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
_INT32 = struct.Struct(">i")

# Magic, version 1 with independent blocks and no checksums, blocks of at most 64 KiB, and the header's own checksum.
_LZ4_FRAME_HEADER = bytes.fromhex("04224d18604082")
_LZ4_BLOCK_BYTES = 64 * 1024
_LZ4_STORED_PLAIN = 0x8000_0000
_UINT32_LE = struct.Struct("<I")
LZ4_DEFAULT_LEVEL = 9  # Kafka's default; it stands for the fast compressor, other levels for the thorough one

Buffer = bytes | bytearray | memoryview


class Codec(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


CODEC_NAMES = {"none": Codec.NONE, "uncompressed": Codec.NONE} | {c.name.lower(): c for c in Codec if c}


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    match codec:
        case Codec.NONE:
            return bytes(data)
        case Codec.GZIP:
            # Kafka writes -1 for "the library's default", which cramjam spells as no level at all.
            return bytes(cramjam.gzip.compress(data, level=None if level == -1 else level))
        case Codec.SNAPPY:
            return _compress_snappy(data)
        case Codec.LZ4:
            return _compress_lz4(data, level)
        case Codec.ZSTD:
            return bytes(cramjam.zstd.compress(data, level=level))


def decompress(codec: Codec, data: Buffer) -> bytes | bytearray | memoryview:
    try:
        match codec:
            case Codec.NONE:
                return data
            case Codec.GZIP:
                return bytes(cramjam.gzip.decompress(data))
            case Codec.SNAPPY:
                return _decompress_snappy(data)
            case Codec.LZ4:
                return bytes(cramjam.lz4.decompress(data))
            case Codec.ZSTD:
                return bytes(cramjam.zstd.decompress(data))
    except cramjam.DecompressionError as error:
        raise CorruptBatch(f"the {codec.name.lower()} data does not decompress: {error}") from error


def _compress_lz4(data: Buffer, level: int | None) -> bytes:
    """An LZ4 frame of independent blocks: Java's reader refuses frames whose blocks refer to each other."""
    view = memoryview(data)
    parts = [_LZ4_FRAME_HEADER]
    for start in range(0, len(view), _LZ4_BLOCK_BYTES):
        plain = view[start : start + _LZ4_BLOCK_BYTES]
        if level is None or level == LZ4_DEFAULT_LEVEL:
            block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        else:
            block = bytes(
                cramjam.lz4.compress_block(plain, mode="high_compression", compression=level, store_size=False)
            )
        if len(block) < len(plain):
            parts += (_UINT32_LE.pack(len(block)), block)
        else:
            parts += (_UINT32_LE.pack(len(plain) | _LZ4_STORED_PLAIN), bytes(plain))
    parts.append(_UINT32_LE.pack(0))
    return b"".join(parts)


def _compress_snappy(data: Buffer) -> bytes:
    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (_INT32.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: Buffer) -> bytes:
    if bytes(data[:8]) != _XERIAL_MAGIC:
        return bytes(cramjam.snappy.decompress_raw(data))
    view = memoryview(data)
    position = len(_XERIAL_HEADER)
    parts = []
    while position < len(view):
        if position + 4 > len(view):
            raise CorruptBatch("a snappy block header is cut short")
        (length,) = _INT32.unpack_from(view, position)
        position += 4
        if length < 0 or position + length > len(view):
            raise CorruptBatch("a snappy block is cut short")
        parts.append(bytes(cramjam.snappy.decompress_raw(view[position : position + length])))
        position += length
    return b"".join(parts)
