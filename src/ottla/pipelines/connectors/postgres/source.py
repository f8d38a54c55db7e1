"""Reading PostgreSQL: rows leave the server by COPY, as CSV that Arrow reads. A stream follows a column that grows.

A sequence hands out numbers before their rows are visible: 10 may be committed before 9. A stream that went on to 10
would lose 9 for ever. Whoever got a number up to 10 held a lock on the table when 10 was seen, so the source takes 10
as an end only when everyone who held such a lock then has finished. Times that rows carry (`updated`) cannot be
followed like this, as they come from the writer's clock: there `delay` keeps a distance that must be longer than the
longest writing transaction.
"""

import io
import time
from collections.abc import Iterator, Sequence
from typing import IO, Any, cast

import msgspec
import pyarrow as pa
import pyarrow.csv as pa_csv
from psycopg import sql
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from ottla.pipelines.connectors.options import from_spark
from ottla.pipelines.connectors.postgres.server import Connection, Server, connected, table_identifier
from ottla.pipelines.connectors.tables.following import FollowingReader
from ottla.pipelines.connectors.tables.increasing import Mark, split
from ottla.spark.task_planned import planned_in_task

READ_BLOCK_BYTES = 1 << 20
Bytes = bytes | bytearray | memoryview
_WRITERS_WAIT_S = 0.25
_WRITERS_PAUSE_S = 0.01


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """All that a task or the stream's planner must know."""

    server: Server
    table: str | None
    query: str | None
    selected: str
    """The select list, ready to be sent."""
    increasing: str | None = None
    increasing_type: str | None = None
    updated: str | None = None
    updated_type: str | None = None
    delay_s: float = 0.0
    wait_for_writers: bool = True
    partitions: int = 1
    split_by: str | None = None
    max_rows: int | None = None

    @property
    def origin(self) -> sql.Composable:
        if self.table is not None:
            return table_identifier(self.table)
        return sql.SQL("({}) AS given").format(sql.SQL(self.query or ""))


class Part(InputPartition):
    def __init__(self, condition: str) -> None:
        super().__init__(condition)
        self.condition = condition


class PostgresDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ottla_postgres"

    def reader(self, schema: StructType) -> DataSourceReader:
        return planned_in_task(PostgresTableReader(from_spark(self.options, Reading), schema), self.options)

    def streamReader(self, schema: StructType) -> "PostgresStreamReader":  # noqa: N802
        return PostgresStreamReader(from_spark(self.options, Reading), schema)


class PostgresTableReader(DataSourceReader):
    """Each task reads its own range in a snapshot of its own: rows that change meanwhile are seen by some."""

    def __init__(self, reading: Reading, schema: StructType) -> None:
        self._reading = reading
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        reading = self._reading
        if reading.split_by is None or reading.partitions == 1:
            return [Part("true")]
        column = sql.Identifier(reading.split_by)
        with connected(reading.server) as connection:
            found = connection.execute(
                sql.SQL("SELECT floor(min({0}))::bigint - 1, ceil(max({0}))::bigint FROM {1}").format(
                    column, reading.origin
                )
            ).fetchone()
        if found is None or found[0] is None:
            return [Part("true")]
        ranges = split(int(found[0]), int(found[1]), reading.partitions)
        last = len(ranges) - 1
        conditions = []
        for number, part in enumerate(ranges):  # open at both ends, for rows that come meanwhile
            low = sql.SQL("{} > {}").format(column, sql.SQL(part.after or "0")) if number else sql.SQL("true")
            high = sql.SQL("{} <= {}").format(column, sql.SQL(part.until or "0")) if number < last else sql.SQL("true")
            condition = sql.SQL("({} AND {})").format(low, high)
            if number == 0 and last > 0:
                condition = sql.SQL("({} OR {} IS NULL)").format(condition, column)
            conditions.append(condition.as_string(None))
        return [Part(condition) for condition in conditions]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Part)
        return read_rows(self._reading, self._schema, partition.condition)


class PostgresStreamReader(FollowingReader):
    def __init__(self, reading: Reading, schema: StructType) -> None:
        super().__init__(reading.max_rows)
        self._reading = reading
        self._schema = schema

    def _end(self, after: Mark, bound: Mark | None, max_rows: int | None) -> Mark:
        with connected(self._reading.server) as connection:
            return safe_end(connection, self._reading, after, bound, max_rows)

    def _parts(self, after: Mark, until: Mark) -> Sequence[InputPartition]:
        reading = self._reading
        if reading.updated is None and reading.partitions > 1 and after.id is not None and until.id is not None:
            pieces = split(int(after.id), int(until.id), reading.partitions)
            marks = [(Mark(id=piece.after), Mark(id=piece.until)) for piece in pieces]
        else:
            marks = [(after, until)]
        return [Part(between(reading, low, high).as_string(None)) for low, high in marks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Part)
        return read_rows(self._reading, self._schema, partition.condition)


def between(reading: Reading, after: Mark, until: Mark | None) -> sql.Composed:
    """The condition of rows behind `after`, up to and with `until`."""
    columns, marks_of = _followed(reading)
    parts: list[sql.Composable] = []
    if not after.is_start:
        parts.append(sql.SQL("({}) > ({})").format(columns, marks_of(after)))
    if until is not None:
        parts.append(sql.SQL("({}) <= ({})").format(columns, marks_of(until)))
    return sql.SQL("({})").format(sql.SQL(" AND ").join(parts or [sql.SQL("true")]))


