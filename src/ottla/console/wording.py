"""Figures in the words of people: bytes, seconds, counts. Pure."""

import datetime

_STEPS = ("B", "kB", "MB", "GB", "TB", "PB")
MINUTE_S = 60
HOUR_S = 3600
DAY_S = 86_400


def count(value: float | None) -> str:
    return "?" if value is None else f"{value:,.0f}"


def size(value: float | None) -> str:
    if value is None or value < 0:
        return "?"
    for step in _STEPS:
        if value < 1000 or step == _STEPS[-1]:
            return f"{value:.0f} {step}" if step == "B" or value >= 100 else f"{value:.1f} {step}"
        value /= 1000
    return "?"


def speed(value: float | None) -> str:
    if value is None:
        return "?"
    return f"{value:,.0f}/s" if value >= 10 or value == 0 else f"{value:.1f}/s"


def seconds(value: float | None) -> str:
    if value is None:
        return "?"
    if value < MINUTE_S:
        return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"
    if value < HOUR_S:
        return f"{value / MINUTE_S:.0f} min"
    return f"{value / HOUR_S:.1f} h" if value < 2 * DAY_S else f"{value / DAY_S:.1f} d"


def moment(ms: int | None) -> str:
    if ms is None or ms < 0:
        return "?"
    try:
        found = datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC)
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"
    return found.strftime("%Y-%m-%d %H:%M:%S") + f".{ms % 1000:03d}Z"


def share(part: float, whole: float) -> str:
    return "?" if whole <= 0 else f"{100 * part / whole:.0f} %"
