"""Formats on real Spark: what comes back, what is bad and why, and that no bytes can stop a query."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType
from tests.few_examples import few_long_examples
from tests.spark.format_samples import (
    AVRO_SCHEMA,
    DATES,
    DOUBLES,
    INTS,
    LONGS,
    MOMENTS,
    ORDER,
    PRICES,
    TEXTS,
    avro_records,
    order_rows,
    shop_descriptors,
)

from ottla.spark.formats import protobuf_messages as messages
from ottla.spark.formats.api import from_format, parse, to_format
from ottla.spark.formats.avro_schemas import columns_of
from ottla.spark.formats.protobuf_shapes import columns_of_shape, shape_of
from ottla.spark.formats.spec import REGISTRY_HINT, TOMBSTONE_ERROR, FormatProblem, FormatSpec, interpreted
from ottla.spark.moments import in_utc

SCHEMA = (
    "id STRING, n INT, big BIGINT, amount DOUBLE, at TIMESTAMP, day DATE, price DECIMAL(10,2), flag BOOLEAN, "
    "raw BINARY, tags ARRAY<STRING>, place STRUCT<x: INT>, numbers MAP<STRING, INT>, local TIMESTAMP_NTZ"
)


def values(spark: SparkSession, *contents: bytes | None) -> DataFrame:
    rows = [(number, None if content is None else bytearray(content)) for number, content in enumerate(contents)]
    return spark.createDataFrame(rows, "i INT, value BINARY").coalesce(1)


def outcome(frame: DataFrame, spec: FormatSpec) -> list[Row]:
    """(error, parsed as JSON) of every row, in order."""
    parsed = parse(frame, spec)
    return parsed.select("i", "error", sf.to_json("parsed").alias("parsed")).orderBy("i").collect()


def json_rows() -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(
        TEXTS | st.none(),
        INTS,
        LONGS,
        st.floats(),
        MOMENTS,
        DATES,
        PRICES,
        st.booleans(),
        st.binary(max_size=8),
        st.lists(TEXTS, max_size=3),
        st.none() | st.tuples(INTS),
        st.dictionaries(TEXTS, INTS, max_size=3),
        st.datetimes(),
    )


def comes_back(written: DataFrame, spec: FormatSpec, original: DataFrame) -> None:
    """Every value is good and holds the row that it was made of. As text, because NaN is not equal to itself."""
    parsed = parse(written.select("value"), spec)
    assert [field.simpleString() for field in parsed.schema["parsed"].dataType] == [  # type: ignore[attr-defined]
        field.simpleString() for field in original.schema
    ]
    rows = parsed.select("error", "parsed").collect()
    assert {row.error for row in rows} <= {None}
    assert [_as_text(row.parsed) for row in rows] == [_as_text(row) for row in original.collect()]


def _as_text(row: Row) -> str:
    """Maps have no order, in protobuf least of all."""
    return json.dumps(row.asDict(recursive=True), default=repr, sort_keys=True)


@few_long_examples
@given(rows=st.lists(json_rows(), min_size=40, max_size=80), nulls=st.sampled_from(["omit", "write"]))
def test_json_comes_back_as_it_was(spark: SparkSession, rows: list[tuple[Any, ...]], nulls: str) -> None:
    frame = spark.createDataFrame(rows, SCHEMA).coalesce(1)
    comes_back(to_format(frame, "json", options={"nulls": nulls}), FormatSpec(name="json", schema=SCHEMA), frame)


@few_long_examples
@given(
    rows=st.lists(
        st.tuples(TEXTS.filter(bool) | st.none(), INTS, DOUBLES, MOMENTS, DATES, PRICES, st.booleans()),
        min_size=40,
        max_size=80,
    ),
    options=st.sampled_from([{}, {"separator": ";", "quote": "'"}]),
)
def test_csv_comes_back_as_it_was(spark: SparkSession, rows: list[tuple[Any, ...]], options: dict[str, str]) -> None:
    schema = "id STRING, n INT, amount DOUBLE, at TIMESTAMP, day DATE, price DECIMAL(10,2), flag BOOLEAN"
    frame = spark.createDataFrame(rows, schema).coalesce(1)
    comes_back(to_format(frame, "csv", options=options), FormatSpec(name="csv", schema=schema, options=options), frame)


@few_long_examples
@given(records=st.lists(avro_records(), min_size=30, max_size=60))
def test_avro_comes_back_as_it_was(spark: SparkSession, tmp_path_factory: Any, records: list[dict[str, Any]]) -> None:
    folder: Path = tmp_path_factory.mktemp("avro")
    (folder / "order.avsc").write_text(json.dumps(AVRO_SCHEMA))
    frame = spark.createDataFrame(records, columns_of(AVRO_SCHEMA)).coalesce(1)
    framing = {"framing": "confluent", "schema_id": 3}
    written = to_format(frame, "avro", schema="order.avsc", options=framing, base_dir=folder)
    reading = FormatSpec(name="avro", schema=json.dumps(AVRO_SCHEMA), options={"framing": "confluent"})
    comes_back(written, reading, frame)


@few_long_examples
@given(rows=st.lists(order_rows(), min_size=30, max_size=60))
def test_protobuf_comes_back_as_it_was(spark: SparkSession, tmp_path_factory: Any, rows: list[dict[str, Any]]) -> None:
    folder: Path = tmp_path_factory.mktemp("proto")
    (folder / "shop.desc").write_bytes(shop_descriptors())
    columns = columns_of_shape(shape_of(messages.find(shop_descriptors(), ORDER)))
    frame = spark.createDataFrame(rows, columns).coalesce(1)
    spec = FormatSpec(name="protobuf", schema="shop.desc", options={"message": ORDER}, base_dir=folder)
    written = to_format(frame, "protobuf", schema="shop.desc", options={"message": ORDER}, base_dir=folder)
    comes_back(written, spec, frame)


HOSTILE = [
    b"", b" ", b"\x00", b"\xff\xfe", b"\x00\x00\x00\x00\x01{}", b"[" * 5000, b'{"place":' * 2000,
    b'{"n":' + b"1" * 5000 + b"}", b'{"price":1e1000000000}', b'{"price":1e-1000000000}', b'{"amount":1e1000000000}',
    b'{"at":999999999999999999}', b"," * 30000, b'"' * 3001, b'{"id":"\\ud800"}', b"\xef\xbb\xbf{}", b"null", b"{}{}",
    b'{"id":"a"},"x":1', b'{"id":1}],"x":[1',
]  # fmt: skip


@few_long_examples
@given(contents=st.lists(st.binary(max_size=40) | TEXTS.map(str.encode) | st.sampled_from(HOSTILE), min_size=200))
def test_no_bytes_stop_a_query(spark: SparkSession, tmp_path_factory: Any, contents: list[bytes]) -> None:
    folder: Path = tmp_path_factory.mktemp("hostile")
    (folder / "shop.desc").write_bytes(shop_descriptors())
    flat = "id STRING, n INT, amount DOUBLE, at TIMESTAMP, day DATE, price DECIMAL(10,2)"
    frame = values(spark, *contents, *HOSTILE)
    for spec in (
        FormatSpec(name="json", schema=SCHEMA),
        FormatSpec(name="csv", schema=flat),
        FormatSpec(name="avro", schema=json.dumps(AVRO_SCHEMA)),
        FormatSpec(name="protobuf", schema="shop.desc", options={"message": ORDER}, base_dir=folder),
        FormatSpec(name="text"),
        FormatSpec(name="raw"),
    ):
        rows = parse(frame, spec).select(sf.col("parsed").isNull().alias("unread"), "error").collect()
        assert len(rows) == len(contents) + len(HOSTILE), spec.name
        assert all(row.unread == (row.error is not None) for row in rows), spec.name


JSON_CASES: Sequence[tuple[bytes, str | None]] = [
    (b'{"id":"a","n":1}', None),
    (b' {"n":null} \n', None),
    (b"{}", None),
    (b'{"unknown":1}', None),
    (b'{"id":5}', None),
    (b'{"n":"7"}', 'field `n`: "7" is not an INT'),
    (b'{"n":1.5,"flag":1}', "field `n`: 1.5 is not an INT; field `flag`: 1 is not a BOOLEAN"),
    (b'{"n":99999999999}', "field `n`: 99999999999 is not an INT"),
    (b'{"at":"soon"}', 'field `at`: "soon" is not a TIMESTAMP'),
    (b'{"place":{"x":"q"}}', 'field `place.x`: "q" is not an INT'),
    (b'{"place":5}', "field `place`: 5 is not a STRUCT<X:INT>"),
    (b'{"tags":5}', "field `tags`: 5 is not an ARRAY<STRING>"),
    (b'{"price":123456789.12}', "field `price`: 1.2345678912E8 is not a DECIMAL(10,2)"),
    (b'{"id":"a"} trailing', 'malformed JSON: {"id":"a"} trailing'),
    (b'{"id":"a"}}', 'malformed JSON: {"id":"a"}}'),
    (b'{"id":"a"}]', 'malformed JSON: {"id":"a"}]'),
    (b'{"id":"a"},"n":1', 'malformed JSON: {"id":"a"},"n":1'),
    (b'{"id":"a"}],"n":[1', 'malformed JSON: {"id":"a"}],"n":[1'),
    (b'{"id":"a"},"end":null},"in":{"row":{}', 'malformed JSON: {"id":"a"},"end":null},"in":{"row":{}'),
    (b'{"id":"a"},{"id":"b"}', "more than one JSON value"),
    (b'{"id":"a","n":1', 'malformed JSON: {"id":"a","n":1'),
    (b"{'id':'a'}", "malformed JSON: {'id':'a'}"),
    (b"[1]", "not a JSON object: [1]"),
    (b"null", "not a JSON object: null"),
    (b"", "the value is empty"),
    (b'{"id":"\xff"}', "the value is not UTF-8"),
    (b'\x00\x00\x00\x00\x07{"id":"a"}', REGISTRY_HINT),
]  # fmt: skip


def test_json_says_what_is_wrong_with_which_field(spark: SparkSession) -> None:
    schema = (
        "id STRING, n INT, flag BOOLEAN, at TIMESTAMP, place STRUCT<x: INT>, tags ARRAY<STRING>, price DECIMAL(10,2)"
    )
    rows = outcome(values(spark, *(content for content, _ in JSON_CASES)), FormatSpec(name="json", schema=schema))
    assert [(JSON_CASES[row.i][0], row.error) for row in rows] == list(JSON_CASES)
    assert all((row.parsed is None) == (row.error is not None) for row in rows)


def test_words_for_bad_values_are_no_part_of_the_code_that_spark_generates(spark: SparkSession) -> None:
    """It would be written anew in every task. Which expressions are compiled is Spark's affair, and changed before."""
    words = interpreted(
        sf.struct(sf.lit("{oops").alias("text")), lambda found: sf.concat(sf.lit("bad: "), found["text"])
    )
    frame = spark.range(1).select(words.alias("why"))
    assert frame.collect()[0]["why"] == "bad: {oops"
    jvm: Any = spark._jvm
    interprets = jvm.java.lang.Class.forName("org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback")
    of_array = frame._jdf.queryExecution().analyzed().projectList().apply(0).child()
    assert interprets.isInstance(of_array.children().apply(0)), of_array.toString()


