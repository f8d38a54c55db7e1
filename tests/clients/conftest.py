"""Records that every client must bring through unchanged."""

import pytest

Sent = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]


@pytest.fixture
def records() -> list[Sent]:
    """(key, value, headers): nulls, empties, repeated header names, and one value that compresses well."""
    return [
        (b"key", b"value", []),
        (None, b"no key", []),
        (b"no value", None, []),
        (None, None, [("tombstone", b"of nothing")]),
        (b"", b"", [("empty", b""), ("null", None)]),
        (b"key", b"value", [("twice", b"1"), ("twice", b"2"), ("naïve", b"\x00\xff")]),
        (b"large", b"abcdefgh" * 4096, []),
    ]
