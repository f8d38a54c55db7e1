"""Avro's JSON encoding and its binary one, either way: what console tools print and read."""

import struct
from collections.abc import Callable
from typing import Any

from ottla.protocol.errors import MalformedMessage
from ottla.protocol.varint import read_signed, signed
from ottla.registry.schemas.avro_types import AvroType

_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
_INTEGERS = {"int": range(-(2**31), 2**31), "long": range(-(2**63), 2**63)}
ITEMS_WITHOUT_BYTES_MAX = 100_000
"""Items of no size (nulls) that an array may have: they cost nothing to send, and memory here."""


class BadAvro(ValueError):
    """Bytes, or a document, that are not of the schema."""


class _Bytes:
    def __init__(self, data: bytes, at: int, tagged: bool) -> None:
        self.data, self.at, self.tagged = data, at, tagged

    def take(self, count: int) -> bytes:
        found = self.data[self.at : self.at + count]
        if count < 0 or len(found) < count:
            raise BadAvro("the value is cut short")
        self.at += count
        return found

    def integer(self) -> int:
        try:
            found, self.at = read_signed(self.data, self.at)
        except (IndexError, MalformedMessage):
            raise BadAvro("the value is cut short, or a number has too many bytes") from None
        return found


def to_document(schema: AvroType, data: bytes, start: int = 0, *, tagged: bool = True) -> Any:
    """The value as a document; all bytes have to be used.

    `tagged` says of unions which branch it is, `{"string": "x"}`, as Avro's JSON does; without it they are plain `"x"`.
    """
    source = _Bytes(data, start, tagged)
    found = _read(schema, source)
    if source.at != len(data):
        raise BadAvro(f"{len(data) - source.at} bytes are left over after the value")
    return found


def _read(kind: AvroType, source: _Bytes) -> Any:
    match kind.kind:
        case "null":
            return None
        case "boolean":
            return source.take(1) != b"\x00"
        case "int" | "long":
            return source.integer()
        case "float":
            return _FLOAT.unpack(source.take(4))[0]
        case "double":
            return _DOUBLE.unpack(source.take(8))[0]
        case "bytes":
            return source.take(source.integer()).decode("latin-1")
        case "fixed":
            return source.take(kind.size).decode("latin-1")
        case "string":
            try:
                return source.take(source.integer()).decode()
            except UnicodeDecodeError:
                raise BadAvro("a text is not UTF-8") from None
        case "enum":
            return _at(kind.symbols, source.integer(), "symbol")
        case "array":
            return _blocks(source, lambda: _read(_inner(kind), source))
        case "map":
            pairs = _blocks(source, lambda: (source.take(source.integer()).decode(), _read(_inner(kind), source)))
            return dict(pairs)
        case "union":
            branch = _at(kind.branches, source.integer(), "branch")
            value = _read(branch, source)
            return {branch.name or branch.kind: value} if source.tagged and branch.kind != "null" else value
    return {field.name: _read(field.type, source) for field in kind.fields}


def _inner(kind: AvroType) -> AvroType:
    assert kind.items is not None
    return kind.items


def _at(items: list[Any], number: int, what: str) -> Any:
    if not 0 <= number < len(items):
        raise BadAvro(f"there is no {what} {number}")
    return items[number]


def _blocks(source: _Bytes, read: Callable[[], Any]) -> list[Any]:
    found: list[Any] = []
    while True:
        count = source.integer()
        if count == 0:
            return found
        if count < 0:
            source.integer()  # how many bytes, for those who pass over them
            count = -count
        if count > len(source.data) - source.at + ITEMS_WITHOUT_BYTES_MAX:
            raise BadAvro(f"{count} items do not fit into the value")
        found += [read() for _ in range(count)]


def from_document(schema: AvroType, document: Any) -> bytes:
    out = bytearray()
    _write(schema, document, out, "the value")
    return bytes(out)


def _write(kind: AvroType, value: Any, out: bytearray, where: str) -> None:
    match kind.kind:
        case "null":
            _must(value is None, kind, value, where)
        case "boolean":
            _must(isinstance(value, bool), kind, value, where)
            out.append(1 if value else 0)
        case "int" | "long":
            _must(isinstance(value, int) and not isinstance(value, bool), kind, value, where)
            _must(value in _INTEGERS[kind.kind], kind, value, where)
            out += signed(value)
        case "float" | "double":
            _must(isinstance(value, int | float) and not isinstance(value, bool), kind, value, where)
            out += _packed(kind, value, where)
        case "bytes" | "fixed" | "string":
            _write_text(kind, value, out, where)
        case "enum":
            _must(value in kind.symbols, kind, value, where)
            out += signed(kind.symbols.index(value))
        case "array":
            _must(isinstance(value, list), kind, value, where)
            if value:
                out += signed(len(value))
            for number, item in enumerate(value):
                _write(_inner(kind), item, out, f"{where}[{number}]")
            out.append(0)
        case "map":
            _must(isinstance(value, dict), kind, value, where)
            if value:
                out += signed(len(value))
            for name, item in value.items():
                encoded = name.encode()
                out += signed(len(encoded)) + encoded
                _write(_inner(kind), item, out, f"{where}.{name}")
            out.append(0)
        case "union":
            _write_union(kind, value, out, where)
        case _:
            _write_record(kind, value, out, where)


def _packed(kind: AvroType, value: float, where: str) -> bytes:
    try:
        return (_FLOAT if kind.kind == "float" else _DOUBLE).pack(value)
    except OverflowError:
        raise BadAvro(f"{where}: {str(value)[:80]} is too large for a {kind.kind}") from None


def _write_text(kind: AvroType, value: Any, out: bytearray, where: str) -> None:
    _must(isinstance(value, str), kind, value, where)
    try:
        encoded = value.encode() if kind.kind == "string" else value.encode("latin-1")
    except UnicodeEncodeError:
        raise BadAvro(f"{where}: bytes are written as the characters from \\u0000 to \\u00ff") from None
    if kind.kind == "fixed":
        _must(len(encoded) == kind.size, kind, value, where)
    else:
        out += signed(len(encoded))
    out += encoded


def _write_union(kind: AvroType, value: Any, out: bytearray, where: str) -> None:
    """`{"string": "x"}` says which branch; a value that only one branch can hold may stand by itself."""
    for number, branch in enumerate(kind.branches):
        name = branch.name or branch.kind
        tagged = isinstance(value, dict) and len(value) == 1 and name in value
        if (value is None and branch.kind == "null") or tagged:
            out += signed(number)
            _write(branch, value[name] if tagged else None, out, where)
            return
    for number, branch in enumerate(kind.branches):
        attempt = bytearray(signed(number))
        try:
            _write(branch, value, attempt, where)
        except BadAvro:
            continue
        out += attempt
        return
    _must(False, kind, value, where)


def _write_record(kind: AvroType, value: Any, out: bytearray, where: str) -> None:
    _must(isinstance(value, dict), kind, value, where)
    unknown = [name for name in value if all(name != field.name for field in kind.fields)]
    if unknown:
        raise BadAvro(f"{where}: {kind.shown} has no field {unknown[0]}")
    for field in kind.fields:
        inside = f"{where}.{field.name}"
        if field.name in value:
            _write(field.type, value[field.name], out, inside)
        elif field.has_default:
            _write(field.type, field.default, out, inside)
        else:
            raise BadAvro(f"{inside} is missing")


def _must(holds: bool, kind: AvroType, value: Any, where: str) -> None:
    if not holds:
        raise BadAvro(f"{where}: {str(value)[:80]} is not a {kind.shown}")
