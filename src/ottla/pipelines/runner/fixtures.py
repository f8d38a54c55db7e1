"""Fixtures of a pipeline's tests as frames: what a source has, and what a sink is expected to get.

orders: fixtures/orders.jsonl         each line is the value of a record, as a producer would send it
orders: fixtures/orders.csv           or .parquet: rows, written in the source's format and read again
orders: [{id: a, amount: 1}, "{oops"] the same inline: rows and texts
orders: {records: FILE or LIST}       whole records: {"key": ..., "value": ..., "headers": {...}, "timestamp": ...}
orders: {rows: FILE or LIST, schema: "id STRING, at TIMESTAMP"}
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from ottla.pipelines.errors import FatalFailure
from ottla.pipelines.parts import KeyReading, Reading, SourcePart
from ottla.spark.formats.api import encode, encode_key
from ottla.spark.formats.registry_format import REGISTRY
from ottla.spark.formats.spec import FormatSpec
from ottla.spark.headers import HEADERS
from ottla.spark.source import ROW

LINES = (".jsonl", ".json", ".txt")
_TEXTS = ("json", "text", "raw", "csv")
_TIME = datetime(2026, 1, 1, tzinfo=UTC)


def source_frame(spark: SparkSession, part: SourcePart, given: Any, base_dir: Path) -> DataFrame:
    """What the source would have read: records where it reads records, rows where it has columns."""
    rows_schema: str | None = None
    if isinstance(given, Mapping):
        unknown = set(given) - {"records", "rows", "schema"}
        if unknown or len({"records", "rows"} & set(given)) != 1:
            raise FatalFailure(f"given.{part.name}: write a file, a list, {{records: ...}} or {{rows: ...}}")
        rows_schema = given.get("schema")
        if "records" in given:
            if part.reading is None:
                raise FatalFailure(f"given.{part.name}: source `{part.kind}` has columns: give it rows")
            whole = [_whole(item) for item in _items(given["records"], base_dir)]
            return _records(spark, part, _in_formats(spark, part, whole, base_dir))
        given = given["rows"]
    if part.reading is None:
        return _rows(spark, given, rows_schema, base_dir)
    if rows_schema is None and _is_text(given, part.reading):
        values = [_value(item) for item in _items(given, base_dir)]
        return _records(spark, part, _numbered(part, values))
    return _encoded(_rows(spark, given, rows_schema or _struct(part.reading), base_dir), part, base_dir)


def _is_text(given: Any, reading: Reading) -> bool:
    """Its items are values as they are, or JSON of them."""
    if reading.schema == REGISTRY:  # a text has no schema's id, so rows are written with the latest
        return isinstance(given, list) and bool(given) and all(isinstance(item, str) for item in given)
    if isinstance(given, list):
        return reading.format in ("json", "text", "raw") or all(isinstance(item, str) for item in given)
    return reading.format in _TEXTS and (Path(given).suffix in LINES or Path(given).suffix == f".{reading.format}")


def _struct(reading: Reading) -> str | None:
    return reading.schema if reading.format in ("json", "csv") and reading.schema != REGISTRY else None


def _items(given: Any, base_dir: Path) -> list[Any]:
    if isinstance(given, list):
        return given
    return [line for line in read_file(base_dir / given).splitlines() if line.strip()]


def read_file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise FatalFailure(f"fixture {path} cannot be read: {reason}") from None


def _value(item: Any) -> str | None:
    return item if isinstance(item, str) or item is None else json.dumps(item)


def _whole(item: Any) -> dict[str, Any]:
    record = json.loads(item) if isinstance(item, str) else item
    if not isinstance(record, dict) or set(record) - {"key", "value", "headers", "timestamp"}:
        raise FatalFailure(f"a record is {{key, value, headers, timestamp}}, not {item}")
    return record


def _records(spark: SparkSession, part: SourcePart, records: list[dict[str, Any]]) -> DataFrame:
    topic = part.entry.get("topic")
    schema = StructType([*ROW.fields, StructField("headers", HEADERS)])
    rows = [
        (
            _bytes(record.get("key")),
            _bytes(record.get("value")),
            topic if isinstance(topic, str) else part.name,
            0,
            number,
            _moment(record.get("timestamp")),
            0,
            [(name, _bytes(value)) for name, value in (record.get("headers") or {}).items()],
        )
        for number, record in enumerate(records)
    ]
    return spark.createDataFrame(rows, schema)


def _bytes(value: Any) -> bytearray | None:
    if value is None or isinstance(value, bytearray):
        return value
    return bytearray(value if isinstance(value, bytes) else str(value).encode())


def _moment(value: Any) -> datetime:
    if value is None:
        return _TIME
    moment = datetime.fromisoformat(value)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _rows(spark: SparkSession, given: Any, schema: str | None, base_dir: Path) -> DataFrame:
    if isinstance(given, list):
        return _json_rows(spark, [json.dumps(item) for item in given], schema)
    path = base_dir / given
    if path.suffix in (".jsonl", ".json"):
        return _json_rows(spark, _items(given, base_dir), schema)
    if not path.exists():
        raise FatalFailure(f"fixture {path} is not there")
    reader = spark.read.schema(schema) if schema else spark.read
    if path.suffix == ".csv":
        return reader.option("header", "true").option("inferSchema", str(schema is None)).csv(str(path))
    if path.suffix == ".parquet":
        return reader.parquet(str(path))
    raise FatalFailure(f"fixture {path}: write .jsonl, .csv or .parquet")


def _json_rows(spark: SparkSession, lines: list[str], schema: str | None) -> DataFrame:
    reader = spark.read.schema(schema) if schema else spark.read
    return reader.json(spark.sparkContext.parallelize(lines, 1))


def _encoded(rows: DataFrame, part: SourcePart, base_dir: Path) -> DataFrame:
    """Rows in the source's own format, so that what a test runs is what a record would go through."""
    assert part.reading is not None
    reading = part.reading
    values = [row[0] for row in rows.select(encode(rows, _writing(reading, base_dir))).collect()]
    return _records(rows.sparkSession, part, _numbered(part, values))


