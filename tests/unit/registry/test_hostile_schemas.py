"""Schemas that nobody would write: they are read and compared, or refused with a reason. Nothing else may come."""

import base64
import contextlib
import copy
import json
import random
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from ottla.registry.compatibility.levels import Previous, check_levels
from ottla.registry.content import AVRO, JSON, PROTOBUF, Content, read_content
from ottla.registry.errors import Code, InvalidSchema, RegistryError, TooComplex
from ottla.registry.schemas.kinds import parse_schema
from ottla.registry.schemas.protobuf import as_text

AVRO_SEED: Any = {
    "type": "record", "name": "Order", "namespace": "shop", "doc": "text", "aliases": ["Old"],
    "fields": [
        {"name": "id", "type": ["null", "long"], "default": None, "aliases": ["key"], "order": "ignore"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "state", "type": {"type": "enum", "name": "S", "symbols": ["A", "B"], "default": "A"}},
        {"name": "tags", "type": {"type": "map", "values": {"type": "array", "items": "double"}}, "default": {}},
        {"name": "hash", "type": {"type": "fixed", "name": "H", "size": 16}},
        {"name": "next", "type": ["null", "Order"]},
        {"name": "ratio", "type": "float", "default": 0.5},
    ],
}  # fmt: skip
JSON_SEED: Any = {
    "$schema": "http://json-schema.org/draft-07/schema#", "$id": "a", "title": "text", "type": "object",
    "definitions": {"n": {"type": ["integer", "null"], "multipleOf": 3, "minimum": 0, "exclusiveMaximum": 9.5}},
    "properties": {
        "n": {"$ref": "#/definitions/n"},
        "s": {"type": "string", "maxLength": 5, "minLength": 1, "pattern": "^a+$", "format": "date"},
        "l": {"type": "array", "items": {"$ref": "#"}, "maxItems": 3, "uniqueItems": True, "contains": {"const": 1}},
        "t": {"type": "array", "items": [{"enum": [1, "a", None]}], "additionalItems": False},
    },
    "patternProperties": {"^x": {"type": "number"}}, "additionalProperties": {"type": "boolean"},
    "required": ["n"], "propertyNames": {"maxLength": 9}, "dependencies": {"n": ["s"], "s": {"minProperties": 1}},
    "allOf": [{"minProperties": 1}], "anyOf": [{"maxProperties": 7}, True], "not": {"required": ["z"]},
    "if": {"required": ["s"]}, "then": {"required": ["l"]}, "else": False,
}  # fmt: skip
PROTO_SEED = """syntax = "proto3"; package shop;
import "google/protobuf/timestamp.proto";
message Order { reserved 9, 20 to 30; reserved "gone"; int64 id = 1; optional string item = 2 [deprecated = true];
  oneof how { bool cash = 3; Card card = 4; } map<string, Card> cards = 5; repeated double prices = 6;
  google.protobuf.Timestamp at = 7; message Card { bytes number = 1; State state = 2; } }
enum State { NEW = 0; OLD = 1; }
service Shop { rpc Buy (Order) returns (stream Order.Card); }
"""
HOSTILE: list[Any] = [
    None, True, False, 0, -1, 1.5, 1e308, 1e-308, 10**400, -(2**63), "", "a.b", "\ud800", "#", "#/x", "int", "\x00", [],
    {}, [[]], [None], {"": {}}, {"type": []}, ["null", "null"], {"$ref": "#"}, {"$ref": "#/required/0"}, "(a+)+$",
    "a{99999999999}", "(?!a)", "http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-03/schema#",
    "https://json-schema.org/draft/2020-12/schema",
]  # fmt: skip
KEYS = [
    "type", "items", "values", "fields", "name", "default", "symbols", "size", "aliases", "$ref", "enum", "const",
    "multipleOf", "maximum", "minLength", "required", "properties", "patternProperties", "additionalProperties",
    "propertyNames", "dependencies", "dependentRequired", "dependentSchemas", "prefixItems", "contains", "oneOf",
    "anyOf", "allOf", "not", "if", "unevaluatedItems", "$anchor", "$id", "id", "$schema", "uniqueItems", "pattern",
    "exclusiveMinimum", "minContains", "$dynamicRef", "divisibleBy", "extends", "\udfff",
]  # fmt: skip


