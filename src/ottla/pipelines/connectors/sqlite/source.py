"""Reading SQLite. A file has one writer at a time, so numbers that grow are also committed in their order."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, DataType, DoubleType, LongType, StringType, StructType

from ottla.pipelines.connectors.options import from_spark
from ottla.pipelines.connectors.tables.following import FollowingReader
from ottla.pipelines.connectors.tables.increasing import Mark
from ottla.pipelines.errors import ConnectorProblem, FatalFailure, PipelineError
from ottla.spark.task_planned import planned_in_task

ROWS_AT_ONCE = 10_000
BUSY_TIMEOUT_S = 30.0


class SqliteReading(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    origin: str
    """A quoted table name, or a SELECT in parentheses."""
    increasing: str | None = None
    updated: str | None = None
    delay_s: float = 0.0
    max_rows: int | None = None


class Condition(InputPartition):
    def __init__(self, text: str, values: list[Any]) -> None:
        super().__init__((text, values))
        self.text = text
        self.values = values


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def explain(error: sqlite3.Error, path: str) -> PipelineError:
    said = str(error)
    where = f"SQLite file {path}"
    if "unable to open" in said:
        return FatalFailure(f"{where} cannot be opened: is the path right, and may this user read and write there?")
    if "locked" in said or "busy" in said:
        return ConnectorProblem(f"{where} is locked: another program has been writing for {BUSY_TIMEOUT_S:g} s")
    if "no such table" in said:
        return FatalFailure(f"{where}: {said}. Create the table, or set `create: true` on a sink")
    if "no such column" in said or "has no column" in said:
        return FatalFailure(f"{where}: {said}. Select only columns that the table has, or add the column to it")
    if "ON CONFLICT clause does not match" in said:
        return FatalFailure(f"{where}: upsert needs a primary key or unique index on exactly the columns of `keys`")
    if isinstance(error, sqlite3.IntegrityError):
        return FatalFailure(f"{where}: {said}. Filter such rows out, or use `mode: upsert` with `keys`")
    return ConnectorProblem(f"{where}: {said}")


def opened(path: str, *, write: bool = False) -> sqlite3.Connection:
    uri = f"{Path(path).as_uri()}?mode={'rwc' if write else 'ro'}"
    try:
        return sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)
    except sqlite3.Error as error:
        raise explain(error, path) from error


def declared_types(path: str, origin: str) -> dict[str, DataType]:
    """A table's columns by their declared types (SQLite's own rules of affinity); a query's as text."""
    with closing(opened(path)) as connection:
        try:
            names = [column[0] for column in connection.execute(f"SELECT * FROM {origin} LIMIT 0").description]  # noqa: S608
            info = [] if origin.startswith("(") else connection.execute(f"PRAGMA table_info({origin})").fetchall()
        except sqlite3.Error as error:
            raise explain(error, path) from error
    declared = {str(row[1]): str(row[2]).upper() for row in info}
    return {name: _affinity(declared.get(name, "")) for name in names}


def _affinity(declared: str) -> DataType:
    if "INT" in declared:
        return LongType()
    if any(word in declared for word in ("CHAR", "CLOB", "TEXT")):
        return StringType()
    if "BLOB" in declared:
        return BinaryType()
    if any(word in declared for word in ("REAL", "FLOA", "DOUB")):
        return DoubleType()
    return StringType()


class SqliteDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ottla_sqlite"

    def reader(self, schema: StructType) -> DataSourceReader:
        return planned_in_task(SqliteTableReader(from_spark(self.options, SqliteReading), schema), self.options)

    def streamReader(self, schema: StructType) -> "SqliteStreamReader":  # noqa: N802
        return SqliteStreamReader(from_spark(self.options, SqliteReading), schema)


class SqliteTableReader(DataSourceReader):
    def __init__(self, reading: SqliteReading, schema: StructType) -> None:
        self._reading = reading
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        return [Condition("true", [])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Condition)
        return read_rows(self._reading, self._schema, partition)


class SqliteStreamReader(FollowingReader):
    def __init__(self, reading: SqliteReading, schema: StructType) -> None:
        super().__init__(reading.max_rows)
        self._reading = reading
        self._schema = schema

    def _end(self, after: Mark, bound: Mark | None, max_rows: int | None) -> Mark:
        return next_mark(self._reading, after, bound, max_rows)

    def _parts(self, after: Mark, until: Mark) -> Sequence[InputPartition]:
        return [between(self._reading, after, until)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Condition)
        return read_rows(self._reading, self._schema, partition)


