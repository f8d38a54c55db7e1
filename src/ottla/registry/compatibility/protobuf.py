"""Can a reader with one Protobuf schema read what was written with another? Fields go by their numbers.

| by number | ok |
|---|---|
| field added, removed, renamed; out of a oneof; alone into a new oneof; a whole oneof added or removed | yes |
| required added or removed; a oneof's member removed; two fields into one oneof, one into an existing one | no |
| types within one of TYPE_GROUPS | yes, else no |
| label: string, bytes, message / numbers | yes / no |
| message added, moved / removed; package; a field's message renamed | yes / no |
| enums | any change |
"""

from collections.abc import Iterator
from typing import NamedTuple

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

from ottla.registry.compatibility.findings import Finding, Work
from ottla.registry.schemas.protobuf import ProtobufSchema

TYPE_GROUPS = (
    {"int32", "int64", "uint32", "uint64", "bool", "enum"},
    {"sint32", "sint64"},
    {"string", "bytes"},
    {"fixed32", "sfixed32"},
    {"fixed64", "sfixed64"},
)
"""Types that are read from each other's bytes."""

_REPEATED, _REQUIRED = FieldDescriptorProto.LABEL_REPEATED, FieldDescriptorProto.LABEL_REQUIRED
_NAMES = {number: name.removeprefix("TYPE_").lower() for name, number in FieldDescriptorProto.Type.items()}
_LABEL_FREE = {"string", "bytes", "message"}


class _Messages(NamedTuple):
    """All messages of a schema and its imports by full name, and its own by short name."""

    by_name: dict[str, DescriptorProto]
    own: dict[str, str]


def check_protobuf(new: ProtobufSchema, old: ProtobufSchema, work: Work | None = None) -> list[Finding]:
    """Empty: what was written with the old one is read with the new one."""
    if new.main.package != old.main.package:
        text = f"the package was {old.main.package or 'none'} and is {new.main.package or 'none'}"
        return [Finding("PACKAGE_CHANGED", "#/package", text)]
    checker = _Checker(_messages(new), _messages(old), work or Work())
    found: list[Finding] = []
    for name in _own_names(old.main):
        target = checker.counterpart(name)
        if target is None:
            found.append(Finding("MESSAGE_REMOVED", f"#/{name}", f"message {name} was removed"))
        else:
            found += checker.check(target, name)
    return list(dict.fromkeys(found))


