"""What the pipelines of a driver count, as text for Prometheus: made of the status document. Pure."""

from collections.abc import Callable, Iterator
from typing import Any

from ottla.telemetry.metric import Kind, Metric, Row, Table
from ottla.telemetry.prometheus import render

_QUERY = ("pipeline", "query")
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


def _metric(name: str, kind: Kind, unit: str, doc: str, *labels: str) -> Metric:
    return Metric(f"ottla_pipeline_{name}", "", "", kind, unit, doc, (*_QUERY, *labels))


PIPELINE_METRICS: dict[Metric, Read] = {
    _metric("state", Kind.GAUGE, "1", "In which state a query is: the label says it.", "state"): _state,
    _metric("batches_total", Kind.COUNTER, "batches", "Batches that are complete."): _value("batches"),
    _metric("input_rows_total", Kind.COUNTER, "rows", "Rows read from sources."): _value("input_rows"),
    _metric("sink_rows_total", Kind.COUNTER, "rows", "Rows written, by sink.", "sink"): _each("sink_rows"),
    _metric("dead_letters_total", Kind.COUNTER, "records", "Records sent to the dead letters."): _value("dead_letters"),
    _metric("late_rows_total", Kind.COUNTER, "rows", "Rows that came behind the watermark."): _value("late_rows"),
    _metric("restarts_total", Kind.COUNTER, "restarts", "How often it was started again."): _value("restarts"),
    _metric("lag_records", Kind.GAUGE, "records", "Records of its topics that it has not read."): _value("lag"),
    _metric("rows_per_second", Kind.GAUGE, "rows/s", "Speed of the last batch."): _value("rows_per_second"),
    _metric("batch_seconds", Kind.GAUGE, "s", "How long the last batch took."): _value("batch_seconds"),
    _metric(
        "batch_part_seconds", Kind.GAUGE, "s", "How long each part of the last batch took, in Spark's words.", "part"
    ): _each("batch_parts"),
    _metric("state_rows", Kind.GAUGE, "rows", "Rows that stateful steps keep."): _value("state_rows"),
    _metric("state_bytes", Kind.GAUGE, "bytes", "Memory that they take."): _value("state_bytes"),
}


def metrics_text(document: Document, *, openmetrics: bool = False) -> str:
    return render(
        [_table(metric, read, document) for metric, read in PIPELINE_METRICS.items()], openmetrics=openmetrics
    )


def _table(metric: Metric, read: Read, document: Document) -> Table:
    rows: list[Row] = []
    for pipeline in document["pipelines"]:
        for query in pipeline["queries"]:
            labels = (str(pipeline["pipeline"]), str(query["query"]))
            rows += [((*labels, *more), (float(value),)) for more, value in read(query) if value is not None]
    return Table((metric,), rows)