def places(document: Any) -> list[tuple[Any, Any]]:
    """Every object or list inside, with every key or index that it has."""
    found, waiting = [], [document]
    while waiting:
        each = waiting.pop()
        inner = list(each.items() if isinstance(each, dict) else enumerate(each))
        found += [(each, key) for key, _ in inner]
        waiting += [value for _, value in inner if isinstance(value, dict | list) and value]
    return found


def mutated_document(seed: Any, chance: random.Random) -> str:
    document = copy.deepcopy(seed)
    for _ in range(chance.randint(1, 3)):
        there = places(document)
        if not there:
            break
        holder, key = chance.choice(there)
        other, other_key = chance.choice(there)
        match chance.randrange(5):
            case 0:
                holder[key] = copy.deepcopy(chance.choice(HOSTILE))
            case 1:
                del holder[key]
            case 2 if isinstance(holder, dict):
                holder[chance.choice(KEYS)] = holder.pop(key)
            case 3 if isinstance(holder, dict):
                holder[chance.choice(KEYS)] = copy.deepcopy(chance.choice(HOSTILE))
            case _:
                holder[key] = copy.deepcopy(other[other_key])
    text = json.dumps(document)
    return (
        mutated_text(text, chance, ["1e999", "\\ud800", '"', "NaN", "}", "9" * 400]) if chance.random() < 0.1 else text
    )


def mutated_text(text: str, chance: random.Random, pieces: list[str]) -> str:
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(text) + 1)
        end = place + chance.randint(0, 8)
        text = text[:place] + chance.choice([*pieces, ""]) + text[end:]
    return text


def tried(schema_type: str, text: str, seed: Any) -> None:
    """All that a request makes of a schema: its digest, both printed forms, and comparing it either way."""
    try:
        read_content({"schema": text, "schemaType": schema_type})
        parsed = parse_schema(schema_type, text)
        for form in (parsed.canonical, parsed.normalized(), parsed.formatted("resolved")):
            Content(form, schema_type).digest()
        again = parse_schema(schema_type, parsed.canonical)
        for policy in ("STRICT", "LENIENT"):
            check_levels(parsed, [Previous(1, seed)], "FULL", policy=policy)
        check_levels(parsed, [Previous(1, again)], "FULL")
    except (InvalidSchema, TooComplex):
        pass
    except RegistryError as error:
        assert error.code == Code.INVALID_SCHEMA  # noqa: PT017 - every other is a failure


