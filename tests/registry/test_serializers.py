"""confluent-kafka's serializers, as their users call them: what goes in comes out, through a registry that runs."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from ottla.registry.client import RegistryClient
from ottla.registry.limits import LIMITS
from ottla.registry.schemas.protobuf import parse_protobuf
from ottla.registry.schemas.protoc import MAIN, compile_protos
from ottla.testing.registry import RunningRegistry

AVRO = '{"type":"record","name":"Order","fields":[{"name":"id","type":"int"},{"name":"item","type":"string"}]}'
JSON = """{"$schema":"http://json-schema.org/draft-07/schema#","title":"Order","type":"object","properties":
{"id":{"type":"integer"},"item":{"type":"string"}},"required":["id"],"additionalProperties":false}"""
ORDER = {"id": 7, "item": "Earl Grey"}


@pytest.fixture
def confluent(registry_process: RunningRegistry) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry_process.url}) as client:
        yield client


@pytest.fixture
def context(request: pytest.FixtureRequest) -> SerializationContext:
    return SerializationContext(request.node.name, MessageField.VALUE, [])


def test_avro(confluent: SchemaRegistryClient, context: SerializationContext) -> None:
    written = AvroSerializer(confluent, AVRO)(ORDER, context)
    assert written[0] == 0
    assert AvroDeserializer(confluent)(written, context) == ORDER


def test_avro_with_the_latest_schema(confluent: SchemaRegistryClient, context: SerializationContext) -> None:
    newer = AVRO.replace("}]}", '},{"name":"n","type":"int","default":5}]}')
    confluent.register_schema(f"{context.topic}-value", Schema(AVRO, "AVRO"))
    confluent.register_schema(f"{context.topic}-value", Schema(newer, "AVRO"))
    settings = {"auto.register.schemas": False, "use.latest.version": True}
    written = AvroSerializer(confluent, None, conf=settings)(ORDER | {"n": 1}, context)
    old = AvroSerializer(confluent, AVRO, conf={"auto.register.schemas": False})(ORDER, context)
    reader = AvroDeserializer(confluent, newer)
    assert reader(written, context) == ORDER | {"n": 1}
    assert reader(old, context) == ORDER | {"n": 5}


def test_avro_with_references(confluent: SchemaRegistryClient, context: SerializationContext) -> None:
    item = '{"type":"record","name":"Item","namespace":"shop","fields":[{"name":"name","type":"string"}]}'
    basket = '{"type":"record","name":"Basket","fields":[{"name":"item","type":"shop.Item"}]}'
    confluent.register_schema(f"{context.topic}-item", Schema(item, "AVRO"))
    reference = SchemaReference("shop.Item", f"{context.topic}-item", 1)
    written = AvroSerializer(confluent, Schema(basket, "AVRO", [reference]))({"item": {"name": "tea"}}, context)
    assert AvroDeserializer(confluent)(written, context) == {"item": {"name": "tea"}}


def test_avro_with_the_id_in_a_header(confluent: SchemaRegistryClient, context: SerializationContext) -> None:
    settings = {"schema.id.serializer": header_schema_id_serializer}
    written = AvroSerializer(confluent, AVRO, conf=settings)(ORDER, context)
    assert [name for name, _ in context.headers] == ["__value_schema_id"]
    assert context.headers[0][1][0] == 1
    assert written[:1] != b"\x00"
    assert AvroDeserializer(confluent)(written, context) == ORDER


def test_json_schema(confluent: SchemaRegistryClient, context: SerializationContext) -> None:
    written = JSONSerializer(JSON, confluent)(ORDER, context)
    assert JSONDeserializer(JSON, schema_registry_client=confluent)(written, context) == ORDER


def test_json_schema_normalised_and_latest(confluent: SchemaRegistryClient, context: SerializationContext) -> None:
    JSONSerializer(JSON, confluent, conf={"normalize.schemas": True})(ORDER, context)
    settings = {"auto.register.schemas": False, "use.latest.version": True}
    written = JSONSerializer(None, confluent, conf=settings)(ORDER, context)
    assert JSONDeserializer(None, schema_registry_client=confluent)(written, context) == ORDER


PROTO = """syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Order { int32 id = 1; string item = 2; google.protobuf.Timestamp at = 3; message Line { int32 n = 1; } }
message Other { int64 x = 1; Order order = 2; }
"""


def message_classes(text: str, name: str) -> dict[str, Any]:
    """As `protoc --python_out` makes them."""
    parsed = parse_protobuf(text)
    pool = descriptor_pool.DescriptorPool()
    for file in parsed.files.values():
        made = descriptor_pb2.FileDescriptorProto()
        made.CopyFrom(file)
        if file is parsed.main:
            made.name = name
        pool.Add(made)
    return message_factory.GetMessageClassesForFiles([name], pool)


@pytest.mark.parametrize("name", ["shop.Order", "shop.Other", "shop.Order.Line"])
def test_protobuf(confluent: SchemaRegistryClient, context: SerializationContext, name: str) -> None:
    classes = message_classes(PROTO, "shop.proto")
    kind = classes["shop.Order"].Line if name.endswith("Line") else classes[name]
    messages: dict[str, dict[str, Any]] = {
        "shop.Order": {"id": 7, "item": "tea"},
        "shop.Other": {"x": 5},
        "shop.Order.Line": {"n": 1},
    }
    message = messages[name]
    conf = {"use.deprecated.format": False}
    written = ProtobufSerializer(kind, confluent, conf)(kind(**message), context)
    assert ProtobufDeserializer(kind, conf, confluent)(written, context) == kind(**message)


def test_protobuf_text_and_descriptor_are_one_schema(
    confluent: SchemaRegistryClient, context: SerializationContext
) -> None:
    subject = f"{context.topic}-value"
    by_text = confluent.register_schema(subject, Schema(PROTO, "PROTOBUF"))
    encoded = base64.b64encode(parse_protobuf(PROTO).main.SerializeToString()).decode()
    assert confluent.register_schema(subject, Schema(encoded, "PROTOBUF")) == by_text
    assert "message Order" in confluent.get_latest_version(subject).schema.schema_str


def test_json_schema_with_references(confluent: SchemaRegistryClient, context: SerializationContext) -> None:
    item = '{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}'
    basket = '{"title":"Basket","type":"object","properties":{"item":{"$ref":"item.json"}},"required":["item"]}'
    confluent.register_schema(f"{context.topic}-item", Schema(item, "JSON"))
    reference = SchemaReference("item.json", f"{context.topic}-item", 1)
    schema = Schema(basket, "JSON", [reference])
    serialize = JSONSerializer(schema, confluent)
    written = serialize({"item": {"name": "tea"}}, context)
    reader = JSONDeserializer(schema, schema_registry_client=confluent)
    assert reader(written, context) == {"item": {"name": "tea"}}
    with pytest.raises(SerializationError):
        serialize({"item": {"name": 5}}, context)
    assert confluent.get_latest_version(f"{context.topic}-value").schema.references == [reference]


def test_json_schema_with_the_id_in_a_header(confluent: SchemaRegistryClient, context: SerializationContext) -> None:
    settings = {"schema.id.serializer": header_schema_id_serializer}
    written = JSONSerializer(JSON, confluent, conf=settings)(ORDER, context)
    assert [(name, value[0]) for name, value in context.headers] == [("__value_schema_id", 1)]
    assert json.loads(written) == ORDER, "bare"
    assert JSONDeserializer(None, schema_registry_client=confluent)(written, context) == ORDER


@pytest.mark.parametrize("name", ["shop.Order", "shop.Other"])
def test_protobuf_with_the_id_in_a_header(
    confluent: SchemaRegistryClient, context: SerializationContext, name: str
) -> None:
    """The path of the message goes into the header too."""
    kind = message_classes(PROTO, "shop.proto")[name]
    message = kind(id=7) if name == "shop.Order" else kind(x=5)
    conf = {"use.deprecated.format": False, "schema.id.serializer": header_schema_id_serializer}
    written = ProtobufSerializer(kind, confluent, conf)(message, context)
    assert [(name, value[0]) for name, value in context.headers] == [("__value_schema_id", 1)]
    assert written == message.SerializeToString(), "bare"
    assert ProtobufDeserializer(kind, {"use.deprecated.format": False}, confluent)(written, context) == message


def test_protobuf_with_references(confluent: SchemaRegistryClient, context: SerializationContext) -> None:
    """The serializer registers what a file imports, each as a subject of its own."""
    item = 'syntax = "proto3"; package shop; message Item { string name = 1; }'
    basket = 'syntax = "proto3"; package shop; import "item.proto"; message Basket { Item item = 1; }'
    pool = descriptor_pool.DescriptorPool()
    for file in compile_protos({"item.proto": item, MAIN: basket}, LIMITS).values():
        made = descriptor_pb2.FileDescriptorProto()
        made.CopyFrom(file)
        made.name = "basket.proto" if file.name == MAIN else file.name
        pool.Add(made)
    kind = message_factory.GetMessageClassesForFiles(["item.proto", "basket.proto"], pool)["shop.Basket"]
    conf = {"use.deprecated.format": False}
    message = kind(item={"name": "tea"})
    written = ProtobufSerializer(kind, confluent, conf)(message, context)
    assert ProtobufDeserializer(kind, conf, confluent)(written, context) == message
    found = confluent.get_latest_version(f"{context.topic}-value").schema
    assert [(each.name, each.version) for each in found.references or []] == [("item.proto", 1)]
    assert "message Item" in confluent.get_latest_version(found.references[0].subject).schema.schema_str


def test_protobuf_with_the_latest_schema(
    confluent: SchemaRegistryClient, context: SerializationContext, client: RegistryClient
) -> None:
    """What is written with an older class carries the id of the newest schema. Another client registered both: this
    one would remember texts where its deserializer wants descriptors."""
    subject = f"{context.topic}-value"
    newer = PROTO.replace("string item = 2;", "string item = 2; string note = 5;")
    client.register(subject, PROTO, "PROTOBUF")
    latest = client.register(subject, newer, "PROTOBUF").schema_id
    kind = message_classes(PROTO, "shop.proto")["shop.Order"]
    settings = {"use.deprecated.format": False, "auto.register.schemas": False, "use.latest.version": True}
    written = ProtobufSerializer(kind, confluent, settings)(kind(id=7, item="tea"), context)
    assert int.from_bytes(written[1:5], "big") == latest
    reader = message_classes(newer, "newer.proto")["shop.Order"]
    assert ProtobufDeserializer(reader, {"use.deprecated.format": False}, confluent)(written, context).item == "tea"
