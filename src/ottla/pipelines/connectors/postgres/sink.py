"""A batch becomes visible in a table as a whole, once.

Tasks COPY their rows into a staging table of the batch, each attempt under a mark of its own. When all are done, the
driver moves the rows of the attempts that count, notes the batch id in `_ottla_batches` and drops the staging table, in
one transaction. A sink whose last batch was small has the driver write the next one by itself, if it is small as well,
in the same transaction as its id. Hence:

- a task that is tried again leaves rows under a mark that nobody moves;
- a driver that dies before the transaction ends leaves a staging table, which the next run drops;
- one that dies after it finds its batch id, and writes nothing;
- two drivers of one query wait for each other at the row of `_ottla_batches`; the later one finds the batch written.
"""

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.csv as pa_csv
from psycopg import sql
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType

from ottla.pipelines.connectors.base import Batch, Written
from ottla.pipelines.connectors.durable_files import writer_id
from ottla.pipelines.connectors.moments import Reached, unwatched
from ottla.pipelines.connectors.postgres.server import (
    Connection,
    Server,
    beside,
    connected,
    explain,
    split_name,
    table_identifier,
)
from ottla.pipelines.connectors.postgres.types import carried_column, column_definition
from ottla.pipelines.errors import FatalFailure

BATCHES = "_ottla_batches"
_ATTEMPT, _ORDER = "_ottla_attempt", "_ottla_order"
_STAGED = "attempt long, rows long, error string"
_CSV = pa_csv.WriteOptions(include_header=False)
_DRIVER = 0
_ATTEMPT_BITS = 62  # random: no two attempts at a batch ever meet
_ROW_BITS = 40  # an order is the number of the task, then that of the row in it
FEW_ROWS = 5_000
"""A batch that is no larger is written by the driver: a Python task and its connection cost more than the rows."""

_writers_of_few: set[str] = set()
"""Sinks of this process whose last batch was small: theirs are looked at before a staging table is made."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    server: Server
    table: str
    keys: tuple[str, ...]
    """Empty: rows are inserted. Else the row with the same keys is replaced; within a batch the last row wins."""
    create: bool


def write_batch(frame: DataFrame, batch: Batch, target: Target, reached: Reached = unwatched) -> Written:
    writer = writer_id(batch.query, batch.sink)
    with connected(target.server) as connection:
        _ensure_tables(connection, frame, target)
        if _last_batch(connection, target, batch) >= batch.id:
            return Written(rows=None, already_there=True)
        arrays = _array_columns(frame, _checked_columns(connection, frame, target))
        _drop_leftovers(connection, target, batch)
        few = _few_rows(frame) if writer in _writers_of_few else None
        stage = _stage_prefix(batch) + secrets.token_hex(4)
        if few is not None:
            reached("prepared")
            return _publish(
                connection, batch, target, reached, lambda: _put_few(connection, frame, target, stage, arrays, few)
            )
        _create_stage(connection, frame, target, stage, arrays)
    reached("prepared")
    attempts, rows = _stage_rows(frame, target, stage)
    reached("staged")
    with connected(target.server) as connection:

        def move() -> int:
            _move_rows(connection, frame.columns, target, stage, attempts, arrays)
            connection.execute(sql.SQL("DROP TABLE {}").format(beside(target.table, stage)))
            return rows

        written = _publish(connection, batch, target, reached, move)
    (_writers_of_few.add if rows <= FEW_ROWS else _writers_of_few.discard)(writer)
    return written


def _publish(
    connection: Connection,
    batch: Batch,
    target: Target,
    reached: Reached,
    put_rows: Callable[[], int],
) -> Written:
    """The one transaction: the rows, and the batch's id."""
    with connection.transaction():
        if _last_batch(connection, target, batch) >= batch.id:
            return Written(rows=None, already_there=True)
        rows = put_rows()
        _note_batch(connection, target, batch)
        reached("moved")
    reached("committed")
    return Written(rows=rows)


