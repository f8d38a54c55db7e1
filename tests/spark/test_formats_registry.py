"""Formats with `schema: registry` on real Spark: records of many versions, the columns of one, reasons for the rest."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from tests.spark.feeding import MakeTopic, Records

from ottla.registry.client import RegistryClient
from ottla.registry.framing import KEY_HEADER, VALUE_HEADER, guid_header, id_prefix
from ottla.registry.schemas.avro import parse_avro
from ottla.registry.schemas.avro_json import from_document
from ottla.spark.formats.api import Parsed, from_format, to_format
from ottla.spark.formats.registry_decoding import fillings
from ottla.spark.formats.registry_format import merged
from ottla.spark.formats.spec import FormatProblem
from ottla.testing import RunningBroker
from ottla.testing.registry import RunningRegistry


@pytest.fixture
def client(registry_process: RunningRegistry) -> Iterator[RegistryClient]:
    with RegistryClient(registry_process.url) as client:
        yield client


@pytest.fixture
def topic(unique: Callable[[str], str]) -> str:
    return unique("versions")


def order(*fields: Any) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}, *fields]})


NOTE = {"name": "note", "type": "string", "default": "-"}
PRICE = {"name": "price", "type": ["null", "double"], "default": None}
ITEM = {"type": "record", "name": "Item", "fields": [{"name": "n", "type": "int"}]}
ITEMS = {"name": "items", "type": {"type": "array", "items": ITEM}, "default": []}


def avro(schema_id: int, text: str, document: Any) -> bytes:
    return id_prefix(schema_id) + from_document(parse_avro(text).root, document)


def frame_of(spark: SparkSession, *values: bytes | None, headers: bytes | None = None) -> DataFrame:
    rows = [(number, None if value is None else bytearray(value)) for number, value in enumerate(values)]
    frame = spark.createDataFrame(rows, "i INT, value BINARY").coalesce(1)
    if headers is None:
        return frame
    header = sf.struct(sf.lit(VALUE_HEADER).alias("key"), sf.lit(headers).alias("value"))
    return frame.withColumn("headers", sf.array(header))


def read(frame: DataFrame, kind: str, url: str, **options: Any) -> Parsed:
    return from_format(frame, kind, "registry", options={"registry": url, **options})


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in frame.orderBy("i").drop("i", "headers").collect()]


def test_versions_become_the_columns_of_the_latest(
    spark: SparkSession, client: RegistryClient, topic: str, registry_process: RunningRegistry
) -> None:
    texts = [order(), order(NOTE), order(NOTE, PRICE), order({**NOTE, "type": "string"}, PRICE, ITEMS)]
    ids = [client.register(f"{topic}-value", text).schema_id for text in texts]
    values = [
        avro(ids[0], texts[0], {"id": 1}),
        avro(ids[1], texts[1], {"id": 2, "note": "x"}),
        avro(ids[2], texts[2], {"id": 3, "note": "y", "price": {"double": 1.5}}),
        avro(ids[3], texts[3], {"id": 4, "note": "z", "price": None, "items": [{"n": 5}]}),
        id_prefix(999_999) + b"\x02",
        b"no frame",
        avro(ids[0], texts[0], {"id": 1}) + b"more",
        None,
    ]
    parsed = read(frame_of(spark, *values), "avro", registry_process.url, topic=topic)
    empty: dict[str, Any] = {"price": None, "items": []}
    assert rows(parsed.good) == [
        {"id": 1, "note": "-", **empty},
        {"id": 2, "note": "x", **empty},
        {"id": 3, "note": "y", "price": 1.5, "items": []},
        {"id": 4, "note": "z", "price": None, "items": [{"n": 5}]},
    ]
    errors = [row["error"] for row in rows(parsed.bad)]
    assert "id 999999, is not known to the registry" in errors[0]
    assert "no schema id" in errors[1]
    assert "4 bytes are left over" in errors[2]
    assert "tombstone" in errors[3]


def test_pinned_and_merged_columns(
    spark: SparkSession, client: RegistryClient, topic: str, registry_process: RunningRegistry
) -> None:
    client.call("PUT", f"/config/{topic}-value", body={"compatibility": "NONE"})
    first, second = order({"name": "old", "type": "string"}), order({"name": "new", "type": "string"})
    ids = [client.register(f"{topic}-value", text).schema_id for text in (first, second)]
    frame = frame_of(spark, avro(ids[0], first, {"id": 1, "old": "a"}), avro(ids[1], second, {"id": 2, "new": "b"}))
    pinned = read(frame, "avro", registry_process.url, topic=topic, columns=1)
    assert rows(pinned.good) == [{"id": 1, "old": "a"}]
    assert "field old of record Order has no default" in rows(pinned.bad)[0]["error"]
    everything = read(frame, "avro", registry_process.url, topic=topic, columns="merged")
    assert rows(everything.good) == [{"id": 1, "new": None, "old": "a"}, {"id": 2, "new": "b", "old": None}]


def test_there_and_back(
    spark: SparkSession, client: RegistryClient, topic: str, registry_process: RunningRegistry
) -> None:
    frame = spark.createDataFrame([(0, "tea", 1.5), (1, None, None)], "i INT, item STRING, price DOUBLE").coalesce(1)
    url = registry_process.url
    for kind in ("avro", "json"):
        options = {"registry": url, "topic": f"{topic}-{kind}", "record": "Sale"}
        written = to_format(frame, kind, ["item", "price"], schema="registry", options=options)
        assert client.versions(f"{topic}-{kind}-value") == [1]
        parsed = read(written.select("i", "value"), kind, url, topic=f"{topic}-{kind}")
        assert rows(parsed.good) == [{"item": "tea", "price": 1.5}, {"item": None, "price": None}]
        headed = to_format(frame, kind, ["item", "price"], schema="registry", options={**options, "framing": "header"})
        assert headed.select("headers").first()[0][0]["key"] == VALUE_HEADER  # type: ignore[index]
        parsed = read(headed.select("i", "value", "headers"), kind, url, topic=f"{topic}-{kind}")
        assert rows(parsed.good) == [{"item": "tea", "price": 1.5}, {"item": None, "price": None}]


@pytest.mark.parametrize(("strategy", "subject"), [("record", "{record}"), ("topic-record", "{topic}-{record}")])
def test_strategies_of_a_sink(
    spark: SparkSession,
    client: RegistryClient,
    topic: str,
    registry_process: RunningRegistry,
    strategy: str,
    subject: str,
) -> None:
    """The record's name is part of the subject, so one topic has records of several kinds."""
    url = registry_process.url
    first = spark.createDataFrame([(0, "tea")], "i INT, item STRING").coalesce(1)
    second = spark.createDataFrame([(1, 2.5)], "i INT, amount DOUBLE").coalesce(1)
    values = []
    for frame, record in ((first, f"Sale{topic[-1]}"), (second, f"Refund{topic[-1]}")):
        own = [name for name in frame.columns if name != "i"]
        options = {"registry": url, "topic": topic, "strategy": strategy, "record": record}
        written = to_format(frame, "avro", own, schema="registry", options=options)
        made = client.latest(subject.format(topic=topic, record=record))
        (row,) = written.select("value").collect()
        assert bytes(row[0])[:5] == id_prefix(made.schema_id)
        parsed = read(written.select("i", "value"), "avro", url, topic=topic, strategy=strategy, record=record)
        assert [set(each) for each in rows(parsed.good)] == [set(own)]
        values.append(bytes(row[0]))
    one = read(frame_of(spark, *values), "avro", url, topic=topic, strategy=strategy, record=f"Sale{topic[-1]}")
    assert rows(one.good) == [{"item": "tea"}]
    assert "Refund" in rows(one.bad)[0]["error"]


