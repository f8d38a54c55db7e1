"""One line of search to what is looked for, and back to a text that can be shared.

    order paid               both words, anywhere in key or value       key:abc     it contains abc, key=abc: it is abc
    value:"two words"        header.trace:x   header:trace (has one)    value:null  a tombstone
    $.order.id=42            $.amount>100   $.user.name~"ad"   $.note (has one)     key.$.id=7: in the key
    -word, NOT key:x         the opposite                               partition:0,2 offset>=100 offset<200
    from:2026-01-01T00:00 to:2026-01-02 since:15m (UTC)                 order:newest|oldest limit:100

Words are compared byte by byte, with upper and lower case. Pure: reads no clock and does no I/O.
"""

import difflib
import re
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, Literal, NamedTuple

from ottla.console.search.paths import BadPath, Path, quoted, read_path, read_quoted, write_path
from ottla.model.errors import OttlaError

LINE_CHARACTERS_MAX = 4_000
TERMS_MAX = 50
LIMIT_MAX = 1_000_000
OFFSET_MAX = 2**63 - 1
PARTITION_MAX = 2**31 - 1
PARTITIONS_MAX = 10_000

Where = Literal["any", "key", "value", "header"]
Order = Literal["newest", "oldest"]


class Op(StrEnum):
    CONTAINS = "~"
    EQUALS = "="
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="
    EXISTS = "exists"
    NULL = "null"


class BadQuery(OttlaError):
    """The line cannot be understood. `position` counts characters from 0; the message says what was expected there."""

    def __init__(self, position: int, expected: str) -> None:
        self.position, self.expected = position, expected
        super().__init__(f"the search cannot be read at character {position + 1}: expected {expected}")


class Term(NamedTuple):
    """One thing to test of a record. All terms of a query have to hold."""

    where: Where
    op: Op
    text: str = ""
    name: str = ""
    """Of a header."""
    path: Path | None = None
    """Into the document that key or value is."""
    literal: bool = True
    """Whether `text` was in quotes, and so is a text and no number, true, false or null; only of paths."""
    negated: bool = False

    def __str__(self) -> str:
        return ("-" if self.negated else "") + self._positive()

    def _positive(self) -> str:
        if self.path is not None:
            subject = ("key." if self.where == "key" else "") + write_path(self.path)
        elif self.where == "header":
            subject = f"header.{self.name if _PLAIN_NAME.fullmatch(self.name) else quoted(self.name)}"
        elif self.where == "any":
            return _word(self.text)
        else:
            subject = self.where
        if self.op is Op.EXISTS:
            return subject
        if self.op is Op.NULL:
            return f"{subject}:null"
        if self.path is not None:
            return f"{subject}{self.op}{quoted(self.text) if self.literal else self.text}"
        return f"{subject}{':' if self.op is Op.CONTAINS else self.op}{_word(self.text)}"


class Query(NamedTuple):
    terms: tuple[Term, ...] = ()
    partitions: tuple[int, ...] | None = None
    offset_from: int | None = None
    offset_to: int | None = None
    """Not itself."""
    time_from_ms: int | None = None
    time_to_ms: int | None = None
    """Not itself."""
    since_ms: int | None = None
    """Records of the last so many milliseconds, counted from when the search begins."""
    order: Order = "newest"
    limit: int | None = None

    def times(self, now_ms: int) -> tuple[int | None, int | None]:
        """From when, and before when, with `since` counted back from now."""
        begins = [each for each in (self.time_from_ms, self.since_ms and now_ms - self.since_ms) if each is not None]
        return (max(begins) if begins else None), self.time_to_ms

    def __str__(self) -> str:
        """A line that reads as this query again."""
        parts = [str(term) for term in self.terms]
        if self.partitions is not None:
            parts.append(f"partition:{','.join(map(str, self.partitions))}")
        if self.offset_from is not None:
            parts.append(f"offset>={self.offset_from}")
        if self.offset_to is not None:
            parts.append(f"offset<{self.offset_to}")
        if self.time_from_ms is not None:
            parts.append(f"from:{write_time(self.time_from_ms)}")
        if self.time_to_ms is not None:
            parts.append(f"to:{write_time(self.time_to_ms)}")
        if self.since_ms is not None:
            parts.append(f"since:{_write_duration(self.since_ms)}")
        if self.order != "newest":
            parts.append(f"order:{self.order}")
        if self.limit is not None:
            parts.append(f"limit:{self.limit}")
        return " ".join(parts)


