"""JSON that the kernel reads is what Spark reads of it: rows, errors and all, for whatever bytes come."""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from ottla.spark import plain_json
from ottla.spark.formats.api import parse
from ottla.spark.formats.spec import FormatSpec
from ottla.spark.kernel.json_columns import read_objects
from ottla.spark.kernel.native import LIBRARY, NativeKernel

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="there is no compiled kernel here: Spark reads all JSON")

SCHEMA = (
    "id STRING, n INT, big BIGINT, amount DOUBLE, flag BOOLEAN, at TIMESTAMP, day DATE, "
    "place STRUCT<x: INT, name: STRING NOT NULL, inner: STRUCT<deep: BOOLEAN>>, must STRING NOT NULL"
)
SEED, VALUES = 20261118, 12_000


def _schema(text: str) -> StructType:
    schema = StructType.fromDDL(text)
    assert isinstance(schema, StructType)
    return schema


NUMBERS = (
    "0", "-0", "0.0", "-0.0", "1", "-1", "01", "+1", "1.", ".5", "1.5", "-2.25", "0.1", "0.30000000000000004", "1e3",
    "1E+2",
    "1e-7", "5e-324", "1.7976931348623157e308", "1e309", "123456789012345678", "1234567890123456789",
    "9007199254740993",
    "2147483647", "2147483648", "-2147483648", "-2147483649", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "0.00001", "123456.789e-3", "1e22", "1e23", "99999999999999999999", "NaN", "Infinity",
    "0x10",
    "1_000", "00", "-", "1e", "12345678901234567e5",
)  # fmt: skip
TEXTS = (
    "", "plain", "with space", "é", "日本", "\U0001f600", "quote\"d", "back\\slash", "line\nbreak", "tab\t", "\x00",
    "\x7f", "a/b", "null",
    "1", "true", " ", "\u2028", "{}", "\ufeff",
)  # fmt: skip
RAW_TEXTS = (
    rb'"\u0041"', rb'"\u00e9\u20AC"', rb'"\ud83d\ude00"', rb'"\ud83d"', rb'"\ude00"', rb'"\ud83dx"', rb'"\u00"',
    rb'"\uD83D\u0041"', rb'"\/"',
    rb'"\a"', b'"\xff"', b'"\xc3"', b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'"\xc0\x80"', b'"a\x01b"', b"'single'",
    b'"open', b"bare",
)  # fmt: skip
MOMENTS = (
    "2026-01-31T12:00:00Z", "2026-01-31 12:00:00Z", "2026-01-31T12:00:00.1Z", "2026-01-31T12:00:00.123456Z",
    "2026-01-31T12:00:00.1234567Z", "2026-01-31T12:00:00+01:00", "2026-01-31T12:00:00-17:59",
    "2026-01-31T12:00:00+18:00",
    "2026-01-31T12:00:00+19:00", "2026-01-31T12:00:00", "2026-01-31", "2026-02-29T00:00:00Z", "2024-02-29T23:59:59Z",
    "1900-02-29T00:00:00Z", "2000-02-29T00:00:00Z", "1600-01-01T00:00:00Z", "1599-12-31T23:59:59Z",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59-10:00", "2026-01-31T24:00:00Z", "2026-01-31T12:60:00Z",
    "2026-01-31T12:00:60Z",
    "2026-13-01T00:00:00Z", "2026-1-1T1:2:3Z", "2026-01-31T12:00:00z", "2026-01-31T12:00:00.Z",
    " 2026-01-31T12:00:00Z", "12026-01-31T12:00:00Z",
    "2026-01-31T12:00:00 UTC", "2026-01-31T12:00Z", "1970-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z", "now", "",
)  # fmt: skip
DATES = (
    "2026-01-31", "2024-02-29", "2026-02-29", "1600-01-01", "1582-10-10", "0001-01-01", "9999-12-31", "2026-1-5",
    "2026-01",
    "2026-01-31T00:00:00", "20260131", "+2026-01-31", "2026-01-32", "",
)  # fmt: skip