def test_json_required_fields_and_milliseconds(spark: SparkSession) -> None:
    schema = StructType.fromDDL("id STRING NOT NULL, at TIMESTAMP, place STRUCT<x: INT NOT NULL>")
    assert isinstance(schema, StructType)
    contents = [b'{"id":"a"}', b'{"at":1}', b'{"id":"a","at":1700000000000}', b'{"id":"a","place":{}}']
    rows = outcome(values(spark, *contents), FormatSpec(name="json", schema=schema))
    assert rows[0].error is None
    assert rows[1].error == "field `id` is missing or null, and the schema says NOT NULL"
    assert "field `at` lies outside the years 1 to 9999" in rows[2].error
    assert rows[3].error == "field `place.x` is missing or null, and the schema says NOT NULL"


ODD = ["'a\0b", "\0", "\0;\0", "'\0\0'", "\uffff", "\uffff;", "a\uffffb'", "\ufdd0", "\ufdd1'"]
"""What Spark's parser drops, or what makes it read the line behind it wrongly, and what stands for that."""


@pytest.mark.parametrize("options", [{}, {"separator": ";", "quote": "'"}], ids=["comma", "semicolon"])
def test_csv_with_characters_that_its_parser_cannot_read(spark: SparkSession, options: dict[str, str]) -> None:
    written = [text.replace("'", options.get("quote", '"')) for text in ODD]
    schema = "first STRING, n INT, second STRING, raw BINARY"
    rows = [[(text, 1, text[::-1], text.encode()), ("'a;b,\"c", 2, "x", b"y")] for text in written]  # and a good one
    frame = spark.createDataFrame([row for both in rows for row in both], schema).coalesce(1)
    texts = frame.withColumn("raw", sf.col("raw").cast("string"))
    comes_back(to_format(texts, "csv", options=options), FormatSpec(name="csv", schema=schema, options=options), frame)


