"""Messages to bytes and back.

For each message class and version a reader and a writer are compiled on first use: straight Python code in which runs
of fixed-size fields become one struct call. That costs well under a millisecond once and makes every later call a few
times quicker than walking the field tables (docs/decisions/0001-own-codec.md has the figures).
"""

import itertools
import struct
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from ottla.protocol import varint
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.schema import Field, Message, TopLevel

__all__ = ["MalformedMessage", "decode", "decode_from", "encode", "encode_into"]

M = TypeVar("M", bound=TopLevel)
Buffer = bytes | bytearray | memoryview
Reader = Callable[[Buffer, int, int], tuple[Any, int]]
Writer = Callable[[bytearray, Any], None]

_FIXED = {
    "bool": "?", "int8": "b", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q", "float64": "d",
}  # fmt: skip

_readers: dict[tuple[type[Message], int], Reader] = {}
_writers: dict[tuple[type[Message], int], Writer] = {}


def decode(message: type[M], version: int, buffer: Buffer, position: int = 0) -> M:
    """Decode a whole message; bytes left over behind it are an error in the sender, and tolerated as Kafka does."""
    return decode_from(message, version, buffer, position)[0]


def decode_from(message: type[M], version: int, buffer: Buffer, position: int = 0) -> tuple[M, int]:
    """Decode a message and tell where it ended."""
    reader = _readers.get((message, version)) or _compile_reader(message, version, version >= message.FLEXIBLE_FROM)
    try:
        return reader(buffer, position, len(buffer))
    except (struct.error, IndexError, UnicodeDecodeError, ValueError) as error:
        raise MalformedMessage(f"{message.__name__} v{version} does not parse: {error}") from None


def encode(message: TopLevel, version: int) -> bytearray:
    out = bytearray()
    encode_into(out, message, version)
    return out


def encode_into(out: bytearray, message: TopLevel, version: int) -> None:
    cls = type(message)
    writer = _writers.get((cls, version)) or _compile_writer(cls, version, version >= cls.FLEXIBLE_FROM)
    writer(out, message)


# What the compiled code calls.


def _need(position: int, size: int, end: int) -> int:
    """The end of `size` bytes from `position`, which must not lie behind the buffer."""
    stop = position + size
    if size < 0 or stop > end:
        raise MalformedMessage(f"{size} bytes are announced where {end - position} are left")
    return stop


def _count(count: int, position: int, end: int) -> int:
    """An array's length; each element takes a byte at least, so a huge count is a lie."""
    if count > end - position:
        raise MalformedMessage(f"an array of {count} elements cannot fit in {end - position} bytes")
    return count


def _not_null(name: str) -> None:
    raise MalformedMessage(f"{name} may not be null")


def _skip_tags(buffer: Buffer, position: int, end: int) -> int:
    count, position = varint.read_unsigned(buffer, position)
    for _ in range(count):
        _, position = varint.read_unsigned(buffer, position)
        size, position = varint.read_unsigned(buffer, position)
        position = _need(position, size, end)
    return position


