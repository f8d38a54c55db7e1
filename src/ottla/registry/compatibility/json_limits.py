"""The limits that JSON Schema's keywords set, each a row: the keyword, and when a new value is as wide as the old."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from ottla.registry.compatibility.findings import Finding

ALL_TYPES = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})


class Limit(NamedTuple):
    keyword: str
    code: str
    loosened: Callable[[Any, Any], bool]
    """From the old value and the new one; not asked where the new schema sets no limit."""


def _at_least(old: Any, new: Any) -> bool:
    return bool(new >= old)


def _at_most(old: Any, new: Any) -> bool:
    return bool(new <= old)


def _same(old: Any, new: Any) -> bool:
    return bool(old == new)


def _divides(old: Any, new: Any) -> bool:
    """By the decimal digits that the schemas have: 0.3 is three times 0.1, whatever floats make of it."""
    return (Fraction(str(old)) / Fraction(str(new))).denominator == 1


NUMBER_LIMITS = (
    Limit("maximum", "MAXIMUM", _at_least),
    Limit("minimum", "MINIMUM", _at_most),
    Limit("exclusiveMaximum", "EXCLUSIVE_MAXIMUM", _at_least),
    Limit("exclusiveMinimum", "EXCLUSIVE_MINIMUM", _at_most),
    Limit("multipleOf", "MULTIPLE_OF", _divides),
)
STRING_LIMITS = (
    Limit("maxLength", "MAX_LENGTH", _at_least),
    Limit("minLength", "MIN_LENGTH", _at_most),
    Limit("pattern", "PATTERN", _same),
)
ARRAY_LIMITS = (
    Limit("maxItems", "MAX_ITEMS", _at_least),
    Limit("minItems", "MIN_ITEMS", _at_most),
    Limit("uniqueItems", "UNIQUE_ITEMS", _same),
)
OBJECT_LIMITS = (
    Limit("maxProperties", "MAX_PROPERTIES", _at_least),
    Limit("minProperties", "MIN_PROPERTIES", _at_most),
)

COMBINATORS = frozenset({"allOf", "anyOf", "oneOf", "not"})
KEYWORDS = (
    frozenset(limit.keyword for rows in (NUMBER_LIMITS, STRING_LIMITS, ARRAY_LIMITS, OBJECT_LIMITS) for limit in rows)
    | COMBINATORS
    | {
        "$ref", "$dynamicRef", "$recursiveRef", "type", "enum", "const", "properties", "patternProperties",
        "additionalProperties", "unevaluatedProperties", "required", "propertyNames", "dependencies",
        "dependentRequired", "dependentSchemas", "items", "prefixItems", "additionalItems", "unevaluatedItems",
        "contains", "if",
    }
)  # fmt: skip
"""What can make an instance invalid. Everything else is a remark."""

_HARMLESS: dict[str, Any] = {"uniqueItems": False, "minLength": 0, "minItems": 0, "minProperties": 0}
"""Values that set no limit."""


def types_of(document: dict[str, Any]) -> frozenset[str]:
    given = document.get("type")
    if given is None:
        values = [document["const"]] if "const" in document else document.get("enum")
        return ALL_TYPES if values is None else frozenset(name for value in values for name in _types_of_value(value))
    return frozenset([given] if isinstance(given, str) else given)


def _types_of_value(value: Any) -> tuple[str, ...]:
    if value is None:
        return ("null",)
    if isinstance(value, bool):
        return ("boolean",)
    if isinstance(value, int | float):
        return ("integer",) if isinstance(value, int) or value.is_integer() else ("number",)
    return ("string",) if isinstance(value, str) else ("array",) if isinstance(value, list) else ("object",)


def limit_findings(limits: tuple[Limit, ...], old: dict[str, Any], new: dict[str, Any], path: str) -> list[Finding]:
    old, new = _without_flags(old), _without_flags(new)
    found: list[Finding] = []
    for limit in limits:
        wanted = new.get(limit.keyword)
        if wanted is None or wanted == _HARMLESS.get(limit.keyword, ...):
            continue
        given = _implied(limit.keyword, old)
        if given is None or given == _HARMLESS.get(limit.keyword, ...):
            text = f"{limit.keyword} is {wanted} now, and was not limited"
            found.append(Finding(f"{limit.code}_ADDED", f"{path}/{limit.keyword}", text))
        elif not limit.loosened(given, wanted):
            text = f"{limit.keyword} is {wanted} now, and was {given}"
            found.append(Finding(f"{limit.code}_NARROWED", f"{path}/{limit.keyword}", text))
    return found


def _implied(keyword: str, document: dict[str, Any]) -> Any:
    """An exclusive limit keeps an inclusive one of the same value."""
    inclusive = {"maximum": ("exclusiveMaximum", min), "minimum": ("exclusiveMinimum", max)}.get(keyword)
    values = [document.get(keyword)]
    choose: Callable[[list[Any]], Any] = min
    if inclusive is not None:
        values.append(document.get(inclusive[0]))
        choose = inclusive[1]
    there = [value for value in values if value is not None]
    return choose(there) if there else None


def _without_flags(document: dict[str, Any]) -> dict[str, Any]:
    """Draft 4 says `exclusiveMaximum: true` beside a maximum."""
    for flag, limit in (("exclusiveMaximum", "maximum"), ("exclusiveMinimum", "minimum")):
        value = document.get(flag)
        if isinstance(value, bool):
            document = {key: each for key, each in document.items() if key != flag}
            if value and limit in document:
                document[flag] = document.pop(limit)
    return document
