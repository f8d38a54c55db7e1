"""`schema: registry` end to end: an evolving topic through pipelines to Parquet and back to a topic, exact."""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow.dataset
import pytest
from tests.pipelines.world import World

from ottla.pipelines.runner.cases import run_case
from ottla.pipelines.runner.deploy import deploy
from ottla.registry.client import RegistryClient, RegistrySchema
from ottla.registry.framing import id_prefix
from ottla.registry.schemas.avro import parse_avro
from ottla.registry.schemas.avro_json import from_document, to_document
from ottla.testing import RunningBroker
from ottla.testing.registry import RunningRegistry, registry

PIPELINES = """
name: "@in"
sources: {orders: {topic: "@orders", format: avro, schema: registry, start: earliest, format_options: {registry: URL}}}
sinks: [{files: ./lake, format: parquet}]
errors: {dead_letter: "@dead"}
---
name: "@out"
sources:
  orders: {files: ./lake, format: parquet, schema: "id INT, note STRING, price DOUBLE"}
sinks:
  - {topic: "@back", key: note, format: avro, schema: registry, format_options: {registry: URL, record: Order}}
"""
KEYED = """
name: "@keyed"
sources:
  orders:
    topic: "@sales"
    format: protobuf
    schema: registry
    format_options: {registry: URL, columns: merged}
    key_format: avro
    key_schema: registry
steps:
  - {sql: "SELECT key.shop AS shop, id, item, note FROM input"}
sinks:
  - topic: "@sold"
    format: protobuf
    schema: registry
    format_options: {registry: URL, record: Sold}
    key: [shop, id]
    key_format: json
    key_schema: registry
  - topic: "@by-id"
    columns: [item]
    key: id
    key_format: avro
    key_schema: registry
    key_format_options: {registry: URL}
errors: {dead_letter: "@dead"}
tests:
  - given:
      orders: {records: [{key: {shop: s}, value: {id: 1, item: tea}}, {key: {shop: t}, value: "tea"}]}
    expect: [{shop: s, id: 1, item: tea, note: null}]
    dead_letters: [{offset: 1}]
"""
FIELDS: tuple[Any, ...] = (
    {"name": "id", "type": "int"},
    {"name": "note", "type": "string", "default": "-"},
    {"name": "price", "type": ["null", "double"], "default": None},
)


@pytest.fixture(scope="module")
def registry_process(ottla_broker: RunningBroker) -> Iterator[RunningRegistry]:
    with registry(ottla_broker.bootstrap, "--topic", "_pipelines_schemas", "--group", "pipelines") as running:
        yield running


@pytest.fixture
def client(registry_process: RunningRegistry) -> Iterator[RegistryClient]:
    with RegistryClient(registry_process.url) as client:
        yield client


def written(schema: RegistrySchema, document: Any) -> bytes:
    return id_prefix(schema.schema_id) + from_document(parse_avro(schema.text).root, document)


