"""Every row of the table of JSON Schema rules, and what they promise: what was valid stays valid."""

import json
import warnings
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator
from tests.chance import SOAK

from ottla.registry.compatibility.json_schema import check_json_schema
from ottla.registry.errors import InvalidSchema, TooComplex
from ottla.registry.schemas.json_schema import parse_json_schema

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from hypothesis_jsonschema import from_schema

STRING, NUMBER, INTEGER = {"type": "string"}, {"type": "number"}, {"type": "integer"}


def obj(properties: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties or {}, **more}


def closed(properties: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return obj(properties, additionalProperties=False, **more)


def kinds(old: Any, new: Any, *, lenient: bool = False) -> list[str]:
    parsed_new, parsed_old = parse_json_schema(json.dumps(new)), parse_json_schema(json.dumps(old))
    return [each.kind for each in check_json_schema(parsed_new, parsed_old, lenient=lenient)]


LIMITS: dict[str, tuple[str, Any, Any, str]] = {
    "maximum": ("number", 5, 9, "MAXIMUM"),
    "minimum": ("number", 5, 1, "MINIMUM"),
    "exclusiveMaximum": ("number", 5, 9, "EXCLUSIVE_MAXIMUM"),
    "exclusiveMinimum": ("number", 5, 1, "EXCLUSIVE_MINIMUM"),
    "multipleOf": ("number", 6, 3, "MULTIPLE_OF"),
    "maxLength": ("string", 5, 6, "MAX_LENGTH"),
    "minLength": ("string", 5, 4, "MIN_LENGTH"),
    "maxItems": ("array", 5, 6, "MAX_ITEMS"),
    "minItems": ("array", 5, 4, "MIN_ITEMS"),
    "maxProperties": ("object", 5, 6, "MAX_PROPERTIES"),
    "minProperties": ("object", 5, 4, "MIN_PROPERTIES"),
}
"""A keyword's type, a narrow value, a wide one, and the row's name."""

COMPATIBLE: dict[str, tuple[Any, Any]] = {
    "maximum loosened": ({"type": "number", "maximum": 5}, {"type": "number", "maximum": 9}),
    "maximum removed": ({"type": "number", "maximum": 5}, NUMBER),
    "minimum loosened": ({"type": "number", "minimum": 5}, {"type": "number", "minimum": 1}),
    "exclusive to inclusive": ({"type": "number", "exclusiveMaximum": 5}, {"type": "number", "maximum": 5}),
    "multipleOf to a divisor": ({"type": "integer", "multipleOf": 6}, {"type": "integer", "multipleOf": 3}),
    "multipleOf to a divisor, in decimals": ({"multipleOf": 0.3}, {"multipleOf": 0.1}),
    "multipleOf to a divisor, far apart": ({"multipleOf": 1e308}, {"multipleOf": 1e-308}),
    "multipleOf to a divisor, of 400 digits": ({"multipleOf": 6 * 10**400}, {"multipleOf": 3 * 10**400}),
    "maxLength loosened": ({"type": "string", "maxLength": 5}, {"type": "string", "maxLength": 6}),
    "minLength removed": ({"type": "string", "minLength": 5}, STRING),
    "pattern removed": ({"type": "string", "pattern": "^a"}, STRING),
    "maxItems loosened": ({"type": "array", "maxItems": 5}, {"type": "array", "maxItems": 6}),
    "uniqueItems removed": ({"type": "array", "uniqueItems": True}, {"type": "array"}),
    "minProperties loosened": (obj(minProperties=2), obj(minProperties=1)),
    "integer to number": (INTEGER, NUMBER),
    "a type added": (STRING, {"type": ["string", "null"]}),
    "enum extended": ({"enum": ["a"]}, {"enum": ["a", "b"]}),
    "enum removed": ({"type": "string", "enum": ["a"]}, STRING),
    "anything to true": (obj({"a": STRING}), True),
    "title, description, default ignored": ({"type": "string", "title": "x"}, {"type": "string", "default": "y"}),
    "empty property added to an open model": (obj(), obj({"a": {}})),
    "optional property added to a closed model": (closed(), closed({"a": STRING})),
    "property added that fits what covered it": (
        obj(additionalProperties=INTEGER),
        obj({"a": NUMBER}, additionalProperties=INTEGER),
    ),
    "property removed, open": (obj({"a": STRING}), obj()),
    "property removed, covered": (closed({"a": INTEGER}), obj(additionalProperties=NUMBER)),
    "required added with a default": (
        obj({"a": STRING}),
        obj({"a": {"type": "string", "default": "x"}}, required=["a"]),
    ),
    "required removed": (obj({"a": STRING}, required=["a"]), obj({"a": STRING})),
    "oneOf: branch added": ({"oneOf": [STRING]}, {"oneOf": [STRING, INTEGER]}),
    "anyOf: branch added": ({"anyOf": [STRING]}, {"anyOf": [INTEGER, STRING]}),
    "allOf: branch removed": ({"allOf": [STRING, {"maxLength": 3}]}, {"allOf": [STRING]}),
    "branches are paired off": (
        {"anyOf": [INTEGER, NUMBER]},
        {"anyOf": [NUMBER, {"type": ["number", "integer"]}]},
    ),
    "plain to anyOf with it": (STRING, {"anyOf": [INTEGER, STRING]}),
    "plain to oneOf with it": (STRING, {"oneOf": [INTEGER, STRING]}),
    "oneOf to anyOf": ({"oneOf": [STRING, INTEGER]}, {"anyOf": [STRING, INTEGER]}),
    "anyOf to a type that takes all": ({"anyOf": [INTEGER, NUMBER]}, NUMBER),
    "items loosened": ({"type": "array", "items": INTEGER}, {"type": "array", "items": NUMBER}),
    "a $ref to the same": ({"$ref": "#/definitions/a", "definitions": {"a": STRING}}, STRING),
    "allOf to anyOf of the same": ({"allOf": [STRING, {"maxLength": 3}]}, {"anyOf": [STRING, {"maxLength": 3}]}),
    "contains loosened": (
        {"type": "array", "contains": INTEGER},
        {"type": "array", "contains": NUMBER},
    ),
    "contains removed": ({"type": "array", "contains": INTEGER}, {"type": "array"}),
    "propertyNames loosened": (obj(propertyNames={"maxLength": 3}), obj(propertyNames={"maxLength": 4})),
    "propertyNames removed": (obj(propertyNames={"maxLength": 3}), obj()),
    "patternProperties loosened": (
        closed(patternProperties={"^x": INTEGER}),
        closed(patternProperties={"^x": NUMBER}),
    ),
    "patternProperties removed, open": (obj(patternProperties={"^x": INTEGER}), obj()),
    "a property that a pattern covered": (
        closed(patternProperties={"^x": INTEGER}),
        closed({"x1": NUMBER}, patternProperties={"^x": NUMBER}),
    ),
    "a pattern that only other engines know, kept": (
        obj({"a": STRING}, patternProperties={"^(?!b)": STRING}),
        obj({"a": STRING}, patternProperties={"^(?!b)": STRING}),
    ),
    "not loosened": ({"not": {"type": ["string", "integer"]}}, {"not": STRING}),
}
INCOMPATIBLE: dict[str, tuple[Any, Any, str]] = {
    "maximum narrowed": ({"type": "number", "maximum": 9}, {"type": "number", "maximum": 5}, "MAXIMUM_NARROWED"),
    "maximum added": (NUMBER, {"type": "number", "maximum": 5}, "MAXIMUM_ADDED"),
    "pattern changed": (
        {"type": "string", "pattern": "a"},
        {"type": "string", "pattern": "b"},
        "PATTERN_NARROWED",
    ),
    "number to integer": (NUMBER, INTEGER, "TYPE_NARROWED"),
    "another type": (STRING, INTEGER, "TYPE_CHANGED"),
    "enum narrowed": ({"enum": ["a", "b"]}, {"enum": ["a"]}, "ENUM_ARRAY_NARROWED"),
    "property added to an open model": (obj(), obj({"a": STRING}), "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"),
    "property added that does not fit what covered it": (
        obj(additionalProperties=STRING),
        obj({"a": INTEGER}, additionalProperties=STRING),
        "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    ),
    "property removed, closed": (closed({"a": STRING}), closed(), "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"),
    "property removed, not covered": (
        closed({"a": STRING}),
        obj(additionalProperties=INTEGER),
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    ),
    "required added": (obj({"a": STRING}), obj({"a": STRING}, required=["a"]), "REQUIRED_ATTRIBUTE_ADDED"),
    "additionalProperties refused": (obj(), closed(), "ADDITIONAL_PROPERTIES_REMOVED"),
    "additionalProperties narrowed": (obj(), obj(additionalProperties=STRING), "ADDITIONAL_PROPERTIES_NARROWED"),
    "items narrowed": ({"type": "array"}, {"type": "array", "items": STRING}, "TYPE_NARROWED"),
    "oneOf: branch removed": ({"oneOf": [STRING, INTEGER]}, {"oneOf": [STRING]}, "SUM_TYPE_NARROWED"),
    "anyOf: branch removed": ({"anyOf": [STRING, INTEGER]}, {"anyOf": [STRING]}, "SUM_TYPE_NARROWED"),
    "allOf: branch added": ({"allOf": [STRING]}, {"allOf": [STRING, {"maxLength": 3}]}, "PRODUCT_TYPE_EXTENDED"),
    "not extended": ({"not": STRING}, {"not": {"type": ["string", "integer"]}}, "NOT_TYPE_EXTENDED"),
    "uniqueItems added": ({"type": "array"}, {"type": "array", "uniqueItems": True}, "UNIQUE_ITEMS_ADDED"),
    "anyOf to allOf of the same": (
        {"anyOf": [STRING, {"maxLength": 3}]},
        {"allOf": [STRING, {"maxLength": 3}]},
        "PRODUCT_TYPE_EXTENDED",
    ),
    "contains added": ({"type": "array"}, {"type": "array", "contains": INTEGER}, "CONTAINS_NARROWED"),
    "contains narrowed": (
        {"type": "array", "contains": NUMBER},
        {"type": "array", "contains": INTEGER},
        "CONTAINS_NARROWED",
    ),
    "propertyNames added": (obj(), obj(propertyNames={"maxLength": 4}), "MAX_LENGTH_ADDED"),
    "propertyNames narrowed": (
        obj(propertyNames={"maxLength": 4}),
        obj(propertyNames={"maxLength": 3}),
        "MAX_LENGTH_NARROWED",
    ),
    "patternProperties added, open": (obj(), obj(patternProperties={"^x": INTEGER}), "PATTERN_PROPERTY_NARROWED"),
    "patternProperties narrowed": (
        closed(patternProperties={"^x": NUMBER}),
        closed(patternProperties={"^x": INTEGER}),
        "PATTERN_PROPERTY_NARROWED",
    ),
    "patternProperties removed, closed": (
        closed(patternProperties={"^x": INTEGER}),
        closed(),
        "ADDITIONAL_PROPERTIES_REMOVED",
    ),
    "a property that a pattern covered otherwise": (
        closed(patternProperties={"^x": INTEGER}),
        closed({"x1": STRING}, patternProperties={"^x": INTEGER}),
        "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    ),
    "a pattern that only other engines know, added": (
        closed({"a": {}}),
        closed({"a": {}}, patternProperties={"^(?!b)": STRING}),
        "TYPE_NARROWED",
    ),
    "a dependency added": (
        obj({"a": STRING}),
        obj({"a": STRING}, dependencies={"a": ["b"]}),
        "DEPENDENCY_EXTENDED",
    ),
    "a condition added": (STRING, {"type": "string", "if": {"minLength": 1}, "then": False}, "CONDITION_CHANGED"),
}
LENIENT: dict[str, tuple[Any, Any]] = {
    "optional property added to an open model": (obj(), obj({"a": STRING})),
    "property with a default added": (obj(), obj({"a": {"type": "string", "default": "x"}}, required=["a"])),
    "property removed": (closed({"a": STRING}), closed()),
    "additionalProperties narrowed": (obj(), closed()),
}


@pytest.mark.parametrize("row", COMPATIBLE)
def test_compatible(row: str) -> None:
    assert kinds(*COMPATIBLE[row]) == []


@pytest.mark.parametrize("row", INCOMPATIBLE)
def test_incompatible(row: str) -> None:
    old, new, kind = INCOMPATIBLE[row]
    assert kind in kinds(old, new)


@pytest.mark.parametrize("keyword", LIMITS)
def test_a_limit_is_loosened_or_removed_and_never_the_reverse(keyword: str) -> None:
    kind, narrow, wide, row = LIMITS[keyword]
    plain, narrowed, widened = {"type": kind}, {"type": kind, keyword: narrow}, {"type": kind, keyword: wide}
    assert kinds(narrowed, widened) == kinds(narrowed, plain) == kinds(widened, plain) == []
    assert kinds(widened, narrowed) == [f"{row}_NARROWED"]
    assert kinds(plain, narrowed) == [f"{row}_ADDED"]


@pytest.mark.parametrize("row", LENIENT)
def test_lenient(row: str) -> None:
    assert kinds(*LENIENT[row], lenient=True) == []
    assert kinds(*LENIENT[row]) != []


def test_items_are_never_lenient() -> None:
    assert kinds({"type": "array"}, {"type": "array", "items": STRING}, lenient=True)


scalars = st.one_of(
    st.builds(
        lambda low, high: {"type": "integer", "minimum": min(low, high), "maximum": max(low, high)},
        st.integers(-5, 5),
        st.integers(-5, 5),
    ),
    st.sampled_from([STRING, NUMBER, INTEGER, {"type": "boolean"}, {"type": "null"}, {}, True]),
    st.builds(lambda size: {"type": "string", "maxLength": size}, st.integers(0, 5)),
    st.builds(lambda values: {"enum": sorted(values)}, st.sets(st.sampled_from("abc"), min_size=1)),
    st.builds(
        lambda types: {"type": sorted(types)}, st.sets(st.sampled_from(["string", "integer", "null"]), min_size=1)
    ),
)


def excluding(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> list[dict[str, Any]]:
    """Branches of oneOf. That an added one takes nothing that another takes is for the author to see to: no schema
    tells it for certain, and Confluent's rules do not ask."""
    every: dict[str, dict[str, Any]] = {
        "string": {"maxLength": draw(st.integers(0, 5))},
        "integer": {"minimum": draw(st.integers(-5, 5))},
        "array": {"items": draw(inner)},
        "object": {"properties": {"x": draw(inner)}, "required": ["x"]},
        "null": {},
        "boolean": {},
    }
    chosen = draw(st.lists(st.sampled_from(sorted(every)), min_size=1, max_size=3, unique=True))
    return [{"type": kind, **every[kind]} for kind in chosen]


@st.composite
def nested(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> Any:
    kind = draw(st.sampled_from(["object", "patterns", "array", "anyOf", "allOf", "oneOf"]))
    if kind in ("object", "patterns"):
        properties = draw(st.dictionaries(st.sampled_from("xyz"), inner, max_size=3))
        found = {"type": "object", "properties": properties, "additionalProperties": draw(st.booleans() | inner)}
        if kind == "patterns":
            patterns = st.sampled_from(["^x", "y", "^[a-m]"])
            return found | {"patternProperties": draw(st.dictionaries(patterns, inner, min_size=1, max_size=2))}
        return found | {"required": sorted(draw(st.sets(st.sampled_from("xyz"))) & set(properties))}
    if kind == "array":
        return {"type": "array", "items": draw(inner), "maxItems": draw(st.integers(0, 3))}
    if kind == "oneOf":
        return {"oneOf": excluding(draw, inner)}
    return {kind: draw(st.lists(inner, min_size=1, max_size=3 if kind == "anyOf" else 2))}


def with_definition(whole: Any, inner: Any) -> Any:
    """One of its parts behind a local `$ref`."""
    text, part = json.dumps(whole), json.dumps(inner)
    if not isinstance(whole, dict) or part not in text or part == text or inner in ({}, True):
        return whole
    return {**json.loads(text.replace(part, '{"$ref": "#/definitions/part"}')), "definitions": {"part": inner}}


plain = st.recursive(scalars, nested, max_leaves=4)
schemas = st.one_of(
    plain, scalars.flatmap(lambda part: nested(st.just(part)).map(lambda whole: with_definition(whole, part)))
)


@settings(max_examples=2_000 if SOAK else 60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_what_was_valid_is_valid_where_we_say_so(data: st.DataObject) -> None:
    old = data.draw(schemas)
    shared = old.get("definitions", {}) if isinstance(old, dict) else {}
    around = nested(st.just(old)).map(lambda whole: {**whole, "definitions": shared})
    new = data.draw(st.one_of(schemas, around, st.just(old)))
    assume(not kinds(old, new))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            instance = data.draw(from_schema(old))
        except Exception:  # noqa: BLE001 - a schema that nothing fits
            assume(False)
    assume(Draft7Validator(old).is_valid(instance))
    assert Draft7Validator(new).is_valid(instance), (old, new, instance)


@pytest.mark.parametrize(
    "text", ["[", "5", '{"type":"nonsense"}', '{"$ref":"#/definitions/missing"}', '{"minimum":"a"}']
)
def test_what_is_no_schema(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parse_json_schema(text)


def test_a_bomb_of_choices_is_refused() -> None:
    choices: Any = STRING
    for number in range(12):
        choices = {"anyOf": [{**choices}, {"type": "object", "properties": {f"p{number}": choices}}]}
    other = json.loads(json.dumps(choices).replace("string", "integer"))
    with pytest.raises(TooComplex):
        kinds(choices, other)
