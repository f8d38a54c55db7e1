"""Burrow's templates of notices: the part of Go's text/template that such templates are made of. Pure.

Fields (`.Result.Group`), methods (`.Start.Format "..."`, `.Status.String`), variables, `if`/`else`, `range`, `with`,
pipes, and Burrow's functions. Anything else is an error when the template is read, not when an alert is due.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ottla.model.errors import OttlaError
from ottla.monitoring.lag.book import GroupLag, PartitionLag
from ottla.monitoring.lag.documents import partition_document
from ottla.monitoring.lag.notices import Notice
from ottla.monitoring.lag.rules import Status
from ottla.monitoring.lag.window import Commit


class BadTemplate(OttlaError):
    """A template that cannot be followed; the message says what in it."""


_ACTION = re.compile(r"\{\{(- )?(.*?)( -)?\}\}", re.DOTALL)
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|`[^`]*`|\$?[\w.]*[\w.]+|\$|:=|[|()]|-?\d+|,')
_LAYOUT = {
    "January": "%B", "Monday": "%A", "2006": "%Y", "Jan": "%b", "Mon": "%a", "MST": "UTC", "-0700": "+0000",
    "Z07:00": "Z", "01": "%m", "02": "%d", "15": "%H", "03": "%I", "04": "%M", "05": "%S", "06": "%y", "PM": "%p",
}  # fmt: skip
_LAYOUT_WORD = re.compile("|".join(re.escape(word) for word in sorted(_LAYOUT, key=len, reverse=True)))


class _Moment(NamedTuple):
    at: datetime

    def Format(self, layout: str) -> str:  # noqa: N802 - Go's name, which templates call
        return self.at.strftime(_LAYOUT_WORD.sub(lambda found: _LAYOUT[found[0]], layout.replace("%", "%%")))

    def __str__(self) -> str:
        return self.at.strftime("%Y-%m-%d %H:%M:%S +0000 UTC")


class _State(NamedTuple):
    """A number that templates compare, with a name that they show."""

    value: Status

    def String(self) -> str:  # noqa: N802
        return self.value.name

    def __str__(self) -> str:
        return self.value.name


def data_of(notice: Notice, extras: Mapping[str, str]) -> dict[str, Any]:
    """What Burrow hands to a template, by Burrow's names."""
    group = notice.group
    return {
        "Cluster": notice.cluster,
        "Group": group.group,
        "ID": notice.incident,
        "Id": notice.incident,  # as one of Burrow's own templates has it
        "Start": _Moment(datetime.fromtimestamp(notice.start_ms / 1000, UTC)),
        "Extras": dict(extras),
        "Result": {
            "Cluster": notice.cluster,
            "Group": group.group,
            "Status": _State(group.status),
            "Complete": group.complete,
            "Partitions": [_partition(each) for each in group.bad],
            "TotalPartitions": len(group.partitions),
            "Maxlag": None if group.max_lag is None else _partition(group.max_lag),
            "TotalLag": group.total_lag,
        },
    }


class _Named(dict[str, Any]):
    """A partition by Go's names, which remembers how it is as JSON."""

    document: dict[str, Any]


def _partition(each: PartitionLag) -> _Named:
    named = _Named(
        Topic=each.topic,
        Partition=each.partition,
        Owner=each.owner.host if each.owner else "",
        ClientID=each.owner.client_id if each.owner else "",
        Status=_State(each.status),
        Start=_commit(each.start),
        End=_commit(each.end),
        CurrentLag=each.current_lag,
        Complete=each.complete,
    )
    named.document = partition_document(each)
    return named


def _commit(commit: Commit | None) -> dict[str, Any] | None:
    if commit is None:
        return None
    return {"Offset": commit.offset, "Timestamp": commit.timestamp_ms, "Lag": commit.lag}


def sample() -> Notice:
    """With everything that a notice may have: a template is tried with it before an alert is due."""
    commit = Commit(5, 1_000, 1_000, 4)
    partition = PartitionLag("topic", 0, None, Status.STALL, commit, commit, 4, 1.0, None, None)
    group = GroupLag("group", Status.ERR, 1.0, (partition,), partition, 4, "Stable", 1)
    return Notice("notifier", "00000000-0000-0000-0000-000000000000", 1_000, False, "cluster", group)


# What a template is read to.

Scope = dict[str, Any]
Part = Callable[[Any, Scope], str]
Value = Callable[[Any, Scope], Any]


class Template:
    """`Template(text)` reads it, `render` fills it in."""

    def __init__(self, text: str, where: str = "template") -> None:
        self._reading = _Reading(text, where)
        self._parts = self._reading.block(())[0]

    def render(self, data: Mapping[str, Any]) -> str:
        return _joined(self._parts, data, {"$": data})