def test_an_evolving_topic_to_parquet_and_back(
    world: World, client: RegistryClient, registry_process: RunningRegistry
) -> None:
    orders = world.topic("orders", partitions=2)
    versions = [
        client.register(f"{orders}-value", json.dumps({"type": "record", "name": "Order", "fields": FIELDS[:count]}))
        for count in (1, 2, 3)
    ]
    values = [
        written(versions[0], {"id": 1}),
        written(versions[2], {"id": 2, "note": "b", "price": {"double": 2.5}}),
        written(versions[1], {"id": 3, "note": "c"}),
        id_prefix(999_999) + b"\x02",
        written(versions[0], {"id": 4}),
        written(versions[2], {"id": 5, "note": "e", "price": None}),
    ]
    world.send(orders, *values[:3])
    world.send(orders, *values[3:], partition=1)
    first, second = PIPELINES.replace("URL", registry_process.url).split("---\n")
    world.run_once(world.file(first, "in.yaml"))
    lake = pyarrow.dataset.dataset(str(world.folder / "lake"), format="parquet").to_table().to_pylist()
    exact = [
        {"id": 1, "note": "-", "price": None},
        {"id": 2, "note": "b", "price": 2.5},
        {"id": 3, "note": "c", "price": None},
        {"id": 4, "note": "-", "price": None},
        {"id": 5, "note": "e", "price": None},
    ]
    assert sorted(lake, key=lambda row: int(row["id"])) == exact
    (letter,) = world.records(world.named("dead"))
    assert letter.value == values[3]
    assert "id 999999, is not known to the registry" in (letter.said("message") or "")

    world.run_once(world.file(second, "out.yaml"))
    made = client.latest(f"{world.named('back')}-value")
    root = parse_avro(made.text).root
    records = world.records(world.named("back"))
    assert {(record.value or b"")[:5] for record in records} == {id_prefix(made.schema_id)}
    back = [to_document(root, record.value or b"", 5) for record in records]
    plain = [
        {name: next(iter(value.values())) if isinstance(value, dict) else value for name, value in each.items()}
        for each in back
    ]
    assert sorted(plain, key=lambda row: int(row["id"])) == exact
    assert sorted(record.key or b"" for record in records) == [b"-", b"-", b"b", b"c", b"e"]


def test_keys_and_merged_protobuf(world: World, client: RegistryClient, registry_process: RunningRegistry) -> None:
    """Two versions of a message with Avro keys, to a message made of the columns with JSON keys, and to keys that are
    one value."""
    sales = world.topic("sales")
    texts = [
        f'syntax = "proto3"; message Sale {{ int32 id = 1; {field} }}'
        for field in ("string note = 2;", "string item = 3;")
    ]
    ids = [client.register(f"{sales}-value", text, "PROTOBUF").schema_id for text in texts]
    key_type = '{"type":"record","name":"K","fields":[{"name":"shop","type":"string"}]}'
    key = written(client.register(f"{sales}-key", key_type), {"shop": "s"})
    world.send(sales, id_prefix(ids[0]) + b"\x00\x08\x01\x12\x01n", keys=[key])
    world.send(sales, id_prefix(ids[1]) + b"\x00\x08\x02\x1a\x03tea", keys=[key])
    world.send(sales, id_prefix(ids[1]) + b"\x00\x08\x03", keys=[b"plain"])
    world.run_once(world.file(KEYED.replace("URL", registry_process.url), "keyed.yaml"))
    sold, by_id = world.records(world.named("sold")), world.records(world.named("by-id"))
    made = client.latest(f"{world.named('sold')}-value")
    assert made.schema_type == "PROTOBUF"
    prefix = id_prefix(made.schema_id) + b"\x00\x0a\x01s\x10"
    assert sorted(record.value or b"" for record in sold) == [prefix + b"\x01\x22\x01n", prefix + b"\x02\x1a\x03tea"]
    json_key = client.latest(f"{world.named('sold')}-key")
    assert json_key.schema_type == "JSON"
    keys = sorted(record.key or b"" for record in sold)
    assert [each[:5] for each in keys] == [id_prefix(json_key.schema_id)] * 2
    assert [json.loads(each[5:]) for each in keys] == [{"shop": "s", "id": 1}, {"shop": "s", "id": 2}]
    number = client.latest(f"{world.named('by-id')}-key")
    assert number.text == '"int"'
    assert sorted(record.key or b"" for record in by_id) == [
        id_prefix(number.schema_id) + each for each in (b"\x02", b"\x04")
    ]
    deployment = deploy(world.folder / "keyed.yaml", bootstrap=world.bootstrap, state_dir=world.folder / "test")
    outcome = run_case(deployment.checked.spec.tests[0], 1, deployment, world.spark)
    assert outcome.passed, outcome
    assert client.versions(f"{sales}-value") == [1, 2], "a test registers nothing"
    (letter,) = world.records(world.named("dead"))
    assert letter.key == b"plain"
    assert (letter.said("message") or "").startswith("key: it has no schema id")