def test_csv_that_has_what_stands_for_such_characters_too_is_bad(spark: SparkSession) -> None:
    spec = FormatSpec(name="csv", schema="id STRING")
    ambiguous, good = outcome(values(spark, "a\0\ufdd1".encode(), b"b"), spec)
    assert ambiguous.error == "the value has U+0000 or U+FFFF, and U+FDD0 or U+FDD1, which stand for them"
    assert (good.error, good.parsed) == (None, '{"id":"b"}')


def test_csv_says_what_is_wrong_with_which_field(spark: SparkSession) -> None:
    cases = [
        (b"a,1,1.5", None),
        (b'"a ""x"", b",1,', None),
        (b"a,x,1.5", "field `n`: x is not an INT"),
        (b"a,1", "not 3 fields: a,1"),
        (b"a,1,2,3", "not 3 fields: a,1,2,3"),
        (b"", "the value is empty"),
        (b"\xff,1,1", "the value is not UTF-8"),
        (b"," * 30000, "not 3 fields: " + "," * 60 + "…"),
    ]
    spec = FormatSpec(name="csv", schema="id STRING, n INT, amount DOUBLE")
    rows = outcome(values(spark, *(content for content, _ in cases)), spec)
    assert [row.error for row in rows] == [error for _, error in cases]
    assert json.loads(rows[1].parsed) == {"id": 'a "x", b', "n": 1}