_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.@/-]+")
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_@/][A-Za-z0-9_.@/-]*")
_RESERVED = frozenset({"NOT", "AND", "OR", "null"})
_OPERATORS = ("!=", ">=", "<=", "=", ">", "<", "~", ":")
_TEXT_OPERATORS = (":", "~", "=", "!=")
_FIELD = re.compile(r"[A-Za-z]+(?=[:=<>~!])")
_KNOWN = ("key", "value", "header", "partition", "offset", "from", "to", "since", "order", "limit")
_NUMBER = re.compile(r"[0-9]{1,19}")
_DURATION = re.compile(r"([0-9]{1,12})(ms|s|m|h|d|w)")
_UNITS: Final = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME_MS_MAX = 253_402_300_799_999  # the end of the year 9999, the last one that a date can say


def _word(text: str) -> str:
    plain = _PLAIN_WORD.fullmatch(text) and text not in _RESERVED and not text.startswith("header.")
    return text if plain else quoted(text)


def parse_query(line: str) -> Query:
    """BadQuery says where the line stops making sense, and what could stand there."""
    if len(line) > LINE_CHARACTERS_MAX:
        raise BadQuery(LINE_CHARACTERS_MAX, f"a search of at most {LINE_CHARACTERS_MAX} characters")
    try:
        line.encode()
        return _Reader(line).read()
    except UnicodeEncodeError as error:
        raise BadQuery(error.start, "a character that UTF-8 has") from None
    except BadPath as error:
        raise BadQuery(error.position, error.expected) from None


