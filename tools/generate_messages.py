"""Write src/ottla/protocol/messages from kio's schemas: one class per message instead of one per version.

Only facts are taken over (names, types, versions, tags, defaults); kio stays the oracle of the codec's tests.
Run it after an upgrade of kio; a test fails when the files are not what this program writes.
"""

import dataclasses
import datetime
import enum
import graphlib
import itertools
import sys
import types
import typing
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from kio.schema.index import schema_name_map
from kio.static.constants import EntityType

TARGET = Path(__file__).parent.parent / "src/ottla/protocol/messages"

# kio drops the unit of times from names; on the wire schema, and here, the unit is part of the name.
PRIMITIVES = {
    "timedelta_i32": "int32",
    "timedelta_i64": "int64",
    "datetime_i64": "int64",
    "error_code": "int16",
}
PYTHON_TYPES = {
    "bool": "bool", "string": "str", "bytes": "bytes", "records": "Records", "uuid": "UUID", "float64": "float",
}  # fmt: skip
ZERO = {"bool": "False", "string": '""', "bytes": 'b""', "records": "None", "uuid": "NO_UUID", "float64": "0.0"}


@dataclasses.dataclass
class FieldInfo:
    name: str
    kind: str
    is_message: bool
    array: bool
    versions: list[int]
    nullable_versions: list[int]
    tag: int | None
    default: Any

    def python_type(self) -> str:
        base = self.kind if self.is_message else PYTHON_TYPES.get(self.kind, "int")
        text = f"list[{base}]" if self.array else base
        nullable = bool(self.nullable_versions) and text != "Records"
        return f"{text} | None" if nullable else text

    def python_default(self) -> str:
        if self.default is None and self.nullable_versions:
            return "None"
        if self.array:
            return (
                f"field(default_factory=list[{self.kind if self.is_message else PYTHON_TYPES.get(self.kind, 'int')}])"
            )
        if self.is_message:
            return f"field(default_factory=lambda: {self.kind}())"
        if self.default is dataclasses.MISSING or self.default is None:
            return ZERO.get(self.kind, "-1" if self.default is None else "0")
        return repr(self.default) if self.kind != "string" else f'"{self.default}"'


@dataclasses.dataclass
class ClassInfo:
    name: str
    fields: dict[str, FieldInfo]
    orders: list[list[str]]

    def in_wire_order(self) -> list[FieldInfo]:
        """Each version's order is a part of one overall order: merge them."""
        after: dict[str, set[str]] = {name: set() for name in self.fields}
        for order in self.orders:
            for earlier, later in itertools.pairwise(order):
                after[later].add(earlier)
        return [self.fields[name] for name in graphlib.TopologicalSorter(after).static_order()]


def unwrap(hint: Any) -> tuple[Any, bool, bool]:
    """Return (element type, is array, is nullable) of a kio annotation."""
    nullable = False
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        arguments = [argument for argument in typing.get_args(hint) if argument is not type(None)]
        nullable = len(arguments) < len(typing.get_args(hint))
        hint = arguments[0]
    if typing.get_origin(hint) is tuple:
        return typing.get_args(hint)[0], True, nullable
    return hint, False, nullable


class Generator:
    def __init__(self) -> None:
        self.classes: dict[str, ClassInfo] = {}

    def add(self, cls: Any, version: int, rename: dict[str, str]) -> None:
        hints = typing.get_type_hints(cls)
        name = rename.get(cls.__name__, cls.__name__)
        info = self.classes.setdefault(name, ClassInfo(name, {}, []))
        order: list[str] = []
        info.orders.append(order)
        for field in dataclasses.fields(cls):
            element, array, nullable = unwrap(hints[field.name])
            kafka_type = field.metadata.get("kafka_type")
            is_message = dataclasses.is_dataclass(element)
            if is_message:
                self.add(element, version, rename)
                kind = rename.get(element.__name__, element.__name__)
            else:
                assert kafka_type is not None
                kind = PRIMITIVES.get(kafka_type, kafka_type)
                if not array and (kind == "uuid" or kafka_type == "datetime_i64"):
                    nullable = False  # kio spells the zero id and the time -1 as None; the wire has no null there
            name = field.name + ("_ms" if kafka_type and kafka_type.startswith(("timedelta", "datetime")) else "")
            order.append(name)
            self.merge(info, name, kind, is_message, array, nullable, field, version)

    def merge(
        self, info: ClassInfo, name: str, kind: str, is_message: bool, array: bool, nullable: bool,
        field: "dataclasses.Field[Any]", version: int,
    ) -> None:  # fmt: skip
        default: Any = field.default
        if kind == "int64" and dataclasses.is_dataclass(default):
            default = dataclasses.MISSING
        if isinstance(default, enum.IntEnum):
            default = int(default)
        if isinstance(default, datetime.timedelta):
            default = int(default.total_seconds() * 1000)
        known = info.fields.get(name)
        if known is None:
            known = FieldInfo(name, kind, is_message, array, [], [], field.metadata.get("tag"), default)
            info.fields[name] = known
        assert (known.kind, known.array) == (kind, array), (info.name, name, known, kind, array)
        known.default = default
        if field.metadata.get("tag") is not None:
            known.tag = field.metadata["tag"]
        if version not in known.versions:
            known.versions.append(version)
        if nullable and version not in known.nullable_versions:
            known.nullable_versions.append(version)


