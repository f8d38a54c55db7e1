"""SQLite files: a table or a query as a source, a table as a sink. The driver writes, in one transaction per batch."""

import itertools
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, ClassVar, Literal, cast

from msgspec import Meta
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from ottla.pipelines.connectors.base import Batch, SourceContext, Written
from ottla.pipelines.connectors.moments import Reached, unwatched
from ottla.pipelines.connectors.options import ConnectorOptions, to_spark, upsert_problems
from ottla.pipelines.connectors.paths import local_path, path_problems
from ottla.pipelines.connectors.sqlite.source import (
    SqliteDataSource,
    SqliteReading,
    declared_types,
    explain,
    opened,
    quoted,
)
from ottla.pipelines.connectors.tables.following import following_problems, require_followed
from ottla.pipelines.durations import seconds_of
from ottla.spark.task_planned import task_options

DELAY = "1 second"
ROWS_AT_ONCE = 5_000
_TIME = "yyyy-MM-dd HH:mm:ss.SSSSSS"


class SqliteSourceOptions(ConnectorOptions, frozen=True, kw_only=True):
    sqlite: Annotated[str, Meta(description="The database file")]
    table: Annotated[str | None, Meta(description="The table; this or `query`")] = None
    query: Annotated[str | None, Meta(description="A SELECT to read instead of a table")] = None
    schema: Annotated[
        str | None, Meta(description="The columns with Spark's types; by default those that the table declares")
    ] = None
    increasing: Annotated[
        str | None, Meta(description="A stream follows this column: whole numbers that only grow, such as an id")
    ] = None
    updated: Annotated[
        str | None,
        Meta(description="A stream follows this time of the last change, as text; with `increasing` for equal times"),
    ] = None
    delay: Annotated[str, Meta(description="With `updated`: rows younger than this wait")] = DELAY


class SqliteSource:
    """Followed by a column that grows, or read as a whole; one task reads."""

    KIND: ClassVar[str] = "sqlite"
    Options: ClassVar[type[SqliteSourceOptions]] = SqliteSourceOptions
    RAW: ClassVar[bool] = False

    def __init__(self, options: SqliteSourceOptions) -> None:
        self.options = options

    def problems(self) -> list[str]:
        options = self.options
        return path_problems("sqlite", options.sqlite) + following_problems(options, DELAY)

    def stream(self, context: SourceContext) -> DataFrame:
        require_followed(self.options, context, "SQLite")
        reading, carried, wanted = self._reading(context)
        reader = context.spark.readStream.format(_registered(context)).schema(carried)
        return _cast(reader.options(**to_spark(reading)).load(), wanted)

    def table(self, context: SourceContext) -> DataFrame:
        reading, carried, wanted = self._reading(context)
        reader = context.spark.read.format(_registered(context)).schema(carried)
        return _cast(reader.options(**to_spark(reading), **task_options(fresh=context.fresh)).load(), wanted)

    def _reading(self, context: SourceContext) -> tuple[SqliteReading, StructType, StructType]:
        options = self.options
        origin = quoted(options.table) if options.table is not None else f"({options.query})"
        path = str(local_path(options.sqlite, context.base_dir))
        reading = SqliteReading(
            path=path,
            origin=origin,
            increasing=options.increasing,
            updated=options.updated,
            delay_s=seconds_of(options.delay),
            max_rows=context.max_records,
        )
        if options.schema is not None:
            wanted = cast("StructType", StructType.fromDDL(options.schema))
        else:
            wanted = StructType([StructField(*column) for column in declared_types(path, origin).items()])
        carried = StructType([StructField(field.name, _carried(field.dataType)) for field in wanted.fields])
        return reading, carried, wanted


def _registered(context: SourceContext) -> str:
    context.spark.dataSource.register(SqliteDataSource)
    return SqliteDataSource.name()


def _carried(kind: DataType) -> DataType:
    """What SQLite itself has; the rest travels as text and is cast by Spark."""
    if isinstance(kind, IntegralType | BooleanType):
        return LongType()
    if isinstance(kind, FloatType | DoubleType):
        return DoubleType()
    return kind if isinstance(kind, BinaryType) else StringType()


def _cast(frame: DataFrame, wanted: StructType) -> DataFrame:
    return frame.select(*[sql.col(f"`{field.name}`").cast(field.dataType).alias(field.name) for field in wanted.fields])


class SqliteSinkOptions(ConnectorOptions, frozen=True, kw_only=True):
    sqlite: Annotated[str, Meta(description="The database file; it is made if it is not there")]
    table: Annotated[str, Meta(description="The table")]
    mode: Annotated[
        Literal["insert", "upsert"], Meta(description="`upsert` replaces the row that has the same `keys`")
    ] = "insert"
    keys: Annotated[tuple[str, ...], Meta(description="With upsert: the columns of a primary key or unique index")] = ()
    create: Annotated[bool, Meta(description="Create the table if it is not there, with `keys` as primary key")] = False