class _Reader:
    def __init__(self, line: str) -> None:
        self._line = line
        self._at = 0
        self._terms: list[Term] = []
        self._bounds: dict[str, object] = {}

    def read(self) -> Query:
        while self._skip_spaces():
            begin = self._at
            negated = self._negation()
            if not self._bound():
                if len(self._terms) == TERMS_MAX:
                    raise BadQuery(begin, f"at most {TERMS_MAX} conditions")
                term = self._term()
                self._terms.append(term._replace(negated=term.negated != negated))
            elif negated:
                raise BadQuery(begin, "a condition on key, value, header or path after NOT; bounds have no opposite")
            if self._at < len(self._line) and not self._line[self._at].isspace():
                raise BadQuery(self._at, "a space before the next condition")
        return Query(tuple(self._terms))._replace(**self._bounds)  # type: ignore[arg-type]

    def _skip_spaces(self) -> bool:
        """Up to the next condition; `AND` between two says what is so anyway."""
        line = self._line
        while self._at < len(line):
            if line[self._at].isspace():
                self._at += 1
            elif self._bare_word() == "AND" and self._terms:
                self._at += 3
            else:
                return True
        return False

    def _negation(self) -> bool:
        if self._bare_word() == "NOT":
            self._at += 3
            while self._at < len(self._line) and self._line[self._at].isspace():
                self._at += 1
        elif self._line[self._at] == "-":
            self._at += 1
        else:
            return False
        if self._at >= len(self._line) or self._line[self._at].isspace() or self._line[self._at] == "-":
            raise BadQuery(self._at, 'what is not to be found, such as -word (quote a word that begins so: "-5")')
        return True

    def _bare_word(self) -> str:
        end = self._at
        while end < len(self._line) and not self._line[end].isspace():
            end += 1
        return self._line[self._at : end]

    # Bounds: where to look, rather than what for.

    def _bound(self) -> bool:
        found = _FIELD.match(self._line, self._at)
        if found is None or found[0] not in _KNOWN[3:]:
            return False
        name = found[0]
        self._at = found.end()
        place = self._at
        operator = self._operator(_OPERATORS if name == "offset" else (":", "="), name)
        value_at = self._at
        if operator in {"~", "!="}:
            raise BadQuery(place, "one of : = < <= > >= after `offset`")
        text = self._bare_word()
        self._at += len(text)
        if name == "offset":
            self._offset(operator, text, value_at)
            return True
        key, value = _read_bound(name, text, value_at)
        if key in self._bounds:
            raise BadQuery(found.start(), f"`{name}` once")
        self._bounds[key] = value
        return True

    def _offset(self, operator: str, text: str, place: int) -> None:
        number = _read_number(text, place, OFFSET_MAX - 1, "an offset, such as offset>=100")
        begins = number + (operator == ">") if operator in {":", "=", ">", ">="} else None
        ends = number + (operator != "<") if operator in {":", "=", "<", "<="} else None
        for key, value in (("offset_from", begins), ("offset_to", ends)):
            if value is not None:
                if key in self._bounds:
                    raise BadQuery(place, "one lower and one upper bound of `offset`")
                self._bounds[key] = value

    def _operator(self, allowed: tuple[str, ...], subject: str) -> str:
        for operator in _OPERATORS:
            if self._line.startswith(operator, self._at):
                if operator not in allowed:
                    break
                self._at += len(operator)
                return operator
        raise BadQuery(self._at, f"one of {' '.join(allowed)} after `{subject}`")

    # Terms: what a record has to be like.

    def _term(self) -> Term:
        line, at = self._line, self._at
        if line[at] == '"':
            text, self._at = read_quoted(line, at)
            return Term("any", Op.CONTAINS, text)
        if line.startswith(("$", "key.$", "value.$"), at):
            return self._path_term()
        if line.startswith("header.", at):
            return self._header_term()
        found = _FIELD.match(line, at)
        if found is not None and found[0] in ("key", "value"):
            return self._field_term("key" if found[0] == "key" else "value", found.end())
        if found is not None and found[0] == "header":
            self._at = found.end()
            self._operator((":", "="), "header")
            return Term("header", Op.EXISTS, name=self._operand("the name of a header, such as header:trace")[0])
        return self._word_term(found)

    def _word_term(self, found: re.Match[str] | None) -> Term:
        word, at = self._bare_word(), self._at
        if word == "OR":
            raise BadQuery(at, 'another condition: all have to hold, there is no OR (the word itself is "OR")')
        if found is not None and (close := difflib.get_close_matches(found[0].lower(), _KNOWN, 1, 0.75)):
            raise BadQuery(at, f'`{close[0]}`, not `{found[0]}` (to look for these letters, quote them: "{word}")')
        if '"' in word:
            raise BadQuery(at + word.index('"'), 'a space before a text in quotes (a " itself is written "\\"")')
        self._at += len(word)
        return Term("any", Op.CONTAINS, word)

    def _field_term(self, where: Literal["key", "value"], end: int) -> Term:
        self._at = end
        operator = self._operator(_TEXT_OPERATORS, where)
        text, was_quoted = self._operand(f"a text after `{where}{operator}`, or null")
        if text == "null" and not was_quoted:
            return Term(where, Op.NULL, negated=operator == "!=")
        op = Op.CONTAINS if operator in ":~" else Op.EQUALS
        return Term(where, op, text, negated=operator == "!=")

    def _header_term(self) -> Term:
        self._at += len("header.")
        if self._line.startswith('"', self._at):
            name, self._at = read_quoted(self._line, self._at)
        else:
            end = self._at
            while end < len(self._line) and self._line[end] not in ':=~!<>"' and not self._line[end].isspace():
                end += 1
            name, self._at = self._line[self._at : end], end
            if not name:
                raise BadQuery(end, "the name of a header after `header.`")
        if self._at >= len(self._line) or self._line[self._at].isspace():
            return Term("header", Op.EXISTS, name=name)
        operator = self._operator(_TEXT_OPERATORS, f"header.{name}")
        text, was_quoted = self._operand("a text that the header holds, or null")
        if text == "null" and not was_quoted:
            return Term("header", Op.NULL, name=name, negated=operator == "!=")
        op = Op.CONTAINS if operator in ":~" else Op.EQUALS
        return Term("header", op, text, name, negated=operator == "!=")

    def _path_term(self) -> Term:
        where: Literal["key", "value"] = "key" if self._line.startswith("key.", self._at) else "value"
        path, self._at = read_path(self._line, self._line.index("$", self._at))
        if self._at >= len(self._line) or self._line[self._at].isspace():
            return Term(where, Op.EXISTS, path=path)
        operator = self._operator(_OPERATORS, write_path(path))
        text, was_quoted = self._operand('a number, true, false, null or a "text" to compare with')
        if text == "null" and not was_quoted and operator in {"=", ":", "!="}:
            return Term(where, Op.NULL, path=path, negated=operator == "!=")
        op = Op.EQUALS if operator == "!=" else Op.CONTAINS if operator == ":" else Op(operator)
        return Term(where, op, text, path=path, literal=was_quoted, negated=operator == "!=")

    def _operand(self, expected: str) -> tuple[str, bool]:
        if self._line.startswith('"', self._at):
            text, self._at = read_quoted(self._line, self._at)
            return text, True
        text = self._bare_word()
        if not text:
            raise BadQuery(self._at, expected)
        if '"' in text:
            raise BadQuery(self._at + text.index('"'), 'quotes around the whole text (a " in it is written \\")')
        self._at += len(text)
        return text, False