def _followed(reading: SqliteReading) -> list[str]:
    return [quoted(name) for name in (reading.updated, reading.increasing) if name is not None]


def _values(reading: SqliteReading, mark: Mark) -> list[Any]:
    pairs = ((mark.updated, reading.updated), (mark.id, reading.increasing))
    return [msgspec.json.decode(value or "null") for value, name in pairs if name is not None]


def between(reading: SqliteReading, after: Mark, until: Mark | None) -> Condition:
    names = ", ".join(_followed(reading))
    marks = ", ".join("?" for _ in _followed(reading))
    parts, values = ["true"], []
    if not after.is_start:
        parts.append(f"({names}) > ({marks})")
        values += _values(reading, after)
    if until is not None:
        parts.append(f"({names}) <= ({marks})")
        values += _values(reading, until)
    return Condition(" AND ".join(parts), values)


def next_mark(reading: SqliteReading, after: Mark, bound: Mark | None, max_rows: int | None) -> Mark:
    """The last row that may be read now; `after` itself if there is none."""
    condition = between(reading, after, bound)
    names = _followed(reading)
    where = f"{condition.text} AND {' AND '.join(f'{name} IS NOT NULL' for name in names)}"
    if reading.updated is not None:
        where += f" AND julianday({quoted(reading.updated)}) <= julianday('now', '-{reading.delay_s} seconds')"
    inner = f"SELECT {', '.join(names)} FROM {reading.origin} WHERE {where}"  # noqa: S608
    if max_rows is not None:
        inner += f" ORDER BY {', '.join(names)} LIMIT {max_rows}"
    statement = f"SELECT * FROM ({inner}) ORDER BY {', '.join(f'{name} DESC' for name in names)} LIMIT 1"  # noqa: S608
    with closing(opened(reading.path)) as connection:
        try:
            found = connection.execute(statement, condition.values).fetchone()
        except sqlite3.Error as error:
            raise explain(error, reading.path) from error
    if found is None:
        return after
    values = iter(found)
    updated = _text_mark(next(values), str(reading.updated)) if reading.updated else None
    increasing = _number_mark(next(values), str(reading.increasing)) if reading.increasing else None
    return Mark(updated=updated, id=increasing)


def _number_mark(value: Any, name: str) -> str:
    if not isinstance(value, int):
        raise FatalFailure(f"increasing: column {name} holds {value!r}; whole numbers can be followed")
    return msgspec.json.encode(value).decode()


def _text_mark(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise FatalFailure(
            f"updated: column {name} holds {value!r}; times as text (2026-01-31 12:00:00) can be followed"
        )
    return msgspec.json.encode(value).decode()


def read_rows(reading: SqliteReading, schema: StructType, condition: Condition) -> Iterator[pa.RecordBatch]:
    arrow = to_arrow_schema(schema, timezone="UTC", prefers_large_types=False)
    names = ", ".join(quoted(name) for name in arrow.names)
    with closing(opened(reading.path)) as connection:
        try:
            cursor = connection.execute(
                f"SELECT {names} FROM {reading.origin} WHERE {condition.text}",  # noqa: S608
                condition.values,
            )
            while rows := cursor.fetchmany(ROWS_AT_ONCE):
                columns = zip(*rows, strict=True)
                arrays = [_column(list(values), field) for values, field in zip(columns, arrow, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, schema=arrow)
        except sqlite3.Error as error:
            raise explain(error, reading.path) from error


def _column(values: list[Any], field: "pa.Field[Any]") -> "pa.Array[Any]":
    """SQLite lets any value be in any column: text takes all, the others must fit."""
    if pa.types.is_string(field.type):
        values = [value if value is None or isinstance(value, str) else _as_text(value) for value in values]
    elif pa.types.is_float64(field.type):
        values = [float(value) if isinstance(value, int) else value for value in values]
    try:
        made: pa.Array[Any] = pa.array(values, field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise FatalFailure(
            f"column {field.name} holds a value that is no {field.type} ({error}): give a `schema` with it as STRING"
        ) from error
    return made


def _as_text(value: Any) -> str:
    return value.decode("utf-8", errors="backslashreplace") if isinstance(value, bytes) else str(value)
