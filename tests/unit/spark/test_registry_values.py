"""Schemas of a registry that are no records but single values, as keys often have."""

import json
from typing import Any

import pytest
from pyspark.sql.types import DataType, StringType, StructType

from ottla.registry.client import RegistrySchema
from ottla.registry.framing import id_prefix
from ottla.spark.formats import registry_decoding
from ottla.spark.formats.avro import make_encode as make_avro_encode
from ottla.spark.formats.avro_schemas import avro_type_of, column_type
from ottla.spark.formats.decoding import Decode, Undecodable
from ottla.spark.formats.json_schemas import json_column_type, json_schema_of
from ottla.spark.formats.registry_decoding import RegistryAddress, make_decode
from ottla.spark.formats.registry_format import _make_json_encode, _make_single, key_options
from ottla.spark.formats.spec import FormatProblem


class _Registry:
    def __init__(self, schemas: dict[int, RegistrySchema]) -> None:
        self._schemas = schemas

    def schema(self, schema_id: int) -> RegistrySchema:
        return self._schemas[schema_id]


@pytest.fixture
def decode(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Any:
    def made(kind: str, texts: dict[int, str], reader: str) -> Decode:
        address = RegistryAddress(f"http://{request.node.name}:{kind}")
        schemas = {number: RegistrySchema(number, kind.upper(), text) for number, text in texts.items()}
        monkeypatch.setitem(registry_decoding._clients, address, _Registry(schemas))
        return make_decode(kind, address, reader, "", "key")

    return made


def test_an_avro_value_is_one_column_and_follows_avros_rules(decode: Any) -> None:
    read = decode("avro", {1: '"int"', 2: '"long"', 3: '"string"'}, '"long"')
    assert read(id_prefix(1) + b"\x0e") == {"key": 7}
    assert read(id_prefix(2) + b"\x0e") == {"key": 7}
    with pytest.raises(Undecodable, match="id 3, cannot be read here"):
        read(id_prefix(3) + b"\x02a")
    with pytest.raises(Undecodable, match="left over"):
        read(id_prefix(2) + b"\x0e\x00")


def test_a_json_value_is_one_column(decode: Any) -> None:
    read = decode("json", {1: '{"type": "string"}'}, "")
    assert read(id_prefix(1) + b'"a"') == {"key": "a"}
    with pytest.raises(Undecodable, match="not JSON"):
        read(id_prefix(1) + b"a")


def test_what_is_written_is_what_is_read(decode: Any) -> None:
    text = json.dumps(avro_type_of(StringType(), "Row"))
    assert column_type(json.loads(text)) == StringType()
    write = _make_single(lambda: make_avro_encode(text, id_prefix(1)))
    value = write({"single": "a"})
    assert value == id_prefix(1) + b"\x02a"
    assert decode("avro", {1: text}, text)(value) == {"key": "a"}
    assert write({"single": None}) is None, "a key that is null stays null"
    assert _make_single(lambda: _make_json_encode(id_prefix(1)))({"single": 5}) == id_prefix(1) + b"5"


def test_types_of_json_schemas() -> None:
    assert json_column_type([{"type": "integer"}]).simpleString() == "bigint"
    assert json_schema_of(StringType(), "Row")["type"] == "string"
    fields: DataType = json_column_type([{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {}}}])
    assert isinstance(fields, StructType)
    assert fields.names == ["a", "b"]
    with pytest.raises(FormatProblem, match="neither properties"):
        json_column_type([{}])
    with pytest.raises(FormatProblem, match="cannot be merged"):
        json_column_type([{"type": "string"}, {"properties": {"b": {}}}])


def test_options_of_a_key() -> None:
    assert key_options("key.avsc", {"framing": "none"}, {"registry": "r"}, "t") == {"framing": "none"}
    assert key_options("registry", {"registry": "own"}, {"registry": "r", "columns": 1}, ["a", "b"]) == {
        "part": "key", "registry": "own",
    }  # fmt: skip