@pytest.mark.parametrize(
    ("name", "schema"), [("json", "id STRING"), ("csv", "id STRING"), ("avro", json.dumps(AVRO_SCHEMA)), ("text", None)]
)
def test_tombstones_are_rejected_kept_or_skipped(spark: SparkSession, name: str, schema: str | None) -> None:
    frame = values(spark, None)
    for choice, expected in (("reject", [(TOMBSTONE_ERROR, None)]), ("keep", [(None, None)]), ("skip", [])):
        spec = FormatSpec(name=name, schema=schema, options={"tombstones": choice})
        assert [(row.error, row.parsed) for row in outcome(frame, spec)] == expected, choice


def test_text_and_raw_are_one_column(spark: SparkSession) -> None:
    frame = values(spark, "ž".encode(), b"\xff", None)
    assert [(row.value) for row in from_format(frame, "text").good.collect()] == ["ž"]
    assert [row.error for row in from_format(frame, "text").bad.orderBy("i").collect()] == [
        "the value is not UTF-8",
        TOMBSTONE_ERROR,
    ]
    raw = from_format(frame, "raw").good.orderBy("i").collect()
    assert [row.value for row in raw] == ["ž".encode(), b"\xff", None]
    texts = spark.createDataFrame([("a", 1)], "name STRING, n INT")
    assert to_format(texts, "text", ["name"]).first()["value"] == b"a"  # type: ignore[index]
    with pytest.raises(FormatProblem, match="writes one column, and there are 2"):
        to_format(texts, "raw")
    with pytest.raises(FormatProblem, match="`n` is INT: cast it first"):
        to_format(texts, "text", ["n"])
    with pytest.raises(FormatProblem, match="`columns` names `gone`"):
        to_format(texts, "json", ["gone"])


def test_the_other_columns_stay_and_a_value_is_parsed_once(spark: SparkSession) -> None:
    frame = values(spark, b'{"id":"a"}', b"{").withColumn("key", sf.lit(b"k"))
    parsed = from_format(frame, "json", "id STRING")
    assert parsed.good.columns == ["i", "key", "id"]
    assert parsed.bad.columns == ["i", "value", "key", "error"]
    jvm_plan = parsed.good._jdf.queryExecution().executedPlan().toString()
    in_lambdas = jvm_plan.count("lambda")
    assert in_lambdas
    plan_without_lambdas = [line for line in jvm_plan.splitlines() if "lambda" not in line]
    assert sum(line.count("from_json(") for line in plan_without_lambdas) == 1


def test_json_written_by_others_in_their_patterns(spark: SparkSession) -> None:
    options = {"timestamp_format": "dd.MM.yyyy HH:mm", "date_format": "dd.MM.yyyy"}
    frame = values(spark, b'{"at":"05.02.2024 10:30","day":"05.02.2024"}', b'{"at":"2024-02-05T10:30:00Z"}')
    parsed = from_format(frame, "json", "at TIMESTAMP, day DATE", options=options)
    [good] = in_utc(parsed.good.collect(), parsed.good.schema)
    assert good.at == datetime(2024, 2, 5, 10, 30, tzinfo=UTC)
    assert parsed.bad.count() == 1
    written = to_format(parsed.good, "json", ["at", "day"], options=options)
    assert written.first()["value"] == b'{"at":"05.02.2024 10:30","day":"05.02.2024"}'  # type: ignore[index]
