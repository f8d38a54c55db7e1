"""Talking to a PostgreSQL server, and saying in words what is wrong when it refuses."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import psycopg
from psycopg import sql

from ottla.pipelines.connectors.options import Secret, refers
from ottla.pipelines.errors import ConnectorProblem, FatalFailure, PipelineError
from ottla.pipelines.secrets import without_password

CONNECT_TIMEOUT_S = 10

Connection = psycopg.Connection[tuple[Any, ...]]


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """Where a database is and who asks. Tasks get it too: they speak to the database themselves."""

    url: str
    user: str | None = None
    password: Secret | None = None

    def __repr__(self) -> str:
        return f"Server({without_password(self.url)})"

    @property
    def shown(self) -> str:
        return without_password(self.url)


def url_problems(option: str, url: str) -> list[str]:
    if refers(url):
        return []
    try:
        psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        # What cannot be read as a URL is quoted in the message, and what looks like user:password@host may be that.
        said = re.sub(r'"[^"]*@[^"]*"', "it", without_password(str(error).strip()))
        return [f"{option}: {said}; write postgresql://host:5432/database"]
    return []


@contextmanager
def connected(server: Server) -> Iterator[Connection]:
    """A connection outside any transaction (`connection.transaction()` opens one); its errors are ours."""
    try:
        place = psycopg.conninfo.make_conninfo(
            server.url,
            user=server.user,
            password=server.password,
            connect_timeout=CONNECT_TIMEOUT_S,
            application_name="ottla",
        )
        connection: Connection = psycopg.connect(place, autocommit=True)
    except psycopg.Error as error:
        raise explain_refusal(error, server) from None  # psycopg's own text may hold the password
    try:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET DateStyle = 'ISO'")
        connection.execute("SET client_min_messages = warning")
        yield connection
    except psycopg.Error as error:
        raise explain(error, server) from error
    finally:
        connection.close()


def explain_refusal(error: psycopg.Error, server: Server) -> PipelineError:
    said = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
    where = f"PostgreSQL at {server.shown}"
    if "password authentication failed" in said or "no password supplied" in said:
        return FatalFailure(f"{where} refused the user: {said}. Check `user` and `password`")
    if "no pg_hba.conf entry" in said:
        return FatalFailure(f"{where} does not let this user in from here: {said}. Ask who runs the server")
    if "does not exist" in said:
        return FatalFailure(f"{where}: {said}. Check the database and the user in `postgres`")
    return ConnectorProblem(f"{where} cannot be reached: {said}. Is it running, and is the address right?")


_ADVICE = {
    "42P01": "Create the table, or set `create: true` on a sink",
    "42703": "Select only columns that the table has, or add the column to the table",
    "42501": "Grant the user what it needs on the table and on its schema",
    "42P10": "Upsert needs a primary key or unique constraint on exactly the columns of `keys`",
    "42804": "Cast the column in a step before the sink",
    "22P02": "Cast the column in a step before the sink, or change its type in the table",
    "22003": "The value is too large for the column's type: change the type, or filter such rows out",
    "22001": "The text is too long for the column: change its type, or shorten it in a step",
    "22021": "PostgreSQL cannot store this text (a zero byte, or no valid UTF-8): clean it in a step",
    "23502": "The column must not be null: fill it in a step, or filter such rows out",
    "23503": "The row refers to one that is not there: write that table first",
    "23505": "A row with this key is already there: use `mode: upsert` with `keys`",
    "23514": "The row breaks a rule of the table: filter such rows out with an `expect` step",
}


def explain(error: psycopg.Error, server: Server) -> PipelineError:
    """What a statement's error means to the owner of the pipeline. Trying again mends only the server's troubles."""
    state = error.sqlstate or ""
    diagnosis = error.diag
    said = diagnosis.message_primary or str(error).strip() or type(error).__name__
    details = [part for part in (diagnosis.message_detail, diagnosis.context) if part]
    text = f"PostgreSQL at {server.shown}: {said}" + (f" ({'; '.join(details)})" if details else "")
    advice = _ADVICE.get(state)
    if advice is not None:
        return FatalFailure(f"{text}. {advice}")
    if state.startswith(("22", "23", "42")):
        return FatalFailure(text)
    return ConnectorProblem(text)


def split_name(table: str) -> tuple[str | None, str]:
    schema, _, name = table.rpartition(".")
    return schema or None, name


def table_identifier(table: str) -> sql.Identifier:
    schema, name = split_name(table)
    return sql.Identifier(schema, name) if schema else sql.Identifier(name)


def beside(table: str, name: str) -> sql.Identifier:
    """A table of ours in the same schema."""
    schema, _ = split_name(table)
    return sql.Identifier(schema, name) if schema else sql.Identifier(name)