class SqliteSink:
    """Exactly once: the batch's id is kept in the same transaction as its rows, in `_ottla_batches`.

    The driver alone writes, fetching one partition after the other; tasks that are retried change nothing. Until the
    batch is complete, other writers of the file wait.
    """

    KIND: ClassVar[str] = "sqlite"
    Options: ClassVar[type[SqliteSinkOptions]] = SqliteSinkOptions
    VERSIONED: ClassVar[tuple[str, str]] = ("table", "{}_{version}")

    def __init__(self, options: SqliteSinkOptions) -> None:
        self.options = options

    def problems(self) -> list[str]:
        options = self.options
        return [*path_problems("sqlite", options.sqlite), *upsert_problems(options.mode, options.keys)]

    def write(self, frame: DataFrame, batch: Batch) -> Written:
        path: Path = local_path(self.options.sqlite, batch.base_dir)
        path.parent.mkdir(parents=True, exist_ok=True)
        return write_batch(frame, batch, str(path), self.options)


def write_batch(
    frame: DataFrame,
    batch: Batch,
    path: str,
    options: SqliteSinkOptions,
    reached: Reached = unwatched,
) -> Written:
    values = frame.select(*[_stored(field.name, field.dataType) for field in frame.schema.fields])
    with closing(opened(path, write=True)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
            if _last_batch(connection, batch) >= batch.id:
                return Written(rows=None, already_there=True)
            if options.create:
                connection.execute(_create_statement(frame.schema, options))
            statement = _insert_statement(frame.columns, options)
            rows, taken = 0, values.toLocalIterator(prefetchPartitions=True)
            while some := list(itertools.islice(taken, ROWS_AT_ONCE)):
                connection.executemany(statement, some)
                rows += len(some)
                reached("inserted some")
            connection.execute(
                "UPDATE _ottla_batches SET batch_id = ? WHERE query = ? AND sink = ?",
                [batch.id, batch.query, batch.sink],
            )
            reached("inserted")
            connection.execute("COMMIT")
            reached("committed")
        except sqlite3.Error as error:
            raise explain(error, path) from error
    return Written(rows=rows)


def _last_batch(connection: sqlite3.Connection, batch: Batch) -> int:
    connection.execute(
        "CREATE TABLE IF NOT EXISTS _ottla_batches"
        " (query TEXT, sink TEXT, batch_id INTEGER NOT NULL, PRIMARY KEY (query, sink))"
    )
    who = [batch.query, batch.sink]
    connection.execute("INSERT OR IGNORE INTO _ottla_batches VALUES (?, ?, -1)", who)
    found = connection.execute("SELECT batch_id FROM _ottla_batches WHERE query = ? AND sink = ?", who).fetchone()
    return int(found[0])


def _create_statement(schema: StructType, options: SqliteSinkOptions) -> str:
    parts = [f"{quoted(field.name)} {_declared(field.dataType)}" for field in schema.fields]
    if options.keys:
        parts.append(f"PRIMARY KEY ({_names(options.keys)})")
    return f"CREATE TABLE IF NOT EXISTS {quoted(options.table)} ({', '.join(parts)})"


def _insert_statement(columns: Sequence[str], options: SqliteSinkOptions) -> str:
    marks = ", ".join("?" for _ in columns)
    statement = f"INSERT INTO {quoted(options.table)} ({_names(columns)}) VALUES ({marks})"  # noqa: S608
    if options.mode == "insert":
        return statement
    rest = [quoted(column) for column in columns if column not in options.keys]
    change = f"UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in rest)}" if rest else "NOTHING"
    return f"{statement} ON CONFLICT ({_names(options.keys)}) DO {change}"


def _names(columns: Sequence[str]) -> str:
    return ", ".join(quoted(column) for column in columns)


def _declared(kind: DataType) -> str:
    if isinstance(kind, IntegralType | BooleanType):
        return "INTEGER"
    if isinstance(kind, FloatType | DoubleType):
        return "REAL"
    return "BLOB" if isinstance(kind, BinaryType) else "TEXT"


def _stored(name: str, kind: DataType) -> Column:
    """Values as SQLite has them: times and decimals as text, nested ones as JSON."""
    column: Column = sql.col(f"`{name}`")
    if isinstance(kind, TimestampType | TimestampNTZType):
        column = sql.date_format(column, _TIME)
    elif isinstance(kind, ArrayType | MapType | StructType):
        column = sql.to_json(column, {"ignoreNullFields": "false"})
    elif isinstance(kind, BooleanType):
        column = column.cast("int")
    elif not isinstance(kind, IntegralType | FloatType | DoubleType | BinaryType) or isinstance(kind, DecimalType):
        column = column.cast("string")
    return column.alias(name)