def _ensure_tables(connection: Connection, frame: DataFrame, target: Target) -> None:
    with connection.transaction():
        # CREATE TABLE IF NOT EXISTS of two sessions can collide: they take turns.
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('ottla'))")
        if not _exists(connection, _regclass(target.table, BATCHES)):
            connection.execute(
                sql.SQL(
                    "CREATE TABLE {} (query text, sink text, batch_id bigint NOT NULL,"
                    " written_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (query, sink))"
                ).format(beside(target.table, BATCHES))
            )
        if target.create and not _exists(connection, _regclass(target.table)):
            parts = [column_definition(field.name, field.dataType) for field in frame.schema.fields]
            if target.keys:
                parts.append(sql.SQL("PRIMARY KEY ({})").format(_names(target.keys)))
            connection.execute(
                sql.SQL("CREATE TABLE {} ({})").format(table_identifier(target.table), sql.SQL(", ").join(parts))
            )


def _regclass(table: str, name: str | None = None) -> str:
    schema, own = split_name(table)
    parts = [schema, name or own] if schema else [name or own]
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def _exists(connection: Connection, regclass: str) -> bool:
    found = connection.execute("SELECT to_regclass(%s) IS NOT NULL", [regclass]).fetchone()
    return bool(found and found[0])


def _names(columns: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier(column) for column in columns)


def _last_batch(connection: Connection, target: Target, batch: Batch) -> int:
    """The last batch of this sink, -1 before the first. Inside a transaction the row stays locked until its end."""
    table = beside(target.table, BATCHES)
    who = [batch.query, batch.sink]
    connection.execute(
        sql.SQL("INSERT INTO {} (query, sink, batch_id) VALUES (%s, %s, -1) ON CONFLICT DO NOTHING").format(table), who
    )
    found = connection.execute(
        sql.SQL("SELECT batch_id FROM {} WHERE query = %s AND sink = %s FOR UPDATE").format(table), who
    ).fetchone()
    assert found is not None, "the row was put there just before"
    return int(found[0])


def _note_batch(connection: Connection, target: Target, batch: Batch) -> None:
    connection.execute(
        sql.SQL("UPDATE {} SET batch_id = %s, written_at = now() WHERE query = %s AND sink = %s").format(
            beside(target.table, BATCHES)
        ),
        [batch.id, batch.query, batch.sink],
    )


def _checked_columns(connection: Connection, frame: DataFrame, target: Target) -> dict[str, str]:
    """The table's columns with their types, once it is sure that the frame fits."""
    if not _exists(connection, _regclass(target.table)):
        raise FatalFailure(
            f"table {target.table} does not exist in {target.server.shown}: create it, or set `create: true`"
        )
    found = connection.execute(
        "SELECT attname, format_type(atttypid, atttypmod), attgenerated <> '' FROM pg_attribute"
        " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
        [_regclass(target.table)],
    ).fetchall()
    types = {str(name): str(kind) for name, kind, generated in found if not generated}
    unknown = [name for name in frame.columns if name not in types]
    if unknown:
        raise FatalFailure(
            f"table {target.table} has no column {', '.join(unknown)} (it has {', '.join(types)}): "
            "select only columns that the table has, or add them to it"
        )
    missing = [key for key in target.keys if key not in frame.columns]
    if missing:
        raise FatalFailure(f"keys: the rows have no column {', '.join(missing)}; they have {', '.join(frame.columns)}")
    if target.keys and not _has_unique(connection, target):
        names = ", ".join(target.keys)
        raise FatalFailure(
            f"table {target.table} has no primary key or unique constraint on ({names}), which upsert needs: "
            f"ALTER TABLE {target.table} ADD UNIQUE ({names}), or use `mode: insert`"
        )
    return types


def _has_unique(connection: Connection, target: Target) -> bool:
    found = connection.execute(
        "SELECT array_agg(a.attname::text) FROM pg_index i, unnest(i.indkey[0:i.indnkeyatts - 1]) AS k(n)"
        " JOIN pg_attribute a ON a.attnum = k.n WHERE i.indrelid = to_regclass(%s) AND a.attrelid = i.indrelid"
        " AND i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL GROUP BY i.indexrelid",
        [_regclass(target.table)],
    ).fetchall()
    return any(set(columns) == set(target.keys) for (columns,) in found)


