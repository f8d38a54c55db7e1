"""`10 seconds`, `1 minute`, `500 ms`: how files write a length of time."""

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


def spark_interval(text: str) -> str:
    """The same for Spark's trigger, which knows whole milliseconds."""
    return f"{round(seconds_of(text) * 1000)} milliseconds"
