"""`--date-format`: the patterns of Java's SimpleDateFormat, as far as a timestamp in a table needs them."""

import re
from collections.abc import Callable
from datetime import datetime

from ottla.cli.common.output import CommandError

DEFAULT_PATTERN = "yyyy-MM-dd HH:mm:ss:SSS"

_LETTERS: dict[str, Callable[[datetime, int], str]] = {
    "y": lambda moment, width: f"{moment.year % 100:02d}" if width == 2 else f"{moment.year:0{width}d}",
    "M": lambda moment, width: (
        moment.strftime("%B" if width > 3 else "%b") if width > 2 else f"{moment.month:0{width}d}"
    ),
    "d": lambda moment, width: f"{moment.day:0{width}d}",
    "H": lambda moment, width: f"{moment.hour:0{width}d}",
    "h": lambda moment, width: f"{moment.hour % 12 or 12:0{width}d}",
    "m": lambda moment, width: f"{moment.minute:0{width}d}",
    "s": lambda moment, width: f"{moment.second:0{width}d}",
    "S": lambda moment, width: f"{moment.microsecond // 1000:0{width}d}",
    "a": lambda moment, _width: "AM" if moment.hour < 12 else "PM",
    "E": lambda moment, width: moment.strftime("%A" if width > 3 else "%a"),
    "D": lambda moment, width: f"{moment.timetuple().tm_yday:0{width}d}",
    "Z": lambda moment, _width: moment.strftime("%z"),
    "z": lambda moment, _width: moment.strftime("%Z"),
}
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']")


class DatePattern:
    def __init__(self, pattern: str) -> None:
        self._tokens: list[tuple[str, int]] = []
        at = 0
        while at < len(pattern):
            token = _TOKEN.match(pattern, at)
            if token is None:
                raise CommandError(f"--date-format {pattern}: a quote is not closed")
            letter = token[2]
            if letter and letter not in _LETTERS:
                raise CommandError(
                    f"--date-format {pattern}: there is no letter {letter}; there are {''.join(_LETTERS)}"
                )
            literal = token[0] if token[1] is None else token[1].replace("''", "'") or "'"
            self._tokens.append((letter, len(token[0])) if letter else (literal, 0))
            at = token.end()

    def format(self, epoch_seconds: float) -> str:
        moment = datetime.fromtimestamp(epoch_seconds).astimezone()
        return "".join(_LETTERS[text](moment, width) if width else text for text, width in self._tokens)
