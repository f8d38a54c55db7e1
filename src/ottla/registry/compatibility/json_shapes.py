"""Keywords of JSON Schema whose values mean something: in a draft that does not know a keyword it may hold anything."""

from collections.abc import Callable
from typing import Any


def _is_schema(value: Any) -> bool:
    return isinstance(value, dict | bool)


def _are_schemas(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_schema, value))


def _by_name(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_schema, value.values()))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


SHAPES: dict[str, Callable[[Any], bool]] = {
    "$ref": _is_text,
    "type": lambda value: _is_text(value) or _are_texts(value),
    "enum": lambda value: isinstance(value, list),
    **dict.fromkeys(("maximum", "minimum"), _is_number),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum"), lambda value: isinstance(value, bool | int | float)),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), _is_number),
    "pattern": _is_text,
    "uniqueItems": lambda value: isinstance(value, bool),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), _are_schemas),
    **dict.fromkeys(("not", "if", "then", "else", "contains", "propertyNames", "additionalItems"), _is_schema),
    **dict.fromkeys(("additionalProperties", "unevaluatedProperties", "unevaluatedItems"), _is_schema),
    "items": lambda value: _is_schema(value) or (isinstance(value, list) and all(map(_is_schema, value))),
    **dict.fromkeys(("properties", "patternProperties", "dependentSchemas"), _by_name),
    "required": _are_texts,
    "dependencies": lambda value: (
        isinstance(value, dict) and all(_is_schema(each) or _are_texts(each) for each in value.values())
    ),
    "dependentRequired": lambda value: isinstance(value, dict) and all(map(_are_texts, value.values())),
}


class Shapes:
    """Schemas without keywords that mean nothing in them. The same answer for the same document, for it is known by
    its identity."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, Any]] = {}

    def understood(self, document: Any) -> Any:
        if not isinstance(document, dict):
            return document if isinstance(document, bool) else True
        known = self._known.get(id(document))
        if known is None:
            odd = [key for key, value in document.items() if key in SHAPES and not SHAPES[key](value)]
            plain = {key: value for key, value in document.items() if key not in odd} if odd else document
            known = self._known[id(document)] = (document, plain)
        return known[1]
