"""What the values of a batch begin with, for who wants to know nothing else: a quarter of what decoding takes."""

NULL = 1
"""-1, zigzag-coded: the length of a key or value that is not there."""


def common_prefix(payload: bytes, count: int, size: int) -> bytes | None:
    """The first `size` bytes of every value, where all have the same. None: they differ, or the batch is no plain one.

    Plain are records without headers, of up to two bytes of length, whose values are there. Others have to be decoded.
    """
    at = 0
    prefix: bytes | None = None
    try:
        for _ in range(count):
            length, at = _length(payload, at)
            end = at + length
            at += 1  # attributes
            while payload[at] >= 0x80:  # the timestamp's delta
                at += 1
            at += 1
            while payload[at] >= 0x80:  # the offset's
                at += 1
            at += 1
            if payload[at] == NULL:
                at += 1
            else:
                length, at = _length(payload, at)
                at += length
            length, at = _length(payload, at)
            if length < size:
                return None
            found = payload[at : at + size]
            if found != prefix:
                if prefix is not None:
                    return None
                prefix = found
            at += length
            if payload[at] != 0 or at + 1 != end:  # headers, or something else
                return None
            at = end
    except IndexError:
        return None
    return prefix


def _length(payload: bytes, at: int) -> tuple[int, int]:
    """Of something that is there, and where it begins. IndexError for what is not plain."""
    first = payload[at]
    if first < 0x80:
        if first & 1:
            raise IndexError
        return first >> 1, at + 1
    second = payload[at + 1]
    if second >= 0x80 or first & 1:
        raise IndexError
    return (first & 0x7F | second << 7) >> 1, at + 2