def _joined(parts: Sequence[Part], dot: Any, scope: Scope) -> str:
    return "".join(part(dot, scope) for part in parts)


class _Reading:
    def __init__(self, text: str, where: str) -> None:
        self._where = where
        self._tokens = _split(text)
        self._position = 0

    def block(self, ends: tuple[str, ...]) -> tuple[list[Part], str]:
        """Parts up to one of these words (or the end of the text), and what it was."""
        parts: list[Part] = []
        while self._position < len(self._tokens):
            text, action = self._tokens[self._position]
            self._position += 1
            if not action:
                parts.append(lambda dot, scope, text=text: text)  # type: ignore[misc]
                continue
            word = text.split(None, 1)[0] if text.split() else ""
            if word in ends or (ends and text.startswith("else") and "else" in ends):
                return parts, text
            if word in ("if", "range", "with"):
                parts.append(self._control(word, text[len(word) :]))
            elif word in ("end", "else", "define", "template", "block"):
                raise BadTemplate(f"{self._where}: {{{{{text}}}}} is not expected here")
            elif not text.startswith("/*"):
                parts.append(self._action(text))
        if ends:
            raise BadTemplate(f"{self._where}: {{{{end}}}} is missing")
        return parts, ""

    def _control(self, word: str, text: str) -> Part:
        names: list[str] = []
        if ":=" in text:
            left, text = text.split(":=", 1)
            names = [name.strip() for name in left.split(",")]
        value = self._pipeline(text)
        parts, stopped = self.block(("else", "end"))
        otherwise: list[Part] = []
        if stopped.startswith("else"):
            rest = stopped[4:].strip()
            otherwise = [self._control("if", rest[2:])] if rest.startswith("if") else self.block(("end",))[0]
        if word == "range":
            return _ranging(value, names, parts, otherwise)
        rebinds = word == "with"

        def choose(dot: Any, scope: Scope) -> str:
            found = value(dot, scope)
            inner = {**scope, names[0]: found} if names else scope
            if _true(found):
                return _joined(parts, found if rebinds else dot, inner)
            return _joined(otherwise, dot, scope)

        return choose

    def _action(self, text: str) -> Part:
        if ":=" in text:
            name, text = (side.strip() for side in text.split(":=", 1))
            value = self._pipeline(text)

            def assign(dot: Any, scope: Scope) -> str:
                scope[name] = value(dot, scope)
                return ""

            return assign
        value = self._pipeline(text)
        return lambda dot, scope: _shown(value(dot, scope))

    def _pipeline(self, text: str) -> Value:
        words = _WORD.findall(text)
        if "".join(words) != re.sub(r"\s+", "", text) and '"' not in text and "`" not in text:
            raise BadTemplate(f"{self._where}: {{{{{text.strip()}}}}} cannot be read")
        value, left = self._commands(words)
        if left:
            raise BadTemplate(f"{self._where}: {{{{{text.strip()}}}}} has a bracket too many")
        return value

    def _commands(self, words: list[str]) -> tuple[Value, list[str]]:
        """Commands with pipes between them, up to a closing bracket."""
        value, words = self._command(words, None)
        while words and words[0] == "|":
            value, words = self._command(words[1:], value)
        return value, words

    def _command(self, words: list[str], piped: Value | None) -> tuple[Value, list[str]]:
        operands: list[Value] = []
        first = ""
        while words and words[0] not in ("|", ")"):
            word, words = words[0], words[1:]
            if word == "(":
                inner, words = self._commands(words)
                if not words or words[0] != ")":
                    raise BadTemplate(f"{self._where}: a bracket is not closed")
                words = words[1:]
                operands.append(inner)
            elif not operands and not first and word in _FUNCTIONS:
                first = word
            else:
                operands.append(self._operand(word))
        if piped is not None:
            operands.append(piped)
        if first:
            function = _FUNCTIONS[first]
            return lambda dot, scope: _called(
                self._where, first, function, [each(dot, scope) for each in operands]
            ), words
        if not operands:
            raise BadTemplate(f"{self._where}: an action is empty")
        if len(operands) == 1:
            return lambda dot, scope: _method(operands[0](dot, scope), []), words
        return lambda dot, scope: _method(operands[0](dot, scope), [each(dot, scope) for each in operands[1:]]), words

    def _operand(self, word: str) -> Value:
        if word[0] == '"':
            text = json.loads(word)
            return lambda dot, scope: text
        if word[0] == "`":
            return lambda dot, scope: word[1:-1]
        if re.fullmatch(r"-?\d+(\.\d+)?", word):
            number = float(word) if "." in word else int(word)
            return lambda dot, scope: number
        if word in ("true", "false", "nil"):
            return lambda dot, scope: {"true": True, "false": False, "nil": None}[word]
        if word[0] == "$":
            name, _, path = word.partition(".")
            return lambda dot, scope: _field(self._where, scope.get(name), path)
        if word[0] == ".":
            return lambda dot, scope: _field(self._where, dot, word[1:])
        raise BadTemplate(f"{self._where}: there is no function {word}; there are {', '.join(sorted(_FUNCTIONS))}")