def _followed(reading: Reading) -> tuple[sql.Composable, Any]:
    names = [name for name in (reading.updated, reading.increasing) if name is not None]
    types = [kind for kind in (reading.updated_type, reading.increasing_type) if kind is not None]

    def literals(mark: Mark) -> sql.Composable:
        values = [
            value
            for value, name in ((mark.updated, reading.updated), (mark.id, reading.increasing))
            if name is not None
        ]
        typed = [
            sql.SQL("{}::{}").format(sql.Literal(value), sql.SQL(kind))  # the catalogue's word
            for value, kind in zip(values, types, strict=True)
        ]
        return sql.SQL(", ").join(typed)

    return sql.SQL(", ").join(sql.Identifier(name) for name in names), literals


def safe_end(connection: Connection, reading: Reading, after: Mark, bound: Mark | None, max_rows: int | None) -> Mark:
    """The last row that may be read now; `after` itself if there is none."""
    columns, _ = _followed(reading)
    conditions = [between(reading, after, bound)]
    if reading.updated is not None:
        conditions.append(
            sql.SQL("({} <= (now() - make_interval(secs => {}))::{})").format(
                sql.Identifier(reading.updated),
                sql.Literal(reading.delay_s),
                sql.SQL(reading.updated_type or "timestamptz"),
            )
        )
    order_down = sql.SQL(", ").join(
        sql.SQL("{} DESC").format(sql.Identifier(name)) for name in (reading.updated, reading.increasing) if name
    )
    followed = sql.SQL("SELECT {} FROM {} WHERE {}").format(columns, reading.origin, sql.SQL(" AND ").join(conditions))
    if max_rows is not None:
        followed = sql.SQL("{} ORDER BY {} LIMIT {}").format(followed, columns, sql.Literal(max_rows))
    texts = sql.SQL(", ").join(  # with names of their own: ORDER BY must not take the text for the column
        sql.SQL("{}::text AS {}").format(sql.Identifier(name), sql.Identifier(f"text of {name}"))
        for name in (reading.updated, reading.increasing)
        if name
    )
    found = connection.execute(
        sql.SQL("SELECT {} FROM ({}) AS followed ORDER BY {} LIMIT 1").format(texts, followed, order_down)
    ).fetchone()
    if found is None or any(value is None for value in found):
        return after
    values = iter(found)
    end = Mark(
        updated=str(next(values)) if reading.updated else None, id=str(next(values)) if reading.increasing else None
    )
    if reading.updated is None and reading.wait_for_writers and reading.table is not None:
        return end if _writers_are_done(connection, reading.table) else after
    return end


def _writers_are_done(connection: Connection, table: str) -> bool:
    """Wait a little until nobody writes who did when this was called. False: someone takes longer; ask again later."""
    deadline = time.monotonic() + _WRITERS_WAIT_S
    pending: set[str] | None = None
    while True:
        writing = {
            str(transaction)
            for (transaction,) in connection.execute(
                "SELECT virtualtransaction FROM pg_locks WHERE locktype = 'relation' AND granted"
                " AND relation = %s::regclass AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock',"
                " 'ExclusiveLock', 'AccessExclusiveLock') AND pid <> pg_backend_pid()",
                [table],
            )
        }
        pending = writing if pending is None else pending & writing
        if not pending:
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(_WRITERS_PAUSE_S)


class _CopiedBytes(io.RawIOBase):
    """What COPY sends, as a file that Arrow can read."""

    def __init__(self, blocks: Iterator[Bytes]) -> None:
        super().__init__()
        self._blocks = blocks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        parts: list[bytes] = []
        wanted = size if size >= 0 else 1 << 62
        while wanted > 0:
            if not self._rest:
                block = next(self._blocks, None)
                if block is None:
                    break
                self._rest = memoryview(block)
            taken = self._rest[:wanted]
            self._rest = self._rest[len(taken) :]
            parts.append(bytes(taken))
            wanted -= len(taken)
        return b"".join(parts)


def read_rows(reading: Reading, schema: StructType, condition: str) -> Iterator[pa.RecordBatch]:
    arrow = to_arrow_schema(schema, timezone="UTC", prefers_large_types=False)
    statement = sql.SQL("COPY (SELECT {} FROM {} WHERE {}) TO STDOUT (FORMAT csv, HEADER false)").format(
        sql.SQL(reading.selected),  # composed and quoted on the driver
        reading.origin,
        sql.SQL(condition),
    )
    with connected(reading.server) as connection, connection.cursor() as cursor, cursor.copy(statement) as copy:
        blocks = iter(copy)
        first = next(blocks, None)
        if first is None:
            return
        source = _CopiedBytes(_with_first(first, blocks))
        batches = pa_csv.open_csv(
            cast("IO[bytes]", source),
            read_options=pa_csv.ReadOptions(column_names=arrow.names, block_size=READ_BLOCK_BYTES),
            parse_options=pa_csv.ParseOptions(newlines_in_values=True),
            convert_options=pa_csv.ConvertOptions(
                column_types={field.name: field.type for field in arrow},
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                true_values=["t"],
                false_values=["f"],
            ),
        )
        for batch in batches:
            yield batch.cast(arrow)


def _with_first(first: Bytes, rest: Iterator[Bytes]) -> Iterator[Bytes]:
    yield first
    yield from rest