@pytest.mark.parametrize(("schema_type", "seed"), [(AVRO, AVRO_SEED), (JSON, JSON_SEED)], ids=["avro", "json"])
def test_mutated_documents(schema_type: str, seed: Any, pytestconfig: pytest.Config) -> None:
    chance = random.Random(16)
    known = parse_schema(schema_type, json.dumps(seed))
    for _ in range(pytestconfig.getoption("--hostile-inputs") // 2):
        tried(schema_type, mutated_document(seed, chance), known)


def test_mutated_protos(pytestconfig: pytest.Config) -> None:
    """Each is a process of protoc's, so there are fewer."""
    chance = random.Random(16)
    known = parse_schema(PROTOBUF, PROTO_SEED)
    pieces = [
        "{",
        "}",
        ";",
        "oneof",
        "\ud800",
        "\x00",
        "999999999999",
        '"',
        "message",
        "import",
        "extend",
        "group",
        "/*",
    ]
    for _ in range(pytestconfig.getoption("--hostile-inputs") // 80):
        tried(PROTOBUF, mutated_text(PROTO_SEED, chance, pieces), known)


def test_mutated_descriptors(pytestconfig: pytest.Config) -> None:
    """What clients send in base64 is printed before protoc sees it."""
    chance = random.Random(16)
    known: Any = parse_schema(PROTOBUF, PROTO_SEED)
    raw = known.descriptor()
    for _ in range(pytestconfig.getoption("--hostile-inputs")):
        data = bytearray(raw)
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(data))
            match chance.randrange(3):
                case 0:
                    data[place] = chance.randrange(256)
                case 1:
                    del data[place : place + 3]
                case _:
                    data[place:place] = chance.randbytes(2)
        with contextlib.suppress(InvalidSchema):
            as_text(base64.b64encode(data).decode()).encode()


def broken_descriptors() -> list[FileDescriptorProto]:
    without_oneof = FileDescriptorProto(name="a")
    without_oneof.message_type.add(name="M").field.add(name="a", number=1, type=5, oneof_index=3)
    without_group = FileDescriptorProto(name="a")
    without_group.message_type.add(name="M").field.add(name="a", number=1, type=10, type_name=".M.G")
    empty_map = FileDescriptorProto(name="a")
    holder = empty_map.message_type.add(name="M")
    holder.nested_type.add(name="E").options.map_entry = True
    holder.field.add(name="a", number=1, type=11, label=3, type_name=".M.E")
    return [without_oneof, without_group, empty_map]


@pytest.mark.parametrize("descriptor", broken_descriptors(), ids=["oneof", "group", "map"])
def test_descriptors_that_name_what_they_do_not_have(descriptor: FileDescriptorProto) -> None:
    with pytest.raises(InvalidSchema, match="does not have"):
        as_text(base64.b64encode(descriptor.SerializeToString()).decode())


SURROGATES = {
    "doc": (AVRO, '{"type":"record","name":"R","doc":"\\ud800","fields":[]}'),
    "title": (JSON, '{"title":"\\udfff"}'),
    "enum": (JSON, '{"enum":["\\ud800"]}'),
    "doubled key": (JSON, '{"\\ud800":1,"\\ud800":2}'),
    "raw Avro": (AVRO, '{"type":"int","doc":"\ud800"}'),
    "raw proto": (PROTOBUF, 'syntax = "proto3"; // \ud800\nmessage M {}'),
}


@pytest.mark.parametrize("row", SURROGATES)
def test_half_a_character_is_refused(row: str) -> None:
    schema_type, text = SURROGATES[row]
    with pytest.raises(InvalidSchema) as refused:
        parse_schema(schema_type, text)
    str(refused.value).encode()


@pytest.mark.parametrize(
    "document",
    [
        {"schema": '"\ud800"'},
        {"schema": '"int"', "metadata": {"properties": {"owner": "\ud800"}}},
        {"schema": '"int"', "references": [{"name": "\ud800", "subject": "s", "version": 1}]},
        {"schema": '"int"', "references": [{"name": "n", "subject": "s", "version": 2**31}]},
        {"schema": '"int"', "references": [{"name": "n", "subject": "s", "version": float("inf")}]},
    ],
)
def test_contents_that_no_record_could_have_are_refused(document: dict[str, Any]) -> None:
    with pytest.raises(RegistryError) as refused:
        read_content(document)
    assert refused.value.code == Code.INVALID_SCHEMA


def test_a_whole_pair_is_a_character() -> None:
    assert parse_schema(JSON, '{"title":"\\ud83d\\ude00"}').canonical == '{"title":"😀"}'


@pytest.mark.parametrize("text", ['{"enum":[1e999]}', '{"maximum":-1e999}', f'{{"multipleOf":{"9" * 1001}}}'])
def test_numbers_that_cannot_be_kept_are_refused(text: str) -> None:
    with pytest.raises(InvalidSchema, match="number"):
        parse_schema(JSON, text)


@pytest.mark.parametrize(
    ("schema_type", "text"),
    [
        (JSON, '{"enum":[' + ",".join(f'"a{number}",{number}' for number in range(50_000)) + "]}"),
        (JSON, '{"enum":[' + ",".join(f'"a{number}"' for number in range(50_000)) + "]}"),
        (
            AVRO,
            '{"type":"enum","name":"E","symbols":["' + '","'.join(f"a{number}" for number in range(100_000)) + '"]}',
        ),
        (JSON, "{" + ",".join(f'"k{number}":1' for number in range(50_000)) + ',"k49999":1}'),
        (JSON, '{"properties":{"%s":{}},"patternProperties":{"(a+)+$":{}}}' % ("a" * 40 + "b")),
        (JSON, '{"type":"string","pattern":"a{99999999999}"}'),
    ],
    ids=["mixed enum", "enum", "symbols", "doubled key", "pattern", "count of a pattern"],
)
def test_work_that_grows_with_the_square_is_not_done(schema_type: str, text: str) -> None:
    """It would take minutes."""
    tried(schema_type, text, parse_schema(schema_type, json.dumps(AVRO_SEED if schema_type == AVRO else JSON_SEED)))
