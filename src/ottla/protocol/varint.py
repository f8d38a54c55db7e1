"""Variable-length integers: seven bits a byte, low bits first; signed ones are zigzag-coded."""

from ottla.protocol.errors import MalformedMessage

VARINT_BYTES_MAX = 10


def read_unsigned(buffer: bytes | bytearray | memoryview, position: int) -> tuple[int, int]:
    """Return (value, next position)."""
    byte = buffer[position]
    if byte < 0x80:
        return byte, position + 1
    value = byte & 0x7F
    shift = 7
    start = position
    while True:
        position += 1
        byte = buffer[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position + 1
        shift += 7
        if position - start >= VARINT_BYTES_MAX:
            raise MalformedMessage("a variable-length integer is longer than ten bytes")


def read_signed(buffer: bytes | bytearray | memoryview, position: int) -> tuple[int, int]:
    raw, position = read_unsigned(buffer, position)
    return (raw >> 1) ^ -(raw & 1), position


def unsigned(value: int) -> bytes:
    if value < 0x80:
        return _ONE_BYTE[value]
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def signed(value: int) -> bytes:
    return unsigned(value << 1 if value >= 0 else (-value << 1) - 1)


_ONE_BYTE = tuple(bytes([value]) for value in range(0x80))