def _stage_prefix(batch: Batch) -> str:
    return f"_ottla_stage_{writer_id(batch.query, batch.sink)}_"


def _drop_leftovers(connection: Connection, target: Target, batch: Batch) -> None:
    """Staging tables of runs that died. One that a dying task still holds is left to the next batch."""
    schema, _ = split_name(target.table)
    names = connection.execute(
        "SELECT relname FROM pg_class WHERE starts_with(relname, %s) AND relkind = 'r'"
        " AND relnamespace = coalesce(%s, current_schema())::regnamespace",
        [_stage_prefix(batch), schema],
    ).fetchall()
    for (name,) in names:
        try:
            with connection.transaction():
                connection.execute("SET LOCAL lock_timeout = '2s'")
                connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(beside(target.table, str(name))))
        except psycopg.errors.LockNotAvailable:
            continue


def _array_columns(frame: DataFrame, types: Mapping[str, str]) -> dict[str, str]:
    """Those that are arrays on both sides, with the table's type."""
    return {
        field.name: types[field.name]
        for field in frame.schema.fields
        if isinstance(field.dataType, ArrayType) and types[field.name].endswith("[]")
    }


def _create_stage(
    connection: Connection, frame: DataFrame, target: Target, stage: str, arrays: Mapping[str, str]
) -> None:
    """A table with the target's types, so that COPY already finds what does not fit. Arrays come as JSON."""
    columns = [
        sql.SQL("NULL::jsonb AS {}" if column in arrays else "{}").format(sql.Identifier(column))
        for column in frame.columns
    ]
    connection.execute(
        sql.SQL("CREATE UNLOGGED TABLE {} AS SELECT 0::bigint AS {}, 0::bigint AS {}, {} FROM {} WITH NO DATA").format(
            beside(target.table, stage),
            sql.Identifier(_ATTEMPT),
            sql.Identifier(_ORDER),
            sql.SQL(", ").join(columns),
            table_identifier(target.table),
        )
    )


def _carried(frame: DataFrame) -> DataFrame:
    return frame.select(*[carried_column(field.name, field.dataType) for field in frame.schema.fields])


def _copy_statement(frame: DataFrame, target: Target, stage: str) -> sql.Composed:
    return sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(
        beside(target.table, stage), _names([_ATTEMPT, _ORDER, *frame.columns])
    )


def _few_rows(frame: DataFrame) -> pa.Table | None:
    """All rows, if they are few enough for the driver to write them itself."""
    found = _carried(frame).limit(FEW_ROWS + 1).toArrow()
    return found if found.num_rows <= FEW_ROWS else None


def _put_few(
    connection: Connection, frame: DataFrame, target: Target, stage: str, arrays: Mapping[str, str], few: pa.Table
) -> int:
    """Inside the transaction: rows that fit as they are go straight into the table, others through a staging table."""
    if not target.keys and not arrays:
        copy_rows = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(
            table_identifier(target.table), _names(frame.columns)
        )
        with connection.cursor() as cursor, cursor.copy(copy_rows) as copy:
            copy.write(_csv(few))
        return few.num_rows
    _create_stage(connection, frame, target, stage, arrays)
    with connection.cursor() as cursor, cursor.copy(_copy_statement(frame, target, stage)) as copy:
        rows = 0
        for part in few.to_batches():
            copy.write(_as_csv(part, _DRIVER, 0, rows))
            rows += part.num_rows
    _move_rows(connection, frame.columns, target, stage, [_DRIVER], arrays)
    connection.execute(sql.SQL("DROP TABLE {}").format(beside(target.table, stage)))
    return few.num_rows