def test_protobuf(spark: SparkSession, client: RegistryClient, topic: str, registry_process: RunningRegistry) -> None:
    first = 'syntax = "proto3"; package p; message Sale { int32 id = 1; } message Other { int32 x = 1; }'
    second = first.replace("id = 1;", "id = 1; string item = 2;")
    ids = [client.register(f"{topic}-value", text, "PROTOBUF").schema_id for text in (first, second)]
    values = [id_prefix(ids[0]) + b"\x00\x08\x07", id_prefix(ids[1]) + b"\x00\x08\x08\x12\x03tea"]
    values.append(id_prefix(ids[0]) + b"\x02\x02\x08\x07")
    parsed = read(frame_of(spark, *values), "protobuf", registry_process.url, topic=topic)
    assert rows(parsed.good) == [{"id": 7, "item": ""}, {"id": 8, "item": "tea"}]
    assert "it is a `p.Other`" in rows(parsed.bad)[0]["error"]
    options = {"registry": registry_process.url, "topic": topic, "register": False}
    frame = spark.createDataFrame([(0, 9, "x")], "i INT, id INT, item STRING")
    written = to_format(frame, "protobuf", ["id", "item"], schema="registry", options=options)
    assert bytes(written.select("value").first()[0]) == id_prefix(ids[1]) + b"\x00\x08\x09\x12\x01x"  # type: ignore[index]
    by_guid = frame_of(spark, b"\x08\x07", headers=guid_header(client.latest(f"{topic}-value").guid) + b"\x00")
    assert rows(read(by_guid, "protobuf", registry_process.url, topic=topic).good) == [{"id": 7, "item": ""}]


