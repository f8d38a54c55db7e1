"""Every row of the table of JSON Schema rules, and what they promise: what was valid stays valid."""

import json
import warnings
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator

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


COMPATIBLE: dict[str, tuple[Any, Any]] = {
    "maximum loosened": ({"type": "number", "maximum": 5}, {"type": "number", "maximum": 9}),
    "maximum removed": ({"type": "number", "maximum": 5}, NUMBER),
    "minimum loosened": ({"type": "number", "minimum": 5}, {"type": "number", "minimum": 1}),
    "exclusive to inclusive": ({"type": "number", "exclusiveMaximum": 5}, {"type": "number", "maximum": 5}),
    "multipleOf to a divisor": ({"type": "integer", "multipleOf": 6}, {"type": "integer", "multipleOf": 3}),
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


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)
    return st.one_of(
        st.builds(
            lambda properties, rest, required: {
                "type": "object",
                "properties": properties,
                "additionalProperties": rest,
                "required": sorted(required & set(properties)),
            },
            names,
            st.one_of(st.booleans(), inner),
            st.sets(st.sampled_from("xyz")),
        ),
        st.builds(lambda items, size: {"type": "array", "items": items, "maxItems": size}, inner, st.integers(0, 3)),
        st.builds(lambda branches: {"anyOf": branches}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda branches: {"allOf": branches}, st.lists(inner, min_size=1, max_size=2)),
    )


schemas = st.recursive(scalars, nested, max_leaves=4)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_what_was_valid_is_valid_where_we_say_so(data: st.DataObject) -> None:
    old = data.draw(schemas)
    new = data.draw(st.one_of(schemas, nested(st.just(old)), st.just(old)))
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
