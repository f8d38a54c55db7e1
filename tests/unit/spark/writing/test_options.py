"""The options of a write: what they become, and what is refused with which words."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.protocol.compression import Codec
from ottla.spark.errors import InvalidOption
from ottla.spark.writing.options import Delivery, WriteOptions, check_columns, parse_write_options
from ottla.spark.writing.transactions import default_prefix

SERVERS = {"kafka.bootstrap.servers": "h:1"}


BYTES, TEXT, INT, LONG = BinaryType(), StringType(), IntegerType(), LongType()


def parse(options: dict[str, str] | None = None, *, streaming: bool = True) -> WriteOptions:
    return parse_write_options(SERVERS | {"checkpointLocation": "/c"} | (options or {}), streaming=streaming)


def rows(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def headers(**fields: DataType) -> ArrayType:
    return ArrayType(rows(**fields))


def test_defaults() -> None:
    options = parse()
    assert options.delivery is Delivery.EXACTLY_ONCE
    assert options.topic is None
    assert options.prefix == default_prefix("/c")
    assert options.producer.client.bootstrap == "h:1"


def test_names_know_no_case_and_settings_go_to_the_producer() -> None:
    options = parse_write_options(
        {"KAFKA.Bootstrap.Servers": "h:1", "TOPIC": "t", "Delivery": "AT_LEAST_ONCE", "kafka.compression.type": "lz4"},
        streaming=True,
    )
    assert options.topic == "t"
    assert options.delivery is Delivery.AT_LEAST_ONCE
    assert options.prefix is None
    assert options.producer.compression.codec is Codec.LZ4


@pytest.mark.parametrize("name", ["transactionalIdPrefix", "kafka.transactional.id"])
def test_a_query_can_be_named(name: str) -> None:
    assert parse({name: "mine"}).prefix == "mine"
    assert parse({name: "mine"}, streaming=False).prefix == "mine"


def test_a_batch_job_needs_no_name() -> None:
    assert parse_write_options(SERVERS, streaming=False).prefix is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"topik": "t"}, "topik is not known for writing: did you mean topic"),
        ({"something": "t"}, "there are delivery, topic, transactionalIdPrefix and kafka"),
        ({"includeHeaders": "true"}, "headers are written where the rows have a column"),
        ({"path": "x"}, "use the option topic"),
        ({"subscribe": "x"}, "named by the option topic"),
        ({"delivery": "at_most_once"}, "exactly_once or at_least_once, not `at_most_once`"),
        ({"topic": "a b"}, "may only use letters"),
        ({"kafka.linger.ms": "1"}, r"kafka\.linger\.ms has no effect"),
        ({"kafka.acks": "1"}, r"kafka\.acks=1 cannot deliver exactly once"),
        ({"kafka.enable.idempotence": "false"}, "cannot deliver exactly once"),
        ({"transactionalIdPrefix": "a", "kafka.transactional.id": "b"}, "differ: keep one"),
        ({"transactionalIdPrefix": ""}, "1 to 200 bytes"),
        ({"transactionalIdPrefix": "ü" * 101}, "1 to 200 bytes"),
        ({"transactionalIdPrefix": "a", "delivery": "at_least_once"}, "uses no transactions"),
    ],
)
def test_refusals(options: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        parse(options)


def test_a_stream_without_a_name_that_it_keeps_is_refused() -> None:
    with pytest.raises(InvalidOption, match="set the option checkpointLocation"):
        parse_write_options(SERVERS, streaming=True)


def test_servers_are_wanted() -> None:
    with pytest.raises(InvalidOption, match=r"kafka\.bootstrap\.servers is missing"):
        parse_write_options({}, streaming=False)


@pytest.mark.parametrize(
    "columns",
    [
        rows(value=TEXT),
        rows(VALUE=BYTES, Key=TEXT),
        rows(key=BYTES, value=BYTES, topic=TEXT, partition=INT, headers=headers(key=TEXT, value=BYTES)),
        rows(key=BYTES, value=BYTES, topic=TEXT, partition=INT, offset=LONG, timestamp=TimestampType()),
    ],
)
def test_rows_that_can_be_written(columns: StructType) -> None:
    check_columns(columns, parse({"topic": "t"}))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (rows(key=TEXT), "no column `value`, only key"),
        (rows(value=INT), "`value` must be a string or binary, not int: cast it"),
        (rows(value=TEXT, key=LONG), "`key` must be a string or binary, not bigint"),
        (rows(value=TEXT, topic=INT), "`topic` must be a string, not int"),
        (rows(value=TEXT, partition=LONG), "`partition` must be an int, not bigint"),
        (rows(value=TEXT, headers=MapType(TEXT, TEXT)), "`headers` must be array"),
        (rows(value=TEXT, headers=headers(name=TEXT, value=BYTES)), "`headers` must be array"),
        (rows(value=TEXT, headers=headers(key=TEXT, value=TEXT)), "`headers` must be array"),
    ],
)
def test_rows_that_cannot(columns: StructType, words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        check_columns(columns, parse({"topic": "t"}))


def test_rows_must_know_where_they_go() -> None:
    with pytest.raises(InvalidOption, match="nothing says where the rows go"):
        check_columns(rows(value=TEXT), parse())
    check_columns(rows(value=TEXT, topic=TEXT), parse())