def _split(text: str) -> list[tuple[str, bool]]:
    """Text, and actions without their braces; `{{-` and `-}}` take the space beside them away."""
    tokens: list[tuple[str, bool]] = []
    position = 0
    trim = False
    for found in _ACTION.finditer(text):
        before = text[position : found.start()]
        before = before.lstrip() if trim else before
        tokens += [(before.rstrip() if found[1] else before, False), (found[2].strip(), True)]
        position, trim = found.end(), bool(found[3])
    tokens.append((text[position:].lstrip() if trim else text[position:], False))
    return tokens


def _ranging(value: Value, names: list[str], parts: list[Part], otherwise: list[Part]) -> Part:
    def each(dot: Any, scope: Scope) -> str:
        found = value(dot, scope)
        if not found:
            return _joined(otherwise, dot, scope)
        pairs = sorted(found.items()) if isinstance(found, dict) else list(enumerate(found))
        texts = []
        for key, item in pairs:
            named = dict(zip(names, [item] if len(names) == 1 else [key, item], strict=False))
            texts.append(_joined(parts, item, {**scope, **named}))
        return "".join(texts)

    return each


def _field(where: str, value: Any, path: str) -> Any:
    for name in path.split(".") if path else []:
        if callable(value):
            value = value()
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, _Moment | _State) and name in ("Format", "String"):
            value = getattr(value, name)
        elif value is None:
            return None
        else:
            raise BadTemplate(f"{where}: there is no .{name}")
    return value


def _method(value: Any, arguments: list[Any]) -> Any:
    return value(*arguments) if callable(value) else value


def _called(where: str, name: str, function: Callable[..., Any], arguments: list[Any]) -> Any:
    try:
        return function(*[_method(each, []) for each in arguments])
    except (TypeError, ValueError, LookupError, ArithmeticError) as error:
        raise BadTemplate(f"{where}: {name}: {error}") from None


def _true(value: Any) -> bool:
    return bool(value)


def _shown(value: Any) -> str:
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:
    return int(value.value) if isinstance(value, _State) else value


def _json(value: Any) -> str:
    if isinstance(value, list):
        value = [each.document if isinstance(each, _Named) else each for each in value]
    return json.dumps(value.document if isinstance(value, _Named) else value, separators=(",", ":"), default=str)


def _by_status(partitions: list[_Named]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in partitions:
        topics = found.setdefault(str(each["Status"]), [])
        if each["Topic"] not in topics:
            topics.append(each["Topic"])
    return found


def _counts(partitions: list[_Named]) -> dict[str, int]:
    counts = {name.lower(): 0 for name in ("WARN", "STOP", "STALL", "REWIND", "UNKNOWN")}
    for each in partitions:
        name = str(each["Status"]).lower()
        counts[name] = counts.get(name, 0) + 1
    return counts


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "index": lambda value, key: value[key],
    "len": len,
    "eq": lambda first, *others: any(_plain(first) == _plain(each) for each in others),
    "ne": lambda left, right: _plain(left) != _plain(right),
    "lt": lambda left, right: _plain(left) < _plain(right),
    "le": lambda left, right: _plain(left) <= _plain(right),
    "gt": lambda left, right: _plain(left) > _plain(right),
    "ge": lambda left, right: _plain(left) >= _plain(right),
    "and": lambda *values: next((each for each in values if not _true(each)), values[-1]),
    "or": lambda *values: next((each for each in values if _true(each)), values[-1]),
    "not": lambda value: not _true(value),
    "print": lambda *values: "".join(_shown(each) for each in values),
    "printf": lambda layout, *values: layout.replace("%v", "%s") % tuple(_plain(each) for each in values),
    "jsonencoder": _json,
    "topicsbystatus": _by_status,
    "partitioncounts": _counts,
    "add": lambda *values: sum(values),
    "minus": lambda left, right: left - right,
    "multiply": lambda left, right: left * right,
    "divide": lambda left, right: left // right,
    "maxlag": lambda value: value,
    "formattimestamp": lambda ms, layout: _Moment(datetime.fromtimestamp(ms / 1000, UTC)).Format(layout),
}