def _read_bound(name: str, text: str, place: int) -> tuple[str, object]:
    match name:
        case "partition":
            numbers = [_read_number(part, place, PARTITION_MAX, "numbers such as 0,2") for part in text.split(",")]
            if len(numbers) > PARTITIONS_MAX:
                raise BadQuery(place, f"at most {PARTITIONS_MAX} partitions")
            return "partitions", tuple(sorted(set(numbers)))
        case "from" | "to":
            return f"time_{name}_ms", read_time(text, place)
        case "since":
            found = _DURATION.fullmatch(text)
            if found is None or not (since := int(found[1]) * _UNITS[found[2]]) or since > _TIME_MS_MAX:
                raise BadQuery(place, "a duration such as 30s, 15m, 2h, 7d")
            return "since_ms", since
        case "order":
            if text not in {"newest", "oldest"}:
                raise BadQuery(place, "newest or oldest")
            return "order", text
    limit = _read_number(text, place, LIMIT_MAX, f"a number from 1 to {LIMIT_MAX}")
    if not limit:
        raise BadQuery(place, f"a number from 1 to {LIMIT_MAX}")
    return "limit", limit


def _read_number(text: str, place: int, most: int, expected: str) -> int:
    if not _NUMBER.fullmatch(text) or int(text) > most:
        raise BadQuery(place, expected)
    return int(text)


def read_time(text: str, place: int = 0) -> int:
    """Milliseconds of a date, a date and time (UTC unless it says otherwise), or of such a number itself."""
    if re.fullmatch(r"[0-9]{9,15}", text):
        return min(int(text), _TIME_MS_MAX)
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0, (moment - _EPOCH) // timedelta(milliseconds=1))
    except (ValueError, OverflowError):
        raise BadQuery(
            place, "a time such as 2026-01-31, 2026-01-31T15:30 (UTC), 2026-01-31T15:30+02:00, or milliseconds"
        ) from None


def write_time(time_ms: int) -> str:
    moment = _EPOCH + timedelta(milliseconds=time_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _write_duration(duration_ms: int) -> str:
    unit = next(unit for unit, size in _UNITS.items() if duration_ms % size == 0)
    return f"{duration_ms // _UNITS[unit]}{unit}"