def _stage_rows(frame: DataFrame, target: Target, stage: str) -> tuple[list[int], int]:
    """The marks of the attempts that count, and how many rows they copied."""
    carried = _carried(frame)
    statement, server = _copy_statement(frame, target, stage).as_string(None), target.server

    def copy_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        attempt = secrets.randbits(_ATTEMPT_BITS)
        rows, error = _copy_partition(server, statement, attempt, batches)
        yield pa.RecordBatch.from_pydict({"attempt": [attempt], "rows": [rows], "error": [error]})

    results = carried.mapInArrow(copy_rows, _STAGED).collect()
    for result in results:
        if result.error:
            raise FatalFailure(result.error)
    return [result.attempt for result in results if result.rows], sum(result.rows for result in results)


def _copy_partition(
    server: Server, statement: str, attempt: int, batches: Iterator[pa.RecordBatch]
) -> tuple[int, str | None]:
    """Copy one partition's rows. What is wrong with the data is returned, not raised: no second attempt mends it."""
    context = TaskContext.get()
    task, rows = (context.partitionId() if context else 0), 0
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return 0, None
    with connected(server) as connection:
        try:
            with connection.cursor() as cursor, cursor.copy(statement) as copy:
                for batch in _chain(first, batches):
                    copy.write(_as_csv(batch, attempt, task, rows))
                    rows += batch.num_rows
        except (psycopg.DataError, psycopg.IntegrityError) as error:
            for _ in batches:
                pass  # Spark wants its rows taken
            return 0, str(explain(error, server))
    return rows, None


def _chain(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def _as_csv(batch: pa.RecordBatch, attempt: int, task: int, first_row: int) -> memoryview:
    """Null is an empty field and an empty text is a quoted one, on both sides."""
    count = batch.num_rows
    first = (task << _ROW_BITS) + first_row
    marks: list[Any] = [
        pa.repeat(pa.scalar(attempt, pa.int64()), count),
        pa.array(np.arange(first, first + count, dtype=np.int64)),
    ]
    names = [str(number) for number in range(len(marks) + batch.num_columns)]
    return _csv(pa.RecordBatch.from_arrays([*marks, *batch.columns], names=names))


def _csv(rows: pa.RecordBatch | pa.Table) -> memoryview:
    sink = pa.BufferOutputStream()
    pa_csv.write_csv(rows, sink, _CSV)
    return memoryview(sink.getvalue())


def _move_rows(
    connection: Connection,
    columns: Sequence[str],
    target: Target,
    stage: str,
    attempts: list[int],
    arrays: Mapping[str, str],
) -> None:
    if not attempts:
        return
    parts: dict[str, sql.Composable] = {
        "table": table_identifier(target.table),
        "names": _names(columns),
        "values": sql.SQL(", ").join(_moved(column, arrays.get(column)) for column in columns),
        "stage": beside(target.table, stage),
        "attempt": sql.Identifier(_ATTEMPT),
        "order": sql.Identifier(_ORDER),
        "keys": _names(target.keys),
    }
    if not target.keys:
        statement = "INSERT INTO {table} ({names}) SELECT {values} FROM {stage} WHERE {attempt} = ANY(%s)"
        connection.execute(sql.SQL(statement).format(**parts), [attempts])
        return
    rest = [column for column in columns if column not in target.keys]
    parts["change"] = (
        sql.SQL("UPDATE SET {}").format(
            sql.SQL(", ").join(sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(column)) for column in rest)
        )
        if rest
        else sql.SQL("NOTHING")
    )
    upsert = (
        "INSERT INTO {table} ({names}) SELECT DISTINCT ON ({keys}) {values} FROM {stage} WHERE {attempt} = ANY(%s)"
        " ORDER BY {keys}, {order} DESC ON CONFLICT ({keys}) DO {change}"
    )
    connection.execute(sql.SQL(upsert).format(**parts), [attempts])


def _moved(column: str, array_type: str | None) -> sql.Composable:
    name = sql.Identifier(column)
    if array_type is None:
        return name
    return sql.SQL("CASE WHEN {0} IS NOT NULL THEN ARRAY(SELECT jsonb_array_elements_text({0}))::{1} END").format(
        name, sql.SQL(array_type)
    )  # the catalogue's own word