class _Checker:
    def __init__(self, new: _Messages, old: _Messages, work: Work) -> None:
        self._new, self._old = new, old
        self._work = work
        self._done: set[tuple[str, str]] = set()

    def counterpart(self, name: str) -> str | None:
        """The same message in the new schema: under its name, or moved elsewhere in the file."""
        if name in self._new.by_name:
            return name
        return self._new.own.get(name.rpartition(".")[2]) if name in self._old.own.values() else None

    def check(self, new_name: str, old_name: str) -> list[Finding]:
        if (new_name, old_name) in self._done:
            return []
        self._done.add((new_name, old_name))
        new, old = self._new.by_name[new_name], self._old.by_name[old_name]
        path = f"#/{old_name}"
        fields, before = {field.number: field for field in new.field}, {field.number: field for field in old.field}
        self._work.step(len(fields) + len(before) + 1)
        found: list[Finding] = []
        for number in sorted(fields.keys() | before.keys()):
            field, was = fields.get(number), before.get(number)
            if field is not None and was is not None:
                found += self._field(field, was, new, old, f"{path}/{number}")
            elif field is not None and field.label == _REQUIRED:
                text = f"required field {field.name} was added: what was written lacks it"
                found.append(Finding("REQUIRED_FIELD_ADDED", f"{path}/{number}", text))
            elif was is not None and was.label == _REQUIRED:
                text = f"required field {was.name} was removed"
                found.append(Finding("REQUIRED_FIELD_REMOVED", f"{path}/{number}", text))
        return found + self._oneofs(new, old, path)

    def _field(
        self,
        field: FieldDescriptorProto,
        was: FieldDescriptorProto,
        new: DescriptorProto,
        old: DescriptorProto,
        path: str,
    ) -> list[Finding]:
        kind, before = _NAMES[field.type], _NAMES[was.type]
        if field.label == _REQUIRED and was.label != _REQUIRED:
            return [Finding("REQUIRED_FIELD_ADDED", path, f"field {field.name} is required now")]
        if _is_map(field, new) != _is_map(was, old):
            return [Finding("FIELD_KIND_CHANGED", path, f"field {field.name} is a map in one and not in the other")]
        if kind != before and not any(kind in group and before in group for group in TYPE_GROUPS):
            text = f"field {field.name} was {before} and is {kind}"
            return [Finding("FIELD_SCALAR_KIND_CHANGED", path, text)]
        if (field.label == _REPEATED) != (was.label == _REPEATED) and not {kind, before} <= _LABEL_FREE:
            text = f"field {field.name} is repeated in one and not in the other"
            return [Finding("FIELD_NUMERIC_LABEL_CHANGED", path, text)]
        return self._message_type(field, was, path) if kind in ("message", "group") else []

    def _message_type(self, field: FieldDescriptorProto, was: FieldDescriptorProto, path: str) -> list[Finding]:
        name, before = field.type_name.lstrip("."), was.type_name.lstrip(".")
        if name != before and self.counterpart(before) != name:
            text = f"field {field.name} was a {before} and is a {name}"
            return [Finding("FIELD_NAMED_TYPE_CHANGED", path, text)]
        if name in self._new.by_name and before in self._old.by_name:
            return self.check(name, before)
        return []

    def _oneofs(self, new: DescriptorProto, old: DescriptorProto, path: str) -> list[Finding]:
        found: list[Finding] = []
        before = _oneofs_of(old)
        fields_before = {field.number for field in old.field}
        numbers_now = {field.number for field in new.field}
        for name, numbers in _oneofs_of(new).items():
            members = before.get(name)
            strangers = {number for number in numbers if number in fields_before and number not in (members or ())}
            if members is None and len(strangers) > 1 and not any(strangers <= known for known in before.values()):
                text = f"fields {_listed(strangers)} were moved into one oneof, {name}: only one of them can be set now"
                found.append(Finding("MULTIPLE_FIELDS_MOVED_TO_ONEOF", f"{path}/{name}", text))
            elif members is not None and strangers:
                text = f"field {_listed(strangers)} was moved into oneof {name}, which was there before"
                found.append(Finding("FIELD_MOVED_TO_EXISTING_ONEOF", f"{path}/{name}", text))
            if members is not None and members - numbers_now:
                text = f"field {_listed(members - numbers_now)} was removed from oneof {name}"
                found.append(Finding("ONEOF_FIELD_REMOVED", f"{path}/{name}", text))
        return found


def _listed(numbers: set[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


def _oneofs_of(message: DescriptorProto) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for field in message.field:
        if field.HasField("oneof_index") and not field.proto3_optional:
            found.setdefault(message.oneof_decl[field.oneof_index].name, set()).add(field.number)
    return found


def _is_map(field: FieldDescriptorProto, message: DescriptorProto) -> bool:
    name = field.type_name.rpartition(".")[2]
    return any(nested.name == name and nested.options.map_entry for nested in message.nested_type)


def _messages(schema: ProtobufSchema) -> _Messages:
    by_name = {name: message for file in schema.files.values() for name, message in _walk(file)}
    own: dict[str, str] = {}
    for name, _ in _walk(schema.main):
        own.setdefault(name.rpartition(".")[2], name)
    return _Messages(by_name, own)


def _own_names(file: FileDescriptorProto) -> list[str]:
    """Entries of maps are compared with the map."""
    return [name for name, message in _walk(file) if not message.options.map_entry]


def _walk(file: FileDescriptorProto) -> Iterator[tuple[str, DescriptorProto]]:
    prefix = f"{file.package}." if file.package else ""
    waiting = [(prefix, message) for message in reversed(file.message_type)]
    while waiting:
        where, message = waiting.pop()
        yield f"{where}{message.name}", message
        waiting += [(f"{where}{message.name}.", nested) for nested in reversed(message.nested_type)]
