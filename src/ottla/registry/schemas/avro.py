"""Avro schemas: read with all of Avro's rules, and stored as Avro's own `Schema.toString` writes them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ottla.registry.content import AVRO
from ottla.registry.errors import InvalidSchema
from ottla.registry.limits import LIMITS, SchemaLimits
from ottla.registry.schemas.avro_defaults import is_valid_default
from ottla.registry.schemas.avro_types import PRIMITIVES, AvroField, AvroType, full_name, split_name
from ottla.registry.schemas.avro_writing import definition, normalized
from ottla.registry.schemas.parsed import Referenced, compact, load_json

_RESERVED = {"doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"}
_FIELD_RESERVED = {"aliases", "default", "doc", "name", "order", "type"}
_ORDERS = {"ascending", "descending", "ignore"}
_NAMED = {"record", "error", "enum", "fixed"}
_FIXED_BYTES_MAX = 2**31 - 1


@dataclass(slots=True)
class AvroSchema:
    root: AvroType
    known_before: frozenset[str] = field(default_factory=frozenset)
    """Full names that come from references: they are named, not written out."""

    @property
    def schema_type(self) -> str:
        return AVRO

    @property
    def canonical(self) -> str:
        return compact(definition(self.root, set(self.known_before), None))

    def normalized(self) -> str:
        return compact(normalized(self.root, set(self.known_before)))

    def formatted(self, form: str) -> str:
        """`resolved` has the definitions of references in it."""
        return compact(definition(self.root, set(), None)) if form == "resolved" else self.canonical


def parse_avro(text: str, references: Sequence[Referenced] = (), limits: SchemaLimits = LIMITS) -> AvroSchema:
    names: dict[str, AvroType] = {}
    for reference in references:
        _Reader(names, check_defaults=False).read(
            load_json(reference.text, f"reference {reference.name}", limits), None
        )
    before = frozenset(names)
    document = load_json(text, "Invalid schema", limits)
    return AvroSchema(_Reader(names, check_defaults=True).read(document, None), before)


class _Reader:
    def __init__(self, names: dict[str, AvroType], *, check_defaults: bool) -> None:
        self._names = names
        self._check_defaults = check_defaults
        self._open: set[str] = set()
        """Records whose fields are being read."""

    def read(self, document: Any, space: str | None) -> AvroType:
        if isinstance(document, str):
            return self._by_name(document, space)
        if isinstance(document, list):
            return self._union(document, space)
        if not isinstance(document, dict):
            raise InvalidSchema(f"a schema is a name, an object or a list, not {compact(document)[:80]}")
        kind = document.get("type")
        if not isinstance(kind, str):
            raise InvalidSchema(f"no type: {compact(document)[:200]}")
        props = {key: value for key, value in document.items() if key not in _RESERVED}
        if kind in PRIMITIVES:
            return AvroType(kind, props=props)
        if kind == "array":
            return AvroType(kind, items=self.read(_required(document, "items", kind), space), props=props)
        if kind == "map":
            return AvroType(kind, items=self.read(_required(document, "values", kind), space), props=props)
        if kind in _NAMED:
            return self._named(kind, document, space, props)
        return self._by_name(kind, space)

    def _by_name(self, name: str, space: str | None) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(name)
        candidates = [name.lstrip(".")] if "." in name else [full_name(name, space), name]
        for candidate in candidates:
            if candidate in self._names:
                return self._names[candidate]
        raise InvalidSchema(
            f'"{candidates[0]}" is not a defined name: it is neither a type of Avro nor defined before it is used; '
            "a type of another schema needs a reference"
        )

    def _union(self, branches: list[Any], space: str | None) -> AvroType:
        found = [self.read(branch, space) for branch in branches]
        seen: set[str] = set()
        for branch in found:
            if branch.kind == "union":
                raise InvalidSchema(f"nested union: {compact(branches)[:200]}")
            key = branch.name or branch.kind
            if key in seen:
                raise InvalidSchema(f"duplicate in union: {key}")
            seen.add(key)
        return AvroType("union", branches=found)

    def _named(self, kind: str, document: dict[str, Any], space: str | None, props: dict[str, Any]) -> AvroType:
        name, own_space = _name_of(document, kind, space)
        before = self._names.get(name)
        if name in self._open:
            raise InvalidSchema(f"can't redefine: {name}")
        found = AvroType(kind, name=name, space=own_space, props=props, aliases=_aliases(document, own_space))
        found.doc = _text(document, "doc", kind)
        self._names.setdefault(name, found)
        if kind == "fixed":
            size = document.get("size")
            if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= _FIXED_BYTES_MAX:
                raise InvalidSchema(f"invalid or no size of fixed {name}: {size}")
            found.size = size
        elif kind == "enum":
            self._fill_enum(found, document)
        else:
            self._open.add(name)
            self._fill_record(found, document, own_space)
            self._open.discard(name)
        if before is not None and not _same_definition(before, found):
            raise InvalidSchema(f"can't redefine: {name}")
        return found

    def _fill_enum(self, found: AvroType, document: dict[str, Any]) -> None:
        symbols = document.get("symbols")
        if not isinstance(symbols, list) or any(not isinstance(symbol, str) for symbol in symbols):
            raise InvalidSchema(f"enum {found.name} has no symbols")
        seen: set[str] = set()
        for symbol in symbols:
            _check_name(symbol, "symbol")
            if symbol in seen:
                raise InvalidSchema(f"duplicate enum symbol: {symbol}")
            seen.add(symbol)
        found.symbols = symbols
        found.props.pop("default", None)
        default = document.get("default")
        if default is not None:
            if default not in symbols:
                raise InvalidSchema(f"the default {default} of enum {found.name} is not one of its symbols")
            found.enum_default = default

    def _fill_record(self, found: AvroType, document: dict[str, Any], space: str | None) -> None:
        fields = document.get("fields")
        if not isinstance(fields, list):
            raise InvalidSchema(f"record {found.name} has no fields")
        found.fields = []
        read: list[AvroField] = []
        seen: set[str] = set()
        for each in fields:
            one = self._field(each, found, space)
            if one.name in seen:
                raise InvalidSchema(f"duplicate field {one.name} in record {found.name}")
            seen.add(one.name)
            read.append(one)
        found.fields = read

    def _field(self, document: Any, record: AvroType, space: str | None) -> AvroField:
        if not isinstance(document, dict):
            raise InvalidSchema(f"a field of record {record.name} is an object, not {compact(document)[:80]}")
        name = document.get("name")
        if not isinstance(name, str):
            raise InvalidSchema(f"a field of record {record.name} has no name")
        _check_name(name, "field")
        found = AvroField(name, self.read(_required(document, "type", f"field {name}"), space))
        found.doc = _text(document, "doc", f"field {name}")
        found.props = {key: value for key, value in document.items() if key not in _FIELD_RESERVED}
        aliases = document.get("aliases") or []
        if not isinstance(aliases, list) or any(not isinstance(alias, str) for alias in aliases):
            raise InvalidSchema(f"aliases of field {name} are not a list of names")
        found.aliases = aliases
        order = document.get("order", "ascending")
        if not isinstance(order, str) or order.lower() not in _ORDERS:
            raise InvalidSchema(f"order of field {name} is one of ascending, descending, ignore")
        found.order = order.lower()
        if "default" in document:
            found.has_default, found.default = True, document["default"]
            if self._check_defaults and not is_valid_default(found.type, found.default):
                raise InvalidSchema(
                    f"invalid default for field {name}: {compact(found.default)[:100]} is not a {found.type.shown}"
                )
        return found


def _same_definition(one: AvroType, other: AvroType) -> bool:
    """A name may be defined again, as it is."""
    if one.kind in ("record", "error"):
        return one.kind == other.kind and _without_words(one) == _without_words(other)
    return (one.kind, one.symbols, one.size, one.props) == (other.kind, other.symbols, other.size, other.props)


def _without_words(record: AvroType) -> Any:
    document = normalized(record, set())
    return {key: value for key, value in document.items() if key not in ("doc", "aliases")}


def _required(document: dict[str, Any], key: str, where: str) -> Any:
    if key not in document:
        raise InvalidSchema(f"{where} has no {key}")
    return document[key]


def _text(document: dict[str, Any], key: str, where: str) -> str | None:
    value = document.get(key)
    if value is not None and not isinstance(value, str):
        raise InvalidSchema(f"{key} of {where} is not a text")
    return value


def _name_of(document: dict[str, Any], kind: str, space: str | None) -> tuple[str, str | None]:
    name = document.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidSchema(f"no name in {kind}: {compact(document)[:200]}")
    own_space, short = split_name(name)
    if "." not in name:
        given = document.get("namespace")
        if given is not None and not isinstance(given, str):
            raise InvalidSchema(f"namespace of {name} is not a text")
        own_space = space if given is None else given or None
    _check_name(short, kind)
    for part in (own_space or "x").split("."):
        _check_name(part, "namespace")
    if own_space is None and short in PRIMITIVES:
        raise InvalidSchema(f"schemas may not be named after primitives: {short}")
    return full_name(short, own_space), own_space


def _check_name(name: str, what: str) -> None:
    if not name or not (name[0].isalpha() or name[0] == "_"):
        raise InvalidSchema(f"illegal initial character of {what}: {name[:80]}")
    if any(not (character.isalnum() or character == "_") for character in name):
        raise InvalidSchema(f"illegal character in {what}: {name[:80]}")


def _aliases(document: dict[str, Any], space: str | None) -> list[str]:
    given = document.get("aliases")
    if given is None:
        return []
    if not isinstance(given, list) or any(not isinstance(alias, str) for alias in given):
        raise InvalidSchema(f"aliases are not a list of names: {compact(given)[:100]}")
    return list(dict.fromkeys(alias if "." in alias else full_name(alias, space) for alias in given))
