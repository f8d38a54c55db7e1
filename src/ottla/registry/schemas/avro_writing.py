"""An Avro schema as a document again: each name defined where it first comes, named afterwards."""

from typing import Any

from ottla.registry.schemas.avro_types import PRIMITIVES, AvroField, AvroType, split_name


def definition(kind: AvroType, written: set[str], space: str | None) -> Any:
    """In the order of attributes that Avro's own printer has. `written` are names that are defined already."""
    if kind.kind in PRIMITIVES:
        return {"type": kind.kind, **kind.props} if kind.props else kind.kind
    if kind.kind == "union":
        return [definition(branch, written, space) for branch in kind.branches]
    if kind.items is not None:
        name = "items" if kind.kind == "array" else "values"
        return {"type": kind.kind, name: definition(kind.items, written, space), **kind.props}
    if kind.name in written:
        return _relative(kind.name, space)
    written.add(kind.name)
    own_space, short = split_name(kind.name)
    found: dict[str, Any] = {"type": kind.kind, "name": short}
    if own_space != space:
        found["namespace"] = own_space or ""
    if kind.doc is not None:
        found["doc"] = kind.doc
    if kind.kind == "enum":
        found["symbols"] = kind.symbols
        if kind.enum_default is not None:
            found["default"] = kind.enum_default
    elif kind.kind == "fixed":
        found["size"] = kind.size
    else:
        found["fields"] = [_field(each, written, own_space) for each in kind.fields]
    found |= kind.props
    if kind.aliases:
        found["aliases"] = [_relative(alias, own_space) for alias in kind.aliases]
    return found


def _field(each: AvroField, written: set[str], space: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {"name": each.name, "type": definition(each.type, written, space)}
    if each.doc is not None:
        found["doc"] = each.doc
    if each.has_default:
        found["default"] = each.default
    if each.order != "ascending":
        found["order"] = each.order
    if each.aliases:
        found["aliases"] = each.aliases
    return found | each.props


def _relative(name: str, space: str | None) -> str:
    own_space, short = split_name(name)
    return short if own_space is None or own_space == space else name


def normalized(kind: AvroType, written: set[str]) -> Any:
    """Full names everywhere, other attributes by name."""
    if kind.kind in PRIMITIVES:
        return {"type": kind.kind, **_sorted(kind.props)} if kind.props else kind.kind
    if kind.kind == "union":
        return [normalized(branch, written) for branch in kind.branches]
    if kind.items is not None:
        name = "items" if kind.kind == "array" else "values"
        return {"type": kind.kind, name: normalized(kind.items, written), **_sorted(kind.props)}
    if kind.name in written:
        return kind.name
    written.add(kind.name)
    found: dict[str, Any] = {"type": kind.kind, "name": kind.name}
    others: dict[str, Any] = dict(kind.props)
    if kind.doc is not None:
        others["doc"] = kind.doc
    if kind.aliases:
        others["aliases"] = sorted(kind.aliases)
    if kind.kind == "enum":
        found["symbols"] = kind.symbols
        if kind.enum_default is not None:
            found["default"] = kind.enum_default
    elif kind.kind == "fixed":
        found["size"] = kind.size
    else:
        found["fields"] = [_normalized_field(each, written) for each in kind.fields]
    return found | _sorted(others)


def _normalized_field(each: AvroField, written: set[str]) -> dict[str, Any]:
    found: dict[str, Any] = {"name": each.name, "type": normalized(each.type, written)}
    if each.has_default:
        found["default"] = each.default
    others: dict[str, Any] = dict(each.props)
    if each.doc is not None:
        others["doc"] = each.doc
    if each.order != "ascending":
        others["order"] = each.order
    if each.aliases:
        others["aliases"] = sorted(each.aliases)
    return {**found, **_sorted(others)}


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(inner) for key, inner in sorted(value.items())}
    return [_sorted(inner) for inner in value] if isinstance(value, list) else value
