"""PostgreSQL: tables and queries as sources, tables as sinks."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta
from psycopg import sql
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from ottla.pipelines.connectors.base import Batch, SourceContext, Written
from ottla.pipelines.connectors.options import ConnectorOptions, Secret, to_spark, upsert_problems
from ottla.pipelines.connectors.postgres.server import Server, connected, table_identifier, url_problems
from ottla.pipelines.connectors.postgres.sink import Target, write_batch
from ottla.pipelines.connectors.postgres.source import PostgresDataSource, Reading
from ottla.pipelines.connectors.postgres.types import ReadColumn, read_column
from ottla.pipelines.connectors.tables.following import following_problems, require_followed
from ottla.pipelines.durations import seconds_of
from ottla.pipelines.errors import FatalFailure
from ottla.spark.task_planned import task_options

DELAY = "5 seconds"
_FOLLOWED_INCREASING = {"smallint", "integer", "bigint", "numeric"}
_FOLLOWED_UPDATED = {"timestamp with time zone", "timestamp without time zone"}

Url = Annotated[str, Meta(description="Where the database is: `postgresql://host:5432/database`")]
User = Annotated[str | None, Meta(description="Who asks; may be in the URL as well")]
Password = Annotated[Secret | None, Meta(description="As `${env:NAME}` or `${file:PATH}`; never printed")]


class PostgresSourceOptions(ConnectorOptions, frozen=True, kw_only=True):
    postgres: Url
    user: User = None
    password: Password = None
    table: Annotated[str | None, Meta(description="The table, `orders` or `shop.orders`; this or `query`")] = None
    query: Annotated[str | None, Meta(description="A SELECT to read instead of a table")] = None
    increasing: Annotated[
        str | None, Meta(description="A stream follows this column: whole numbers that only grow, such as an id")
    ] = None
    updated: Annotated[
        str | None,
        Meta(description="A stream follows this time of the last change; with `increasing` to tell equal times apart"),
    ] = None
    delay: Annotated[
        str, Meta(description="With `updated`: rows younger than this wait. Longer than your longest transaction")
    ] = DELAY
    wait_for_writers: Annotated[
        bool,
        Meta(description="With `increasing`: go on only when those who were writing are done, so no late row is lost"),
    ] = True
    partitions: Annotated[int, Meta(description="Read with so many tasks at once", ge=1, le=1000)] = 1
    split_by: Annotated[
        str | None, Meta(description="The numeric column that a whole table is split by; by default `increasing`")
    ] = None


class PostgresSource:
    """Followed by a column that grows, or read as a whole."""

    KIND: ClassVar[str] = "postgres"
    Options: ClassVar[type[PostgresSourceOptions]] = PostgresSourceOptions
    RAW: ClassVar[bool] = False

    def __init__(self, options: PostgresSourceOptions) -> None:
        self.options = options

    def problems(self) -> list[str]:
        options = self.options
        found = url_problems("postgres", options.postgres) + following_problems(options, DELAY)
        if options.partitions > 1 and not (options.split_by or options.increasing):
            found.append("partitions: name the column to split by with `split_by`")
        if not options.wait_for_writers and (options.increasing is None or options.updated is not None):
            found.append("wait_for_writers: only goes with `increasing` alone")
        return found

    def stream(self, context: SourceContext) -> DataFrame:
        require_followed(self.options, context, "PostgreSQL")
        reading, columns = self._reading(context, self._followed_types())
        frame = context.spark.readStream.format(_registered(context))
        return _turned(frame.schema(_carried(columns)).options(**to_spark(reading)).load(), columns)

    def table(self, context: SourceContext) -> DataFrame:
        reading, columns = self._reading(context, (None, None))
        frame = context.spark.read.format(_registered(context))
        options = {**to_spark(reading), **task_options(fresh=context.fresh)}
        return _turned(frame.schema(_carried(columns)).options(**options).load(), columns)

    @property
    def _server(self) -> Server:
        return Server(url=self.options.postgres, user=self.options.user, password=self.options.password)

    @property
    def _origin(self) -> sql.Composable:
        if self.options.table is not None:
            return table_identifier(self.options.table)
        return sql.SQL("({}) AS given").format(sql.SQL(self.options.query or ""))

    def _reading(
        self, context: SourceContext, followed: tuple[str | None, str | None]
    ) -> tuple[Reading, list[ReadColumn]]:
        options = self.options
        with connected(self._server) as connection:
            cursor = connection.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(self._origin))
            columns = [
                read_column(found.name, found.type_code, found.precision, found.scale, connection.adapters.types)
                for found in cursor.description or []
            ]
        reading = Reading(
            server=self._server,
            table=options.table,
            query=options.query,
            selected=sql.SQL(", ").join(column.selected() for column in columns).as_string(None),
            increasing=options.increasing,
            increasing_type=followed[0],
            updated=options.updated,
            updated_type=followed[1],
            delay_s=seconds_of(options.delay),
            wait_for_writers=options.wait_for_writers,
            partitions=options.partitions,
            split_by=options.split_by or options.increasing,
            max_rows=context.max_records,
        )
        return reading, columns

    def _followed_types(self) -> tuple[str | None, str | None]:
        """What the followed columns are in the database, refused if they cannot be followed."""
        return (
            self._type_of("increasing", self.options.increasing, _FOLLOWED_INCREASING),
            self._type_of("updated", self.options.updated, _FOLLOWED_UPDATED),
        )

    def _type_of(self, option: str, column: str | None, allowed: set[str]) -> str | None:
        if column is None:
            return None
        with connected(self._server) as connection:
            found = connection.execute(
                sql.SQL("SELECT pg_typeof({0})::text FROM (SELECT NULL) AS none(x) LEFT JOIN {1} ON false").format(
                    sql.Identifier(column), self._origin
                )
            ).fetchone()
        kind = str(found[0]) if found else ""
        if kind not in allowed:
            raise FatalFailure(
                f"{option}: column {column} is of type {kind}; what can be followed is {', '.join(sorted(allowed))}"
            )
        return kind


def _registered(context: SourceContext) -> str:
    context.spark.dataSource.register(PostgresDataSource)
    return PostgresDataSource.name()


def _carried(columns: list[ReadColumn]) -> StructType:
    return StructType([StructField(column.name, column.carried) for column in columns])


def _turned(frame: DataFrame, columns: list[ReadColumn]) -> DataFrame:
    return frame.select(*[column.turned() for column in columns])


class PostgresSinkOptions(ConnectorOptions, frozen=True, kw_only=True):
    postgres: Url
    user: User = None
    password: Password = None
    table: Annotated[str, Meta(description="The table, `orders` or `shop.orders`")]
    mode: Annotated[
        Literal["insert", "upsert"], Meta(description="`upsert` replaces the row that has the same `keys`")
    ] = "insert"
    keys: Annotated[
        tuple[str, ...], Meta(description="With upsert: the columns of a primary key or unique constraint")
    ] = ()
    create: Annotated[bool, Meta(description="Create the table if it is not there, with `keys` as primary key")] = False


class PostgresSink:
    """Exactly once by batch id; `postgres_sink` says how."""

    KIND: ClassVar[str] = "postgres"
    Options: ClassVar[type[PostgresSinkOptions]] = PostgresSinkOptions
    VERSIONED: ClassVar[tuple[str, str]] = ("table", "{}_{version}")

    def __init__(self, options: PostgresSinkOptions) -> None:
        self.options = options

    def problems(self) -> list[str]:
        options = self.options
        return [*url_problems("postgres", options.postgres), *upsert_problems(options.mode, options.keys)]

    def write(self, frame: DataFrame, batch: Batch) -> Written:
        options = self.options
        server = Server(url=options.postgres, user=options.user, password=options.password)
        target = Target(server=server, table=options.table, keys=options.keys, create=options.create)
        return write_batch(frame, batch, target)