def test_protobuf_merged(
    spark: SparkSession, client: RegistryClient, topic: str, registry_process: RunningRegistry
) -> None:
    """By number: a field that was dropped is there, one that a version does not have is null, a new name counts."""
    fields = (
        "int32 id = 1; string old = 2; int32 n = 3;",
        "int32 id = 1; int64 n = 3;",
        "int32 id = 1; int64 count = 3;",
    )
    texts = [f'syntax = "proto3"; message Sale {{ {each} }}' for each in fields]
    ids = [client.register(f"{topic}-value", text, "PROTOBUF").schema_id for text in texts]
    bodies = (b"\x08\x01\x12\x01x\x18\x05", b"\x08\x02\x18\x80\x80\x80\x80\x80\x01", b"\x08\x03")
    values = [id_prefix(number) + b"\x00" + body for number, body in zip(ids, bodies, strict=True)]
    client.call("PUT", f"/config/{topic}-value", body={"compatibility": "NONE"})
    later = client.register(f"{topic}-value", 'syntax = "proto3"; message Sale { string id = 1; }', "PROTOBUF")
    client.call("DELETE", f"/subjects/{topic}-value/versions/4")
    parsed = read(
        frame_of(spark, *values, id_prefix(later.schema_id) + b"\x00\x0a\x01x"),
        "protobuf", registry_process.url, topic=topic, columns="merged",
    )  # fmt: skip
    assert rows(parsed.good) == [
        {"id": 1, "count": 5, "old": "x"},
        {"id": 2, "count": 2**35, "old": None},
        {"id": 3, "count": 0, "old": None},
    ]
    assert "field 1 (`id`) cannot become `id`: it is string" in rows(parsed.bad)[0]["error"]


def test_protobuf_sinks_register(
    spark: SparkSession, client: RegistryClient, topic: str, registry_process: RunningRegistry, tmp_path: Path
) -> None:
    """What the columns are, with numbers that stay; or a file and what it imports."""
    url, subject = registry_process.url, f"{topic}-value"
    options = {"registry": url, "topic": topic, "record": "shop.Sale"}
    first = spark.createDataFrame([(0, "tea", [1])], "i INT, item STRING, n ARRAY<INT>").coalesce(1)
    one = to_format(first, "protobuf", ["item", "n"], schema="registry", options=options)
    assert client.versions(subject) == [1]
    assert "package shop;" in client.latest(subject).text
    to_format(first, "protobuf", ["n", "item"], schema="registry", options=options)
    assert client.versions(subject) == [1], "the same columns are the same version"
    second = spark.createDataFrame([(1, 2.5, "x")], "i INT, price DOUBLE, item STRING").coalesce(1)
    two = to_format(second, "protobuf", ["price", "item"], schema="registry", options=options)
    both = one.select("i", "value").unionByName(two.select("i", "value"))
    merged = read(both, "protobuf", url, topic=topic, columns="merged")
    assert rows(merged.good) == [
        {"price": None, "item": "tea", "n": [1]},
        {"price": 2.5, "item": "x", "n": None},
    ]
    (tmp_path / f"{topic}.proto").write_text('syntax = "proto3"; package c; message Money { int64 cents = 1; }')
    main = f'syntax = "proto3"; import "{topic}.proto"; message Bill {{ c.Money total = 4; }}'
    (tmp_path / "bill.proto").write_text(main)
    given = {"registry": url, "topic": f"{topic}-bill", "schema_file": "bill.proto", "framing": "header"}
    bills = spark.createDataFrame([(0, (5,))], "i INT, total STRUCT<cents: BIGINT>").coalesce(1)
    with pytest.raises(FormatProblem, match="not found"):
        to_format(
            bills, "protobuf", ["total"], schema="registry", options={**given, "register": False}, base_dir=tmp_path
        )
    written = to_format(bills, "protobuf", ["total"], schema="registry", options=given, base_dir=tmp_path)
    assert client.versions(f"{topic}.proto") == [1]
    parsed = read(written.select("i", "value", "headers"), "protobuf", url, topic=f"{topic}-bill")
    assert rows(parsed.good) == [{"total": {"cents": 5}}]


