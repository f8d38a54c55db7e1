"""The options of a write: what they become, and what is refused with which words."""

import pytest
from pyspark.sql.types import StructType

from ottla.protocol.compression import Codec
from ottla.spark.errors import InvalidOption
from ottla.spark.transactions import default_prefix
from ottla.spark.write_options import Delivery, WriteOptions, check_columns, parse_write_options

SERVERS = {"kafka.bootstrap.servers": "h:1"}


def parse(streaming: bool = True, **options: str) -> WriteOptions:
    return parse_write_options(SERVERS | {"checkpointLocation": "/c"} | options, streaming=streaming)


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
    assert parse(**{name: "mine"}).prefix == "mine"
    assert parse(streaming=False, **{name: "mine"}).prefix == "mine"


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
        parse(**options)


def test_a_stream_without_a_name_that_it_keeps_is_refused() -> None:
    with pytest.raises(InvalidOption, match="set the option checkpointLocation"):
        parse_write_options(SERVERS, streaming=True)


def test_servers_are_wanted() -> None:
    with pytest.raises(InvalidOption, match=r"kafka\.bootstrap\.servers is missing"):
        parse_write_options({}, streaming=False)


@pytest.mark.parametrize(
    "columns",
    [
        "value string",
        "VALUE binary, Key string",
        "key binary, value binary, topic string, partition int, headers array<struct<key:string,value:binary>>",
        "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int",
    ],
)
def test_rows_that_can_be_written(columns: str) -> None:
    check_columns(StructType.fromDDL(columns), parse(topic="t"))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("key string", "no column `value`, only key"),
        ("value int", "`value` must be a string or binary, not int: cast it"),
        ("value string, key long", "`key` must be a string or binary, not bigint"),
        ("value string, topic int", "`topic` must be a string, not int"),
        ("value string, partition long", "`partition` must be an int, not bigint"),
        ("value string, headers map<string,string>", "`headers` must be array"),
        ("value string, headers array<struct<name:string,value:binary>>", "`headers` must be array"),
        ("value string, headers array<struct<key:string,value:string>>", "`headers` must be array"),
    ],
)
def test_rows_that_cannot(columns: str, words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        check_columns(StructType.fromDDL(columns), parse(topic="t"))


def test_rows_must_know_where_they_go() -> None:
    with pytest.raises(InvalidOption, match="nothing says where the rows go"):
        check_columns(StructType.fromDDL("value string"), parse())
    check_columns(StructType.fromDDL("value string, topic string"), parse())
