"""Spark's own parser, in a JVM of its own without a Spark in it: it knows what is SQL, and nobody else quite does.

It takes seconds to start, so it is asked only about text that a quicker parser does not understand.
"""

import os
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from py4j.java_gateway import JavaGateway
from py4j.protocol import CALL_COMMAND_NAME, END_COMMAND_PART, Py4JError, Py4JJavaError, get_return_value

from ottla.config.java import NoJava, find_java

QUERY, EXPRESSION, SCHEMA, TYPE = "parsePlan", "parseExpression", "parseTableSchema", "parseDataType"
"""What a text is, by the name of the parser's method."""

_QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
_CONDITION = re.compile(r"^\s*\[[A-Z_.]+\]\s*|\s*SQLSTATE: \w+")


class CannotAsk(Exception):
    """There is no parser here; the message says why."""


class SparkGrammar:
    """A context manager; the JVM is started by the first question."""

    def __init__(self) -> None:
        self._gateway: Any = None
        self._parser: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._gateway is not None:
            self._gateway.shutdown()
            self._gateway.java_process.stdin.close()  # which ends it, should it not have heard
            self._gateway.java_process.wait()
            self._gateway = self._parser = None

    def refuses(self, kind: str, text: str) -> str | None:
        """What Spark says against a text; None if it is fine. CannotAsk if nobody can tell."""
        if self._parser is None:
            self._start()
        try:
            _call(getattr(self._parser, kind), text)
        except Py4JJavaError as error:
            return in_words(str(error.java_exception.getMessage()))
        except Py4JError as error:
            raise CannotAsk(str(error)) from error
        return None

    def _start(self) -> None:
        try:
            java = find_java(os.environ, wanted_by="Spark's parser")
            jars = Path(_folder_of_spark(), "jars")
            self._gateway = JavaGateway.launch_gateway(
                jarpath=str(next(jars.glob("py4j-*.jar"))), classpath=str(jars / "*"), java_path=str(java.executable),
                javaopts=list(_QUICK_START), die_on_exit=True, enable_auth=True,
            )  # fmt: skip
            # That of a session: Catalyst's own refuses DISTRIBUTE BY and CLUSTER BY, which a session takes.
            self._parser = self._gateway.jvm.org.apache.spark.sql.execution.SparkSqlParser()
        except (NoJava, OSError, StopIteration, Py4JError) as error:
            raise CannotAsk(str(error) or "Spark's jars are not there") from error


Refuses = Callable[[str, str], str | None]


def in_words(message: str) -> str:
    """The first lines of Spark's message, without the query, which stands in the file."""
    said = message.strip().partition("== SQL")[0]
    return " ".join(_CONDITION.sub("", said).split())


def _call(method: Any, text: str) -> None:
    """As py4j calls methods, unless there was a session: PySpark takes errors for those of its own JVM from then on."""
    arguments, _ = method._build_args(text)
    client = method.gateway_client
    answer = client.send_command(f"{CALL_COMMAND_NAME}{method.command_header}{arguments}{END_COMMAND_PART}")
    get_return_value(answer, client, method.target_id, method.name)


def _folder_of_spark() -> str:
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise CannotAsk("pyspark is not installed")
    return os.path.dirname(found.origin)