class _Source:
    """Lines of a function being written, with the values it refers to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {
            "need": _need, "count_of": _count, "not_null": _not_null, "skip_tags": _skip_tags, "uuid_of": uuid.UUID,
            "read_varint": varint.read_unsigned, "varint": varint.unsigned, "view": memoryview,
        }  # fmt: skip

    def add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def name_for(self, prefix: str, value: Any) -> str:
        name = f"{prefix}_{len(self.scope)}"
        self.scope[name] = value
        return name

    def build(self, header: str, function: str) -> Any:
        code = "\n".join([header, *self.lines])
        exec(compile(code, f"<ottla codec {function}>", "exec"), self.scope)  # noqa: S102 (our own tables only)
        return self.scope[function]


def _fields(message: type[Message], version: int) -> tuple[list[Field], list[Field]]:
    present = [field for field in message.FIELDS if field.in_version(version)]
    return [f for f in present if f.tag is None], [f for f in present if f.tag is not None]


def _compile_reader(message: type[Message], version: int, flexible: bool) -> Reader:
    source = _Source()
    plain, tagged = _fields(message, version)
    for fixed, group in itertools.groupby(plain, _is_fixed):
        if fixed:
            _read_run(source, list(group))
        else:
            for field in group:
                _read_field(source, 1, field, version, flexible)
    if flexible:
        _read_tagged(source, tagged, message, version)
    arguments = ", ".join(f"{f.name}=v_{f.name}" for f in [*plain, *(tagged if flexible else [])])
    source.add(1, f"return {source.name_for('cls', message)}({arguments}), p")
    reader: Reader = source.build("def read(b, p, end):", "read")
    _readers[message, version] = reader
    return reader


def _is_fixed(field: Field) -> bool:
    """Whether the field has the same size whatever its value, so that neighbours of its kind make one struct."""
    return not field.array and field.kind in _FIXED


def _run_layout(run: list[Field]) -> struct.Struct:
    return struct.Struct(">" + "".join(_FIXED[str(field.kind)] for field in run))


def _read_run(source: _Source, run: list[Field]) -> None:
    layout = _run_layout(run)
    unpack = source.name_for("unpack", layout.unpack_from)
    source.add(1, f"{', '.join(f'v_{f.name}' for f in run)}, = {unpack}(b, p)")
    source.add(1, f"p += {layout.size}")


def _read_field(source: _Source, depth: int, field: Field, version: int, flexible: bool) -> None:
    target = f"v_{field.name}"
    if not field.array:
        _read_value(source, depth, field, target, field.nullable_in(version), version, flexible)
        return
    if flexible:
        _read_compact_length(source, depth)
    else:
        source.add(depth, f"n, = {source.name_for('unpack', struct.Struct('>i').unpack_from)}(b, p)")
        source.add(depth, "p += 4")
    source.add(depth, "if n < 0:")
    source.add(depth + 1, f"{target} = None" if field.nullable_in(version) else f"not_null({field.name!r})")
    source.add(depth, "else:")
    if isinstance(field.kind, str) and field.kind in _FIXED and field.kind != "bool":
        letter, size = _FIXED[field.kind], struct.calcsize(_FIXED[field.kind])
        source.add(depth + 1, f"stop = need(p, n * {size}, end)")
        source.add(
            depth + 1, f"{target} = list({source.name_for('unpack', struct.unpack_from)}(f'>{{n}}{letter}', b, p))"
        )
        source.add(depth + 1, "p = stop")
        return
    source.add(depth + 1, f"{target} = []")
    source.add(depth + 1, "for _ in range(count_of(n, p, end)):")
    _read_value(source, depth + 2, field, "item", False, version, flexible)
    source.add(depth + 2, f"{target}.append(item)")


def _read_value(
    source: _Source, depth: int, field: Field, target: str, nullable: bool, version: int, flexible: bool
) -> None:
    kind = field.kind
    if not isinstance(kind, str):
        _read_nested(source, depth, kind, target, nullable, version, flexible)
    elif kind in _FIXED:
        layout = struct.Struct(">" + _FIXED[kind])
        source.add(depth, f"{target}, = {source.name_for('unpack', layout.unpack_from)}(b, p)")
        source.add(depth, f"p += {layout.size}")
    elif kind == "uuid":
        source.add(depth, "stop = need(p, 16, end)")
        source.add(depth, f"{target} = uuid_of(bytes=bytes(b[p:stop]))")
        source.add(depth, "p = stop")
    else:
        _read_sized(source, depth, field, target, nullable, flexible)


def _read_nested(
    source: _Source, depth: int, kind: type[Message], target: str, nullable: bool, version: int, flexible: bool
) -> None:
    reader = _readers.get((kind, version)) or _compile_reader(kind, version, flexible)
    call = f"{target}, p = {source.name_for('read', reader)}(b, p, end)"
    if not nullable:
        source.add(depth, call)
        return
    # A structure that may be null is announced by one signed byte: negative means it is not there.
    source.add(depth, "marker = b[p]")
    source.add(depth, "p += 1")
    source.add(depth, "if marker >= 0x80:")
    source.add(depth + 1, f"{target} = None")
    source.add(depth, "else:")
    source.add(depth + 1, call)


def _read_compact_length(source: _Source, depth: int) -> None:
    """A length plus one as a varint. Nearly all fit in one byte, so that case is spelled out."""
    source.add(depth, "n = b[p] - 1")
    source.add(depth, "if n < 0x7F:")
    source.add(depth + 1, "p += 1")
    source.add(depth, "else:")
    source.add(depth + 1, "n, p = read_varint(b, p)")
    source.add(depth + 1, "n -= 1")


def _read_sized(source: _Source, depth: int, field: Field, target: str, nullable: bool, flexible: bool) -> None:
    kind = field.kind
    if flexible:
        _read_compact_length(source, depth)
    else:
        layout = struct.Struct(">h" if kind == "string" else ">i")
        source.add(depth, f"n, = {source.name_for('unpack', layout.unpack_from)}(b, p)")
        source.add(depth, f"p += {layout.size}")
    source.add(depth, "if n < 0:")
    source.add(depth + 1, f"{target} = None" if nullable or kind == "records" else f"not_null({field.name!r})")
    source.add(depth, "else:")
    source.add(depth + 1, "stop = p + n")
    source.add(depth + 1, "if stop > end:")
    source.add(depth + 2, "need(p, n, end)")
    value = {
        "string": "str(b[p:stop], 'utf-8')",
        "bytes": "bytes(b[p:stop])",
        "records": "view(b)[p:stop]",
    }[str(kind)]
    source.add(depth + 1, f"{target} = {value}")
    source.add(depth + 1, "p = stop")


def _read_tagged(source: _Source, tagged: list[Field], message: type[Message], version: int) -> None:
    if not tagged:
        source.add(1, "if b[p] == 0:")
        source.add(2, "p += 1")
        source.add(1, "else:")
        source.add(2, "p = skip_tags(b, p, end)")
        return
    default = source.name_for("default", message)
    source.add(1, f"d = {default}()")
    for field in tagged:
        source.add(1, f"v_{field.name} = d.{field.name}")
    source.add(1, "tags, p = read_varint(b, p)")
    source.add(1, "for _tag in range(count_of(tags, p, end)):")
    source.add(2, "tag, p = read_varint(b, p)")
    source.add(2, "size, p = read_varint(b, p)")
    source.add(2, "after = need(p, size, end)")
    for index, field in enumerate(tagged):
        source.add(2, f"{'if' if index == 0 else 'elif'} tag == {field.tag}:")
        _read_field(source, 3, field, version, True)
    source.add(2, "p = after")


def _compile_writer(message: type[Message], version: int, flexible: bool) -> Writer:
    source = _Source()
    plain, tagged = _fields(message, version)
    for fixed, group in itertools.groupby(plain, _is_fixed):
        if fixed:
            _write_run(source, list(group))
        else:
            for field in group:
                _write_field(source, 1, "out", f"m.{field.name}", field, version, flexible)
    if flexible:
        _write_tagged(source, tagged, message, version)
    source.add(1, "return")
    writer: Writer = source.build("def write(out, m):", "write")
    _writers[message, version] = writer
    return writer


def _write_run(source: _Source, run: list[Field]) -> None:
    values = ", ".join(f"m.{field.name}" for field in run)
    source.add(1, f"out += {source.name_for('pack', _run_layout(run).pack)}({values})")


def _write_field(source: _Source, depth: int, out: str, value: str, field: Field, version: int, flexible: bool) -> None:
    nullable = field.nullable_in(version) or field.kind == "records"
    if not field.array:
        _write_value(source, depth, out, value, field, nullable, version, flexible)
        return
    source.add(depth, f"a = {value}")
    if nullable:
        source.add(depth, "if a is None:")
        source.add(depth + 1, f"{out} += {_null(flexible, '>i')!r}")
        source.add(depth, "else:")
        depth += 1
    size = "varint(len(a) + 1)" if flexible else f"{source.name_for('pack', struct.Struct('>i').pack)}(len(a))"
    source.add(depth, f"{out} += {size}")
    if isinstance(field.kind, str) and field.kind in _FIXED:
        pack = source.name_for("pack", struct.pack)
        source.add(depth, f"{out} += {pack}(f'>{{len(a)}}{_FIXED[field.kind]}', *a)")
        return
    source.add(depth, "for x in a:")
    _write_value(source, depth + 1, out, "x", field, False, version, flexible)


def _null(flexible: bool, layout: str) -> bytes:
    return b"\x00" if flexible else struct.pack(layout, -1)


def _write_value(
    source: _Source, depth: int, out: str, value: str, field: Field, nullable: bool, version: int, flexible: bool
) -> None:
    kind = field.kind
    if not isinstance(kind, str):
        writer = _writers.get((kind, version)) or _compile_writer(kind, version, flexible)
        call = f"{source.name_for('write', writer)}({out}, {value})"
        if not nullable:
            source.add(depth, call)
            return
        source.add(depth, f"if {value} is None:")
        source.add(depth + 1, f"{out}.append(255)")
        source.add(depth, "else:")
        source.add(depth + 1, f"{out}.append(1)")
        source.add(depth + 1, call)
    elif kind in _FIXED:
        source.add(depth, f"{out} += {source.name_for('pack', struct.Struct('>' + _FIXED[kind]).pack)}({value})")
    elif kind == "uuid":
        source.add(depth, f"{out} += {value}.bytes")
    else:
        _write_sized(source, depth, out, value, field, nullable, flexible)


def _write_sized(
    source: _Source, depth: int, out: str, value: str, field: Field, nullable: bool, flexible: bool
) -> None:
    layout = ">h" if field.kind == "string" else ">i"
    source.add(depth, f"s = {value}")
    if nullable:
        source.add(depth, "if s is None:")
        source.add(depth + 1, f"{out} += {_null(flexible, layout)!r}")
        source.add(depth, "else:")
        depth += 1
    if field.kind == "string":
        source.add(depth, "s = s.encode()")
    size = "varint(len(s) + 1)" if flexible else f"{source.name_for('pack', struct.Struct(layout).pack)}(len(s))"
    source.add(depth, f"{out} += {size}")
    source.add(depth, f"{out} += s")


def _write_tagged(source: _Source, tagged: list[Field], message: type[Message], version: int) -> None:
    if not tagged:
        source.add(1, "out.append(0)")
        return
    default = source.name_for("default", message())
    source.add(1, "sections = []")
    for field in sorted(tagged, key=lambda f: f.tag or 0):
        source.add(1, f"if m.{field.name} != {default}.{field.name}:")
        source.add(2, "part = bytearray()")
        _write_field(source, 2, "part", f"m.{field.name}", field, version, True)
        source.add(2, f"sections.append(({field.tag}, part))")
    source.add(1, "out += varint(len(sections))")
    source.add(1, "for tag, part in sections:")
    source.add(2, "out += varint(tag)")
    source.add(2, "out += varint(len(part))")
    source.add(2, "out += part")