def collisions(versions: Any) -> dict[EntityType, dict[str, str]]:
    """Nested classes that request and response both have under one name get the message's side before it."""
    names: dict[EntityType, dict[str, Any]] = {}
    for kinds in versions.values():
        for entity_type, path in kinds.items():
            module = resolve_name(path.split(":")[0])
            for name, cls in vars(module).items():
                if dataclasses.is_dataclass(cls) and getattr(cls, "__module__", "") == module.__name__:
                    names.setdefault(entity_type, {})[name] = cls
    if len(names) < 2:
        return {entity_type: {} for entity_type in names}
    shared = set(names[EntityType.request]) & set(names[EntityType.response])
    return {
        EntityType.request: {name: f"Request{name}" for name in shared},
        EntityType.response: {name: f"Response{name}" for name in shared},
    }


def render_field(field: FieldInfo, last: int) -> str:
    versions = sorted(field.versions)
    assert versions == list(range(versions[0], versions[-1] + 1)), field
    parts = [f'"{field.name}"', field.kind if field.is_message else f'"{field.kind}"', str(versions[0])]
    if versions[-1] != last:
        parts.append(f"until={versions[-1]}")
    if field.array:
        parts.append("array=True")
    if field.nullable_versions:
        parts.append(f"nullable_since={min(field.nullable_versions)}")
    if field.tag is not None:
        parts.append(f"tag={field.tag}")
    return f"        Field({', '.join(parts)}),\n"


def render_class(info: ClassInfo, last: int, top: list[str] | None) -> str:
    text = f"class {info.name}({'TopLevel' if top else 'Message'}):\n"
    text += "".join(top or [])
    rows = "".join(render_field(field, last) for field in info.in_wire_order())
    text += f"    FIELDS: ClassVar[tuple[Field, ...]] = (\n{rows}    )\n"
    for field in info.in_wire_order():
        text += f"    {field.name}: {field.python_type()} = {field.python_default()}\n"
    return text


def render_module(name: str, versions: Any) -> str:
    renames = collisions(versions)
    body = ""
    for entity_type in sorted({kind for kinds in versions.values() for kind in kinds}, key=lambda e: e.name):
        generator = Generator()
        served = sorted(version for version, kinds in versions.items() if entity_type in kinds)
        top_class: Any = None
        flexible_from = 1 << 15
        for version in served:
            top_class = resolve_name(versions[version][entity_type])
            generator.add(top_class, version, renames[entity_type])
            if top_class.__flexible__:
                flexible_from = min(flexible_from, version)
        for info in reversed(list(generator.classes.values())):
            is_top = info.name == top_class.__name__
            top = [
                f'    NAME: ClassVar[str] = "{top_class.__name__.removesuffix("Request").removesuffix("Response")}"\n',
                f"    API_KEY: ClassVar[int] = {int(getattr(top_class, '__api_key__', -1))}\n",
                f"    MIN_VERSION: ClassVar[int] = {served[0]}\n",
                f"    MAX_VERSION: ClassVar[int] = {served[-1]}\n",
                f"    FLEXIBLE_FROM: ClassVar[int] = {flexible_from}\n",
            ]
            body += "\n\n" + render_class(info, served[-1], top if is_top else None)
    head = f'"""Messages of {name}. Written by tools/generate_messages.py; do not edit."""\n\n'
    head += "from typing import ClassVar\n"
    if "UUID" in body:
        head += "from uuid import UUID\n"
    if "field(" in body:
        head += "\nfrom msgspec import field\n"
    words = {
        "Field": "Field(",
        "Message": "(Message)",
        "NO_UUID": "NO_UUID",
        "Records": ": Records",
        "TopLevel": "(TopLevel)",
    }
    used = sorted((word for word, sign in words.items() if sign in body), key=lambda word: (not word.isupper(), word))
    head += f"\nfrom ottla.protocol.schema import {', '.join(used)}\n"
    return order_classes(head, body)


def order_classes(head: str, body: str) -> str:
    """A nested class must stand before the one that names it in its FIELDS table."""
    blocks = [block.strip("\n") + "\n" for block in body.split("\n\n\n") if block.strip()]
    names = {block.split("(")[0].removeprefix("class "): block for block in blocks}
    done: list[str] = []

    def visit(name: str) -> None:
        if name in done:
            return
        for other in names:
            if other != name and f", {other}, " in names[name]:
                visit(other)
        done.append(name)

    for name in names:
        visit(name)
    return head + "".join(f"\n\n{names[name]}" for name in done)


def generate() -> dict[str, str]:
    skip = {"request_header", "response_header"}
    return {
        f"{name}.py": render_module(name, versions) for name, versions in schema_name_map.items() if name not in skip
    }


def main() -> int:
    for path in TARGET.glob("*.py"):
        path.unlink()
    (TARGET / "__init__.py").write_text('"""Every message of the protocol, one module per API. Generated."""\n')
    files = generate()
    for name, text in files.items():
        (TARGET / name).write_text(text)
    print(f"{len(files)} modules written to {TARGET.relative_to(TARGET.parents[3])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
