"""What the pipelines of a driver count, as text for Prometheus: made of the status document. Pure."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ottla.telemetry import pipelines
from ottla.telemetry.metric import Metric, Row, Table
from ottla.telemetry.prometheus import render

Document = dict[str, Any]
Read = Callable[[Document], Iterator[tuple[tuple[str, ...], float | None]]]
"""Further labels and values of one query; None: it is not known yet."""


def _value(key: str) -> Read:
    def read(query: Document) -> Iterator[tuple[tuple[str, ...], float | None]]:
        yield (), query[key]

    return read


def _each(key: str) -> Read:
    def read(query: Document) -> Iterator[tuple[tuple[str, ...], float | None]]:
        yield from (((name,), value) for name, value in query[key].items())

    return read


def _state(query: Document) -> Iterator[tuple[tuple[str, ...], float | None]]:
    yield (query["state"],), 1.0


OF_QUERIES: dict[Metric, Read] = {
    pipelines.STATE: _state,
    pipelines.BATCHES: _value("batches"),
    pipelines.SINK_ROWS: _each("sink_rows"),
    pipelines.DEAD_LETTERS: _value("dead_letters"),
    pipelines.RESTARTS: _value("restarts"),
    pipelines.LAG: _value("lag"),
    pipelines.INPUT_ROWS: _value("input_rows"),
    pipelines.INPUT_RATE: _value("input_rows_per_second"),
    pipelines.RATE: _value("rows_per_second"),
    pipelines.BATCH_STARTED: _value("batch_started"),
    pipelines.BATCH_SECONDS: _value("batch_seconds"),
    pipelines.BATCH_PARTS: _each("batch_parts"),
    pipelines.BUSY: _value("busy_seconds"),
    pipelines.BUSY_PARTS: _each("busy_parts"),
    pipelines.STATE_ROWS: _value("state_rows"),
    pipelines.STATE_BYTES: _value("state_bytes"),
    pipelines.STATE_OPERATOR_ROWS: _each("state_operators"),
    pipelines.STATE_PARTS: _each("state_parts"),
    pipelines.STATE_UPDATES: _value("state_updates"),
    pipelines.STATE_REMOVALS: _value("state_removals"),
    pipelines.WATERMARK: _value("watermark_seconds"),
    pipelines.EVENT_TIME: _value("event_time_max_seconds"),
    pipelines.LATE_ROWS: _value("late_rows"),
}


def metrics_text(document: Document, spark: Mapping[Metric, float] | None = None, *, openmetrics: bool = False) -> str:
    """`spark`: what Spark says of itself; nothing while it is not asked."""
    tables = [_table(metric, read, document) for metric, read in OF_QUERIES.items()]
    tables += [Table((metric,), [((), (value,))]) for metric, value in (spark or {}).items()]
    return render(tables, openmetrics=openmetrics)


def _table(metric: Metric, read: Read, document: Document) -> Table:
    rows: list[Row] = []
    for pipeline in document["pipelines"]:
        for query in pipeline["queries"]:
            labels = (str(pipeline["pipeline"]), str(query["query"]))
            rows += [((*labels, *more), (float(value),)) for more, value in read(query) if value is not None]
    return Table((metric,), rows)