def _numbered(part: SourcePart, values: list[Any]) -> list[dict[str, Any]]:
    """Values that were given alone have their number as key, unless keys have a format that a number may not have."""
    plain = part.reading is None or part.reading.key is None
    return [{"key": str(number) if plain else None, "value": value} for number, value in enumerate(values)]


def _in_formats(
    spark: SparkSession, part: SourcePart, records: list[dict[str, Any]], base_dir: Path
) -> list[dict[str, Any]]:
    """Whole records with values and keys in the source's formats."""
    assert part.reading is not None
    values = _in_format(spark, part.reading, [record.get("value") for record in records], base_dir)
    keys = [record.get("key") for record in records]
    if part.reading.key is not None:
        keys = _in_format(spark, part.reading.key, keys, base_dir)
    return [{**record, "key": key, "value": value} for record, key, value in zip(records, keys, values, strict=True)]


def _in_format(spark: SparkSession, reading: Reading | KeyReading, given: list[Any], base_dir: Path) -> list[Any]:
    """Texts as they are, others as JSON; where records are no text, what it is there."""
    if reading.format in _TEXTS and reading.schema != REGISTRY:
        return [_value(each) for each in given]
    rows = _json_rows(spark, [json.dumps({"it": None if isinstance(each, str) else each}) for each in given], None)
    if "it" not in rows.columns:  # nothing but texts, which are bad records there, and nulls
        return given
    written = rows.select(encode_key(rows, _writing(reading, base_dir), "it")).collect()
    return [each if isinstance(each, str) else row[0] for each, row in zip(given, written, strict=True)]


def _writing(reading: Reading | KeyReading, base_dir: Path) -> FormatSpec:
    """A test registers no schema: what it writes has the latest there is."""
    options = {**reading.options, "register": False} if reading.schema == REGISTRY else reading.options
    return FormatSpec(name=reading.format, schema=reading.schema, options=options, base_dir=base_dir)
