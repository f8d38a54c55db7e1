"""Records that every client must bring through unchanged."""

import warnings

import pytest

with warnings.catch_warnings():
    # kafka-python reads its schemas by a function that Python 3.11 has deprecated; its import is the only place.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka  # noqa: F401

Sent = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]


@pytest.fixture
def records() -> list[Sent]:
    """(key, value, headers): nulls, empties, repeated header names, and one value that compresses well."""
    return [
        (b"key", b"value", []),
        (None, b"no key", []),
        (b"no value", None, []),
        (b"", b"", [("empty", b""), ("null", None)]),
        (b"key", b"value", [("twice", b"1"), ("twice", b"2"), ("naïve", b"\x00\xff")]),
        (b"large", b"abcdefgh" * 4096, []),
    ]
