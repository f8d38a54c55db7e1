"""A descriptor as a .proto text: stored for clients that send descriptors, and the normalised form."""

from collections.abc import Iterable
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.message import Message

_TYPES = {
    number: name.removeprefix("TYPE_").lower()
    for name, number in FieldDescriptorProto.Type.items()
    if name not in ("TYPE_MESSAGE", "TYPE_ENUM", "TYPE_GROUP")
}
_REPEATED, _REQUIRED = FieldDescriptorProto.LABEL_REPEATED, FieldDescriptorProto.LABEL_REQUIRED
_TEXT_TYPES = (FieldDescriptorProto.TYPE_STRING, FieldDescriptorProto.TYPE_BYTES)
_FIELD_NUMBER_MAX = 536_870_911
_ENUM_NUMBER_MAX = 2**31 - 1


def proto_text(file: FileDescriptorProto, *, sort: bool = False) -> str:
    """With `sort` imports and options are in order of their names."""
    lines = [
        f'edition = "{_edition(file)}";' if file.syntax == "editions" else f'syntax = "{file.syntax or "proto2"}";'
    ]
    if file.package:
        lines.append(f"package {file.package};")
    lines.append("")
    imports = [
        f"import {'public ' if number in file.public_dependency else ''}{_quoted(name)};"
        for number, name in enumerate(file.dependency)
    ]
    lines += [*(sorted(imports) if sort else imports), *([""] if imports else [])]
    options = [f"option {text};" for text in _options(file.options)]
    lines += [*(sorted(options) if sort else options), *([""] if options else [])]
    writer = _Writer(file.syntax or "proto2")
    for enum in file.enum_type:
        lines += [*writer.enum(enum, ""), ""]
    for message in file.message_type:
        lines += [*writer.message(message, ""), ""]
    for extended, fields in _by_extended(file.extension):
        lines += [*writer.extension(extended, fields, ""), ""]
    for service in file.service:
        lines += [*_service(service), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _edition(file: FileDescriptorProto) -> str:
    return Edition.Name(file.edition).removeprefix("EDITION_")


class _Writer:
    def __init__(self, syntax: str) -> None:
        self._syntax = syntax

    def message(self, message: DescriptorProto, indent: str, opening: str = "") -> list[str]:
        inner = indent + "  "
        lines = [f"{indent}{opening or f'message {message.name}'} {{"]
        lines += [f"{inner}option {text};" for text in _options(message.options)]
        entries = {nested.name: nested for nested in message.nested_type if nested.options.map_entry}
        groups = {f.type_name.rpartition(".")[2] for f in message.field if f.type == FieldDescriptorProto.TYPE_GROUP}
        lines += _reserved(message.reserved_range, message.reserved_name, inner, _FIELD_NUMBER_MAX, behind=1)
        for span in message.extension_range:
            lines.append(f"{inner}extensions {_span(span.start, span.end - 1, _FIELD_NUMBER_MAX)};")
        done: set[int] = set()
        for field in message.field:
            if field.HasField("oneof_index") and not field.proto3_optional:
                if field.oneof_index not in done:
                    done.add(field.oneof_index)
                    lines += self._oneof(message, field.oneof_index, inner)
                continue
            lines += self._field(field, entries, message, inner)
        for enum in message.enum_type:
            lines += self.enum(enum, inner)
        for nested in message.nested_type:
            if not nested.options.map_entry and nested.name not in groups:
                lines += self.message(nested, inner)
        for extended, fields in _by_extended(message.extension):
            lines += self.extension(extended, fields, inner)
        return [*lines, f"{indent}}}"]

    def _oneof(self, message: DescriptorProto, index: int, indent: str) -> list[str]:
        oneof = message.oneof_decl[index]
        lines = [f"{indent}oneof {oneof.name} {{"]
        lines += [f"{indent}  option {text};" for text in _options(oneof.options)]
        for field in message.field:
            if field.HasField("oneof_index") and field.oneof_index == index:
                lines += self._field(field, {}, message, indent + "  ", bare=True)
        return [*lines, f"{indent}}}"]

    def _field(
        self,
        field: FieldDescriptorProto,
        entries: dict[str, DescriptorProto],
        message: DescriptorProto | None,
        indent: str,
        *,
        bare: bool = False,
    ) -> list[str]:
        entry = entries.get(field.type_name.rpartition(".")[2]) if field.label == _REPEATED else None
        if entry is not None:
            kind = f"map<{_type(entry.field[0])}, {_type(entry.field[1])}>"
            return [f"{indent}{kind} {field.name} = {field.number}{_field_options(field)};"]
        label = "" if bare else self._label(field)
        if field.type == FieldDescriptorProto.TYPE_GROUP and message is not None:
            name = field.type_name.rpartition(".")[2]
            body = next(nested for nested in message.nested_type if nested.name == name)
            return self.message(body, indent, f"{label}group {name} = {field.number}{_field_options(field)}")
        return [f"{indent}{label}{_type(field)} {field.name} = {field.number}{_field_options(field)};"]

    def _label(self, field: FieldDescriptorProto) -> str:
        if field.label == _REPEATED:
            return "repeated "
        if field.label == _REQUIRED:
            return "required "
        return "optional " if field.proto3_optional or self._syntax == "proto2" else ""

    def enum(self, enum: EnumDescriptorProto, indent: str) -> list[str]:
        inner = indent + "  "
        lines = [f"{indent}enum {enum.name} {{"]
        lines += [f"{inner}option {text};" for text in _options(enum.options)]
        lines += _reserved(enum.reserved_range, enum.reserved_name, inner, _ENUM_NUMBER_MAX, behind=0)
        for value in enum.value:
            lines.append(f"{inner}{value.name} = {value.number}{_bracketed(_options(value.options))};")
        return [*lines, f"{indent}}}"]

    def extension(self, extended: str, fields: list[FieldDescriptorProto], indent: str) -> list[str]:
        lines = [f"{indent}extend {extended} {{"]
        for field in fields:
            lines += self._field(field, {}, None, indent + "  ")
        return [*lines, f"{indent}}}"]


def _by_extended(fields: Iterable[FieldDescriptorProto]) -> list[tuple[str, list[FieldDescriptorProto]]]:
    found: dict[str, list[FieldDescriptorProto]] = {}
    for field in fields:
        found.setdefault(field.extendee, []).append(field)
    return list(found.items())


def _service(service: ServiceDescriptorProto) -> list[str]:
    lines = [f"service {service.name} {{", *(f"  option {text};" for text in _options(service.options))]
    for method in service.method:
        asked = f"({'stream ' if method.client_streaming else ''}{method.input_type})"
        answered = f"({'stream ' if method.server_streaming else ''}{method.output_type})"
        options = "".join(f" option {text};" for text in _options(method.options))
        lines.append(f"  rpc {method.name} {asked} returns {answered}{f' {{{options} }}' if options else ';'}")
    return [*lines, "}"]


def _type(field: FieldDescriptorProto) -> str:
    return _TYPES.get(field.type) or field.type_name


def _field_options(field: FieldDescriptorProto) -> str:
    found = []
    if field.HasField("default_value"):
        plain = field.type not in _TEXT_TYPES
        found.append(f"default = {field.default_value if plain else _quoted(field.default_value)}")
    if field.json_name and field.json_name != _json_name(field.name):
        found.append(f"json_name = {_quoted(field.json_name)}")
    return _bracketed([*found, *_options(field.options)])


def _json_name(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in tail)


def _bracketed(texts: list[str]) -> str:
    return f" [{', '.join(texts)}]" if texts else ""


def _options(options: Message) -> list[str]:
    """Those that descriptor.proto knows; map_entry is said by the map itself."""
    found = []
    for field, value in options.ListFields():
        if field.name in ("map_entry", "uninterpreted_option"):
            continue
        many = field.is_repeated
        found += [f"{field.name} = {_value(field, each)}" for each in (value if many else [value])]
    return found


def _value(field: FieldDescriptor, value: Any) -> str:
    if field.enum_type is not None:
        return str(field.enum_type.values_by_number[value].name)
    if isinstance(value, Message):
        inner = " ".join(f"{part.name}: {_value(part, each)}" for part, each in value.ListFields())
        return f"{{ {inner} }}"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _quoted(value) if isinstance(value, str | bytes) else str(value)


def _quoted(text: str | bytes) -> str:
    raw = text.encode() if isinstance(text, str) else text
    shown = "".join(
        chr(byte)
        if 32 <= byte < 127 and byte not in b'"\\'
        else f"\\{byte:03o}"
        if byte not in b'"\\'
        else f"\\{chr(byte)}"
        for byte in raw
    )
    return f'"{shown}"'


def _reserved(ranges: Iterable[Any], names: Iterable[str], indent: str, last: int, *, behind: int) -> list[str]:
    spans = [_span(each.start, each.end - behind, last) for each in ranges]
    lines = [f"{indent}reserved {', '.join(spans)};"] if spans else []
    quoted = [_quoted(name) for name in names]
    return [*lines, *([f"{indent}reserved {', '.join(quoted)};"] if quoted else [])]


def _span(start: int, end: int, last: int) -> str:
    if start == end:
        return str(start)
    return f"{start} to {'max' if end >= last else end}"
