"""The part of `ottla sql` that runs: one Spark session, one query, printed as a whole or as it goes on."""

import contextlib
import threading
import time
from collections.abc import Mapping, Sequence

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException, QueryContextType
from pyspark.errors.exceptions.captured import convert_exception
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ottla.cli.common.output import CommandError, note
from ottla.cli.pipeline import sql_text
from ottla.cli.pipeline.options import brief_spark, ending_in_order, running_spark
from ottla.cli.pipeline.sql_output import Output
from ottla.cli.pipeline.sql_tables import TopicAccess, register
from ottla.cli.pipeline.sql_words import ErrorText, in_words
from ottla.spark.moments import in_utc

TABLE_ROWS_MAX = 1_000
"""A table is laid out as a whole, so it needs an end."""
TRIGGER = "500 milliseconds"
POLL_SECONDS = 0.2


def look(
    sql: str,
    topics: Sequence[str],
    looking: TopicAccess,
    *,
    output: Output,
    limit: int | None,
    master: str,
    conf: Mapping[str, str],
) -> None:
    """Start Spark, look, and stop it. A session that was there before is used, and left running."""
    begun = time.monotonic()
    with contextlib.ExitStack() as stack:
        with output.status("starting Spark"):
            spark = stack.enter_context(_spark(master, conf, follow=looking.follow))
        rows = run(spark, sql, topics, looking, output=output, limit=limit)
        output.finish(rows, time.monotonic() - begun)


def _spark(master: str, conf: Mapping[str, str], *, follow: bool) -> contextlib.AbstractContextManager[SparkSession]:
    name = "ottla sql"
    return running_spark(name, master, conf) if follow else brief_spark(name, master, conf, own_workers=False)


def run(
    spark: SparkSession, sql: str, topics: Sequence[str], looking: TopicAccess, *, output: Output, limit: int | None
) -> int:
    """How many rows were printed. What Spark says against the query comes as a CommandError."""
    named = list(sql_text.named_topics(sql, topics))
    as_text = [topic for topic in named if looking.format_of(topic) == "text"]
    try:
        with output.status("looking"):
            for topic in named:
                register(spark, topic, looking)
            frame = spark.sql(sql)
        return _follow(frame, limit, output) if looking.follow else _show(frame, limit, output)
    except PySparkException as error:
        raise CommandError(in_words(_told_by(error), sql, topics, as_text)) from None
    except Py4JJavaError as error:  # what fails while rows are taken one by one is not translated by PySpark
        innermost = error.java_exception
        while innermost.getCause() is not None:
            innermost = innermost.getCause()
        raise CommandError(in_words(_told_by(convert_exception(innermost)), sql, topics, as_text)) from None


def _show(frame: DataFrame, limit: int | None, output: Output) -> int:
    with output.status("looking"):
        if not output.LAID_OUT:
            chosen = frame if limit is None else frame.limit(limit)
            return output.show(chosen.columns, in_utc(chosen.toLocalIterator(), chosen.schema))
        rows = frame.take(limit or TABLE_ROWS_MAX + 1)
    if limit is None and len(rows) > TABLE_ROWS_MAX:
        note(f"these are the first {TABLE_ROWS_MAX:,} rows; --limit asks for more, --json and --csv print all")
        rows = rows[:TABLE_ROWS_MAX]
    return output.show(frame.columns, in_utc(rows, frame.schema))


class _Printer:
    """Prints batches until the limit; Spark calls it on a thread of its own."""

    def __init__(self, limit: int | None, output: Output) -> None:
        self.rows = 0
        self.done = threading.Event()
        self._limit = limit
        self._output = output

    def __call__(self, batch: DataFrame, _: int) -> None:
        left = None if self._limit is None else self._limit - self.rows
        if left == 0:
            return
        rows = batch.collect() if left is None else batch.take(left)
        self.rows += self._output.show(batch.columns, in_utc(rows, batch.schema))
        if self.rows == self._limit:
            self.done.set()


def _follow(frame: DataFrame, limit: int | None, output: Output) -> int:
    """Ends at Ctrl-C, at the limit, or with the exception of the query.

    Ctrl-C must not come as an exception: PySpark's handler would cancel the job of the batch, which is a failure then,
    and whatever was being asked of Java would leave its answer behind for the next question.
    """
    if not frame.isStreaming:
        raise CommandError("--follow has nothing to follow: no topic is read by this query")
    printer = _Printer(limit, output)
    with ending_in_order(printer.done.set):
        query = _start(frame, printer)
        while query.isActive and not printer.done.wait(POLL_SECONDS):
            pass
        failure = query.exception()
        query.stop()
    if failure is not None:
        raise failure
    return printer.rows


def _start(frame: DataFrame, printer: _Printer) -> StreamingQuery:
    """Rows as they come; where the query counts or sums up, those that changed."""
    writer = frame.writeStream.foreachBatch(printer).trigger(processingTime=TRIGGER)
    try:
        return writer.outputMode("append").start()
    except AnalysisException as error:
        if "output mode" not in str(error).lower():
            raise
    return writer.outputMode("update").start()


def _told_by(error: PySparkException) -> ErrorText:
    context = next((c for c in error.getQueryContext() if c.contextType() is QueryContextType.SQL), None)
    return ErrorText(
        text=str(error),
        condition=error.getCondition(),
        parameters=dict(error.getMessageParameters() or {}),
        start=context.startIndex() if context else None,
        stop=context.stopIndex() if context else None,
    )
