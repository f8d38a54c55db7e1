"""Python where Kafka's tools take a Java class: `module:function` or `module:Class`, found in the current folder too.

docs/tools.md says what each is called with. What goes wrong inside is told with the record, and the line of the code.
"""

import difflib
import importlib
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, Message

from ottla.cli.common.output import CommandError
from ottla.cli.data.console_reader import UnreadableLine

_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_TIMESTAMP_TYPES = {TIMESTAMP_CREATE_TIME: "CreateTime", TIMESTAMP_LOG_APPEND_TIME: "LogAppendTime"}
HOW_TO_WRITE_ONE = "write it in Python and name it as module:function or module:Class (docs/tools.md)"


_END = object()


class OwnCodeFailed(CommandError):
    """The user's code raised; the message says what and where."""


class Record(NamedTuple):
    """What a formatter of one's own is given."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    timestamp_type: str | None
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


class OwnLine(NamedTuple):
    """What a line reader of one's own makes: a `ParsedLine` that may say where it goes, and when it was."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    partition: int | None = None
    """None: the partitioner decides."""
    timestamp: int | None = None
    """In milliseconds; None: now."""


def is_own(name: str) -> bool:
    """No Java class has a colon in its name."""
    return ":" in name


def load(reference: str, option: str) -> Callable[..., Any]:
    if not _REFERENCE.fullmatch(reference.strip()):
        raise CommandError(f"{option}={reference}: code of your own is named module:function or module:Class")
    module_name, _, path = reference.strip().partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` does
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise CommandError(
                f"{option}={reference}: there is no module `{error.name}`, neither in {Path.cwd()} nor installed"
            ) from None
        raise CommandError(f"{option}={reference}: cannot be imported: {_said(error)}") from error
    except Exception as error:  # whatever the user's module raises
        raise CommandError(f"{option}={reference}: cannot be imported: {_said(error)}") from error
    for name in path.split("."):
        if not hasattr(found, name):
            known = [each for each in dir(found) if not each.startswith("_")]
            close = difflib.get_close_matches(name, known, n=1)
            meant = f": did you mean `{close[0]}`?" if close else f"; it has {', '.join(known) or 'nothing'}"
            raise CommandError(f"{option}={reference}: module `{module_name}` has no `{name}`{meant}")
        found = getattr(found, name)
    if not callable(found):
        raise CommandError(f"{option}={reference} is a {type(found).__name__}, neither a function nor a class")
    loaded: Callable[..., Any] = found
    return loaded


def made(reference: str, option: str, method: str, properties: Mapping[str, str]) -> Callable[..., Any]:
    """A function as it is; of a class, the `method` of one made with the properties."""
    found = load(reference, option)
    if not isinstance(found, type):
        return found
    try:
        instance = found(dict(properties))
    except Exception as error:  # the user's constructor
        raise CommandError(f"{option}={reference} cannot be made from its properties: {_said(error)}") from error
    if not callable(getattr(instance, method, None)):
        raise CommandError(f"{option}={reference}: the class has no method `{method}`")
    bound: Callable[..., Any] = getattr(instance, method)
    return bound


def own_deserializer(reference: str, option: str, properties: Mapping[str, str]) -> Callable[[bytes], bytes]:
    decode = made(reference, option, "deserialize", properties)
    return lambda data: _as_bytes(_called(reference, decode, data), reference)


class OwnFormatter:
    """A function from a record to the text to print, or a class that writes to the stream itself."""

    def __init__(self, reference: str, properties: Mapping[str, str]) -> None:
        self._reference = reference
        self._writes = isinstance(load(reference, "--formatter"), type)
        self._format = made(reference, "--formatter", "write", properties)

    def write(self, record: Message, out: BinaryIO) -> None:
        kind, timestamp = record.timestamp()
        plain = Record(
            topic=record.topic(), partition=record.partition(), offset=record.offset(),
            timestamp=timestamp if kind in _TIMESTAMP_TYPES else None, timestamp_type=_TIMESTAMP_TYPES.get(kind),
            key=record.key(), value=record.value(), headers=list(record.headers() or ()),
        )  # fmt: skip
        if self._writes:
            _called(self._reference, self._format, plain, out)
            return
        text = _called(self._reference, self._format, plain)
        if text is not None:
            out.write(_as_bytes(text, self._reference) + b"\n")


class OwnReader:
    """A function from a line to a record, or a class that makes records of the whole input."""

    def __init__(self, reference: str, properties: Mapping[str, str]) -> None:
        self._reference = reference
        self.reads_stream = isinstance(load(reference, "--line-reader"), type)
        self._read = made(reference, "--line-reader", "read_records", properties)

    def parse(self, line: str, number: int) -> OwnLine | None:
        try:
            made_of_it = _called(self._reference, self._read, line)
            return None if made_of_it is None else _parsed(made_of_it, self._reference)
        except OwnCodeFailed as error:
            raise UnreadableLine(f"line number {number}: {error}") from error

    def records(self, stream: IO[bytes]) -> Iterator[OwnLine]:
        found = iter(_called(self._reference, self._read, stream))
        number = 0
        while True:
            number += 1
            try:
                record = _called(self._reference, next, found, _END)
                if record is _END:
                    return
                if record is None:
                    continue
                parsed = _parsed(record, self._reference)
            except OwnCodeFailed as error:
                raise UnreadableLine(f"record number {number}: {error}") from error
            yield parsed


class OwnPartitioner:
    """`choose(key, value, partitions)`: which of so many a record goes to."""

    def __init__(self, reference: str, properties: Mapping[str, str]) -> None:
        self._reference = reference
        self._choose = made(reference, "partitioner.class", "partition", properties)

    def partition(self, key: bytes | None, value: bytes | None, partitions: int, number: int) -> int:
        try:
            chosen = _called(self._reference, self._choose, key, value, partitions)
        except OwnCodeFailed as error:
            raise UnreadableLine(f"line number {number}: {error}") from error
        if not isinstance(chosen, int) or isinstance(chosen, bool) or not 0 <= chosen < partitions:
            raise UnreadableLine(
                f"line number {number}: {self._reference} chose {chosen!r}; the topic has the partitions 0 to "
                f"{partitions - 1}"
            )
        return chosen


def _called(reference: str, function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except BrokenPipeError:
        raise  # our output's reader has gone, which is nobody's mistake
    except Exception as error:  # the user's code may raise anything
        raise OwnCodeFailed(f"{reference} failed: {_said(error)}") from error


def _said(error: Exception) -> str:
    """What was raised, and the line of the user's code that it comes from."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_ours(frame.filename)]
    place = f" ({os.path.basename(frames[-1].filename)}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"


def _is_ours(file: str) -> bool:
    return file == __file__ or file.startswith("<") or os.sep + "importlib" + os.sep in file


def _as_bytes(value: Any, reference: str) -> bytes:
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if value is None or isinstance(value, int | float | list | tuple | dict):
        return b"null" if value is None else str(value).encode()
    raise OwnCodeFailed(f"{reference} returned a {type(value).__name__}: return text or bytes")


def _parsed(made_of_it: Any, reference: str) -> OwnLine:
    """A value, a (key, value) or a mapping with key, value, headers, partition and timestamp."""
    if isinstance(made_of_it, tuple) and len(made_of_it) == 2:
        made_of_it = {"key": made_of_it[0], "value": made_of_it[1]}
    if not isinstance(made_of_it, Mapping):
        made_of_it = {"value": made_of_it}
    unknown = set(made_of_it) - {"key", "value", "headers", "partition", "timestamp"}
    if unknown:
        raise OwnCodeFailed(
            f"{reference} returned a record with `{min(unknown, key=str)}`; it has key, value, headers, partition and "
            "timestamp"
        )
    headers = made_of_it.get("headers") or []
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return OwnLine(
        key=_field(made_of_it.get("key"), reference),
        value=_field(made_of_it.get("value"), reference),
        headers=[(str(name), _field(value, reference)) for name, value in pairs],
        partition=made_of_it.get("partition"),
        timestamp=made_of_it.get("timestamp"),
    )


def _field(value: Any, reference: str) -> bytes | None:
    return None if value is None else _as_bytes(value, reference)