def test_keys(spark: SparkSession, client: RegistryClient, topic: str, registry_process: RunningRegistry) -> None:
    """The column `key` has the topic's other subject and a header of its own; a schema without fields is one column."""
    url = registry_process.url
    long = client.register(f"{topic}-key", '"long"')
    keys = frame_of(spark, id_prefix(long.schema_id) + b"\x0e", b"7", None).withColumnRenamed("value", "key")
    parsed = from_format(keys, "avro", "registry", column="key", options={"registry": url, "topic": topic})
    assert rows(parsed.good) == [{"key": 7}]
    assert ["no schema id" in row["error"] for row in rows(parsed.bad)] == [True, False]
    frame = spark.createDataFrame([(0, "a", 1)], "i INT, id STRING, n INT").coalesce(1)
    options = {"registry": url, "topic": f"{topic}2", "framing": "header"}
    with_key = to_format(frame, "avro", ["id"], schema="registry", options=options, column="key")
    both = to_format(with_key, "json", ["n"], schema="registry", options=options)
    assert client.get("/subjects", {"subjectPrefix": f"{topic}2"}) == [f"{topic}2-key", f"{topic}2-value"]
    (row,) = both.select("headers").collect()
    assert [header["key"] for header in row[0]] == [KEY_HEADER, VALUE_HEADER]
    key = from_format(both.select("i", "key", "headers"), "avro", "registry", column="key", options=options).good
    assert rows(key) == [{"id": "a"}]


def test_what_cannot_work_is_said(
    spark: SparkSession, client: RegistryClient, topic: str, registry_process: RunningRegistry
) -> None:
    frame = frame_of(spark, b"x")
    with pytest.raises(FormatProblem, match="say which `subject`"):
        read(frame, "avro", registry_process.url)
    with pytest.raises(FormatProblem, match="not found"):
        read(frame, "avro", registry_process.url, topic=topic)
    with pytest.raises(FormatProblem, match="no schema registry answers"):
        read(frame, "avro", "http://127.0.0.1:9", topic=topic)
    client.register(f"{topic}-value", order())
    numbers = spark.createDataFrame([(0, "x")], "i INT, id STRING")
    with pytest.raises(FormatProblem, match="incompatible"):
        to_format(
            numbers,
            "avro",
            ["id"],
            schema="registry",
            options={"registry": registry_process.url, "topic": topic, "record": "Order"},
        )


def test_from_a_topic(
    spark: SparkSession,
    broker: RunningBroker,
    client: RegistryClient,
    make_topic: MakeTopic,
    records: Records,
    registry_process: RunningRegistry,
) -> None:
    """Ten versions mixed in one topic, through Spark and back, exact."""
    topic = make_topic("evolving")
    fields: list[Any] = []
    values = []
    for number in range(10):
        text = order(*fields)
        made = client.register(f"{topic}-value", text)
        values += [avro(made.schema_id, text, {"id": 100 * number + each}) for each in range(20)]
        fields.append({"name": f"f{number}", "type": "int", "default": number})
    records.send(topic, values)
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    frame = spark.read.format("ottla").options(**options).option("includeHeaders", "true").load()
    good = read(frame, "avro", registry_process.url, topic=topic).good
    found = good.groupBy().agg(sf.count("*"), sf.sum("id"), sf.sum("f0"), sf.sum("f8")).first()
    assert tuple(found or ()) == (200, sum(100 * n + each for n in range(10) for each in range(20)), 0, 8 * 200)


def test_fields_alone_cost_nothing() -> None:
    same = json.loads(order(NOTE))
    assert fillings(same, same) == {}
    assert fillings(json.loads(order()), same) == {"note": "-"}
    assert fillings(same, json.loads(order())) == {}
    wider = json.loads(order().replace("int", "long"))
    assert fillings(json.loads(order()), wider) == {}
    assert fillings(wider, json.loads(order())) is None, "Avro's rules refuse it"
    assert fillings(json.loads(order()), json.loads(order(ITEMS))) is None, "a default that is no plain value"


def test_merging() -> None:
    both = merged([json.loads(order({"name": "a", "type": "int"})), json.loads(order({"name": "b", "type": "int"}))])
    assert [(field["name"], field["type"]) for field in both["fields"]] == [
        ("id", "int"), ("b", ["null", "int"]), ("a", ["null", "int"]),
    ]  # fmt: skip
    fastavro.parse_schema(both)
