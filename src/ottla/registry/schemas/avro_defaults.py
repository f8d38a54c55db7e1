"""Whether a default fits the type of its field."""

from typing import Any

from ottla.registry.schemas.avro_types import AvroType

_INT = range(-(2**31), 2**31)
_LONG = range(-(2**63), 2**63)


def is_valid_default(kind: AvroType, value: Any) -> bool:
    match kind.kind:
        case "string" | "bytes" | "enum" | "fixed":
            return isinstance(value, str)
        case "int":
            return _is_integer(value) and value in _INT
        case "long":
            return _is_integer(value) and value in _LONG
        case "float" | "double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "array":
            assert kind.items is not None
            items = kind.items
            return isinstance(value, list) and all(is_valid_default(items, item) for item in value)
        case "map":
            assert kind.items is not None
            items = kind.items
            return isinstance(value, dict) and all(is_valid_default(items, item) for item in value.values())
        case "union":
            return any(is_valid_default(branch, value) for branch in kind.branches)
    return isinstance(value, dict) and all(
        is_valid_default(each.type, value[each.name]) if each.name in value else each.has_default
        for each in kind.fields
    )


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
