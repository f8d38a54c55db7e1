"""The tree of an Avro schema."""

from dataclasses import dataclass, field
from typing import Any

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


@dataclass(slots=True, eq=False)
class AvroField:
    name: str
    type: "AvroType"
    doc: str | None = None
    has_default: bool = False
    default: Any = None
    order: str = "ascending"
    aliases: list[str] = field(default_factory=list)
    props: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class AvroType:
    """`name` is a full name; `props` is what Avro itself gives no meaning to, logical types among it."""

    kind: str
    name: str = ""
    space: str | None = None
    doc: str | None = None
    aliases: list[str] = field(default_factory=list)
    fields: list[AvroField] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    enum_default: str | None = None
    size: int = 0
    items: "AvroType | None" = None
    """Of an array, and the values of a map."""
    branches: list["AvroType"] = field(default_factory=list)
    props: dict[str, Any] = field(default_factory=dict)

    @property
    def short_name(self) -> str:
        return split_name(self.name)[1]

    @property
    def shown(self) -> str:
        if self.kind == "union":
            return f"[{', '.join(branch.shown for branch in self.branches)}]"
        return f"{self.kind} {self.name}" if self.name else self.kind


def full_name(name: str, space: str | None) -> str:
    return f"{space}.{name}" if space else name


def split_name(name: str) -> tuple[str | None, str]:
    space, _, short = name.rpartition(".")
    return space or None, short