class Making:
    """Objects that are mostly good, by a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def values(self, count: int) -> Iterator[bytes | None]:
        yield None
        yield from (
            b"",
            b" ",
            b"{}",
            b"{} ",
            b" \n{}\t",
            b"{}{}",
            b"{} 1",
            b"[]",
            b"null",
            b"1",
            b'"x"',
            b"{",
            b"}",
            b"{,}",
            b'{"id":"a",}',
        )
        yield from (
            b'\xef\xbb\xbf{"must":"bom"}',
            b'{"must":"a"}\x00',
            b'{"must":"a","must":"b"}',
            b'{"MUST":"a"}',
            rb'{"m\u0075st":"a"}',
        )
        yield from (
            b'{"must":"m","x":' + b"[" * depth + b"]" * depth + b"}" for depth in (1, 63, 64, 65, 66, 200, 1001)
        )
        yield b'{"must":"m","id":"' + b"x" * 2_000_000 + b'"}'
        yield b'{"must":"m","' + b"n" * 5_000 + b'":1}'
        for _ in range(count):
            yield self._mutated(self._object(self._fields()))

    def _fields(self) -> dict[str, Callable[[], bytes]]:
        return {
            "id": self._text,
            "n": self._int,
            "big": self._int,
            "amount": self._double,
            "flag": lambda: self._one_of(
                (b"true", b"false") if self._random.random() < 0.97 else (b"True", b"1", b'"true"')
            ),
            "at": lambda: self._quoted(MOMENTS),
            "day": lambda: self._quoted(DATES),
            "place": lambda: self._object(
                {"x": self._int, "name": self._text, "inner": lambda: self._object({"deep": lambda: b"true"})}
            ),
            "must": self._text,
            "unknown": self._anything,
        }

    def _object(self, fields: dict[str, Callable[[], bytes]]) -> bytes:
        names = [name for name in fields if self._random.random() < 0.75 or name in ("must", "name")]
        if self._random.random() < 0.2:
            self._random.shuffle(names)
        if names and self._random.random() < 0.02:
            names.append(self._random.choice(names))
        space = self._one_of((b"", b"", b" ", b"\n  "))
        entries = (b'"%s":%s%s' % (name.encode(), space, self._rarely_null(fields[name])) for name in names)
        return b"{" + (b"," + space).join(entries) + b"}"

    def _rarely_null(self, make: Callable[[], bytes]) -> bytes:
        return b"null" if self._random.random() < 0.05 else make()

    def _text(self) -> bytes:
        if self._random.random() < 0.03:
            return self._one_of(RAW_TEXTS)
        if self._random.random() < 0.03:
            return self._anything()
        text = self._random.choice(TEXTS)
        return json.dumps(text, ensure_ascii=self._random.random() < 0.5).encode()

    def _int(self) -> bytes:
        if self._random.random() < 0.97:
            return str(self._random.randint(-1000, 1000)).encode()
        return self._random.choice(NUMBERS).encode()

    def _double(self) -> bytes:
        if self._random.random() < 0.9:
            return repr(round(self._random.uniform(-1e6, 1e6), self._random.randrange(12))).encode()
        return self._random.choice(NUMBERS).encode()

    def _quoted(self, texts: tuple[str, ...]) -> bytes:
        if self._random.random() < 0.03:
            return self._int()
        return json.dumps(texts[0] if self._random.random() < 0.9 else self._random.choice(texts)).encode()

    def _anything(self) -> bytes:
        if self._random.random() < 0.95:
            return self._one_of((b"[]", b"[1, 2.5, [null]]", b'{"a":{"b":[{}]}}', b"true", b"-1.5e10", b'"\\u00ff"'))
        return self._one_of((b"[1,]", b"{1:2}", b"nul", b'{"a" 1}'))

    def _one_of(self, options: tuple[bytes, ...]) -> bytes:
        return self._random.choice(options)

    def _mutated(self, value: bytes) -> bytes:
        if self._random.random() < 0.9:
            return value
        at = self._random.randrange(len(value))
        if self._random.random() < 0.5:
            return value[:at]
        return value[:at] + bytes([self._random.randrange(256)]) + value[at + self._random.randrange(2) :]


def frame_with_plain(spark: SparkSession, values: list[bytes | None], schema: StructType) -> tuple[DataFrame, int]:
    """Values with what the kernel read of them, as a source would hand them over, and how many it read."""
    _, fields = plain_json.taken(plain_json.written(schema))
    column = pa.array(values, pa.binary())
    plain = read_objects(NativeKernel(), column, fields)
    table = pa.table({"i": pa.array(range(len(values)), pa.int32()), "value": column, plain_json.PLAIN: plain})
    return spark.createDataFrame(table), len(values) - plain.null_count


def read_in_both_ways(spark: SparkSession, frame: DataFrame, spec: FormatSpec) -> tuple[list[Any], list[Any]]:
    def read(some: DataFrame) -> list[Any]:
        return (
            parse(some, spec).select("i", "error", sf.col("parsed").cast("string").alias("row")).orderBy("i").collect()
        )

    return read(frame), read(frame.drop(plain_json.PLAIN))


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_what_the_kernel_reads_is_what_spark_reads(spark: SparkSession, zone: str) -> None:
    values = list(Making(SEED).values(VALUES if zone == "UTC" else 2_000))
    spec = FormatSpec(name="json", schema=SCHEMA)
    before = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame, plain = frame_with_plain(spark, values, _schema(SCHEMA))
        with_kernel, without = read_in_both_ways(spark, frame, spec)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert [row for row in with_kernel if row.error is None][:1], "some are good"
    assert len(values) * 0.2 < plain < len(values) * 0.8, "the kernel reads some, and leaves some"
    differing = [
        (values[mine.i][:300] if values[mine.i] else None, mine, theirs)
        for mine, theirs in zip(with_kernel, without, strict=True)
        if mine != theirs
    ]
    assert not differing, differing[:5]


@pytest.mark.parametrize("tombstones", ["reject", "keep", "skip"])
def test_tombstones_are_the_formats_business(spark: SparkSession, tombstones: str) -> None:
    schema = "id STRING"
    frame, plain = frame_with_plain(spark, [None, b'{"id":"a"}', b"bad"], _schema(schema))
    spec = FormatSpec(name="json", schema=schema, options={"tombstones": tombstones})
    with_kernel, without = read_in_both_ways(spark, frame, spec)
    assert plain == 1
    assert with_kernel == without
    assert len(with_kernel) == (2 if tombstones == "skip" else 3)


def test_a_key_of_json_leaves_what_was_read_of_the_value(spark: SparkSession) -> None:
    frame, _ = frame_with_plain(spark, [b'{"id":"a"}'], _schema("id STRING"))
    with_key = frame.withColumn("key", sf.lit('{"k":1}').cast("binary"))
    read = parse(with_key, FormatSpec(name="json", schema="k INT"), "key")
    assert plain_json.PLAIN in read.columns
    assert read.select("parsed.k", f"{plain_json.PLAIN}.id").collect() == [(1, "a")]


@pytest.mark.parametrize(
    "schema",
    [
        "d DECIMAL(10,2)",
        "f FLOAT",
        "s SMALLINT",
        "a ARRAY<INT>",
        "m MAP<STRING,INT>",
        "t TIMESTAMP_NTZ",
        "v VARCHAR(3)",
    ],
)
def test_types_that_want_more_than_a_plain_look_are_left_to_spark(spark: SparkSession, schema: str) -> None:
    assert plain_json.written(_schema(f"id STRING, {schema}")) == {}
    assert plain_json.written(_schema(f"o STRUCT<{schema.replace(' ', ': ', 1)}>")) == {}
