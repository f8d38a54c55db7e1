"""Reads OpenTelemetry's metrics, as clients push them: the few fields of protobuf messages that are figures. Pure.

A whole library for protocol buffers would be more than the broker's other dependencies together in start-up time, for
six messages of which three dozen bytes of layout are all that is needed (decision 0022).
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from ottla.model.errors import OttlaError

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_DOUBLE = struct.Struct("<d")
_SIGNED = struct.Struct("<q")
_UNSIGNED = struct.Struct("<Q")
_DELTA = 1

Field = tuple[int, int, int | bytes]
"""Number, wire type, value."""


class BadMetrics(OttlaError):
    """What was pushed is not what it should be."""


class Point(NamedTuple):
    """One figure of one metric."""

    name: str
    unit: str
    attributes: tuple[tuple[str, str], ...]
    value: float
    is_delta: bool = False
    """It is what came since the last push, not all there ever was."""
    is_counter: bool = False


def decode(data: bytes) -> Iterator[Point]:
    """The figures of a MetricsData message. BadMetrics if it is none."""
    for resource in _messages(data, 1):
        for scope in _messages(resource, 2):
            for metric in _messages(scope, 2):
                yield from _metric(metric)


def _metric(data: bytes) -> Iterator[Point]:
    name = unit = ""
    for number, kind, value in fields(data):
        if kind != _BYTES:
            continue
        assert isinstance(value, bytes)
        if number == 1:
            name = _text(value)
        elif number == 3:
            unit = _text(value)
        elif number == 5:  # a gauge
            for point in _messages(value, 1):
                attributes, figure = _number_point(point)
                yield Point(name, unit, attributes, figure)
        elif number == 7:  # a sum
            is_delta, is_monotonic = _temporality(value)
            for point in _messages(value, 1):
                attributes, figure = _number_point(point)
                yield Point(name, unit, attributes, figure, is_delta, is_monotonic)
        elif number == 9:  # a histogram: how many values, and their sum
            is_delta, _ = _temporality(value)
            for point in _messages(value, 1):
                attributes, count, total = _histogram_point(point)
                yield Point(f"{name}.count", unit, attributes, count, is_delta, True)
                yield Point(f"{name}.sum", unit, attributes, total, is_delta, True)


def _temporality(data: bytes) -> tuple[bool, bool]:
    is_delta = is_monotonic = False
    for number, kind, value in fields(data):
        if kind == _VARINT and number == 2:
            is_delta = value == _DELTA
        elif kind == _VARINT and number == 3:
            is_monotonic = bool(value)
    return is_delta, is_monotonic


def _number_point(data: bytes) -> tuple[tuple[tuple[str, str], ...], float]:
    attributes: list[tuple[str, str]] = []
    figure: float = 0
    for number, kind, value in fields(data):
        if number == 7 and isinstance(value, bytes):
            attributes.append(_attribute(value))
        elif number == 4 and kind == _FIXED64:
            assert isinstance(value, int)
            figure = _DOUBLE.unpack(_UNSIGNED.pack(value))[0]
        elif number == 6 and kind == _FIXED64:
            assert isinstance(value, int)
            figure = _SIGNED.unpack(_UNSIGNED.pack(value))[0]
    return tuple(sorted(attributes)), figure


def _histogram_point(data: bytes) -> tuple[tuple[tuple[str, str], ...], int, float]:
    attributes: list[tuple[str, str]] = []
    count, total = 0, 0.0
    for number, kind, value in fields(data):
        if number == 9 and isinstance(value, bytes):
            attributes.append(_attribute(value))
        elif kind == _FIXED64 and isinstance(value, int) and number == 4:
            count = value
        elif kind == _FIXED64 and isinstance(value, int) and number == 5:
            total = _DOUBLE.unpack(_UNSIGNED.pack(value))[0]
    return tuple(sorted(attributes)), count, total


def _attribute(data: bytes) -> tuple[str, str]:
    key = text = ""
    for number, _, value in fields(data):
        if number == 1 and isinstance(value, bytes):
            key = _text(value)
        elif number == 2 and isinstance(value, bytes):
            text = _any_value(value)
    return key, text


def _any_value(data: bytes) -> str:
    for number, kind, value in fields(data):
        if number == 1 and isinstance(value, bytes):
            return _text(value)
        if number == 2 and kind == _VARINT:
            return "true" if value else "false"
        if number == 3 and isinstance(value, int):
            return str(value - (1 << 64) if value >> 63 else value)
        if number == 4 and isinstance(value, int):
            return repr(_DOUBLE.unpack(_UNSIGNED.pack(value))[0])
    return ""


def _messages(data: bytes, wanted: int) -> Iterator[bytes]:
    for number, _, value in fields(data):
        if number == wanted and isinstance(value, bytes):
            yield value


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise BadMetrics("a name is not UTF-8") from None


def fields(data: bytes) -> Iterator[Field]:
    """What a protobuf message holds. BadMetrics if it is cut short or none."""
    position, end = 0, len(data)
    while position < end:
        tag, position = _varint(data, position)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, position = _varint(data, position)
            yield number, kind, value
            continue
        if kind == _BYTES:
            size, position = _varint(data, position)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise BadMetrics(f"there is no wire type {kind}")
        if position + size > end:
            raise BadMetrics("the message is cut short")
        piece = data[position : position + size]
        position += size
        yield number, kind, piece if kind == _BYTES else int.from_bytes(piece, "little")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data) or shift > 63:
            raise BadMetrics("the message is cut short")
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return value, position
        shift += 7
