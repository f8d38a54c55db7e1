"""`10 seconds`, `1 minute`, `500 ms`, `20 MB`: how files write a length of time, and an amount of bytes."""

import re

_UNITS = {
    "millisecond": 0.001,
    "ms": 0.001,
    "second": 1.0,
    "s": 1.0,
    "minute": 60.0,
    "min": 60.0,
    "hour": 3600.0,
    "h": 3600.0,
    "day": 86400.0,
    "d": 86400.0,
}
_PATTERN = re.compile(r"\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[a-z]+?)s?\s*", re.IGNORECASE)


def seconds_of(text: str) -> float:
    """ValueError, with what to write instead, if it is not a duration."""
    found = _PATTERN.fullmatch(text)
    unit = found["unit"].lower() if found else ""
    if found is None or (unit not in _UNITS and unit + "s" not in _UNITS):
        raise ValueError(f"`{text}` is not a duration: write `10 seconds`, `1 minute` or `500 ms`")
    return float(found["number"]) * (_UNITS[unit] if unit in _UNITS else _UNITS[unit + "s"])


_BYTES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_SIZE = re.compile(r"\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[a-z]*)\s*", re.IGNORECASE)


def bytes_of(text: str | int) -> int:
    """ValueError, with what to write instead, if it is not an amount of at least a byte."""
    found = _SIZE.fullmatch(str(text))
    factor = _BYTES.get(found["unit"].lower()) if found else None
    size = int(float(found["number"]) * factor) if found and factor else 0
    if size < 1:
        raise ValueError(f"`{text}` is not an amount of bytes: write `20 MB`, `512 kB` or a number")
    return size


def spark_interval(text: str) -> str:
    """The same for Spark's trigger, which knows whole milliseconds."""
    return f"{round(seconds_of(text) * 1000)} milliseconds"
