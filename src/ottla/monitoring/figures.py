"""Metrics with their values, and the text that Prometheus reads."""

from collections.abc import Iterable, Sequence

from ottla.telemetry.metric import Metric, Table
from ottla.telemetry.prometheus import render

Rows = Sequence[tuple[tuple[str, ...], float]]
"""Labels and values."""
Figure = tuple[Metric, Rows]


def as_text(figures: Iterable[Figure], *, openmetrics: bool = False) -> str:
    """What several have measured of one metric stands together."""
    rows: dict[Metric, list[tuple[tuple[str, ...], float]]] = {}
    for metric, more in figures:
        rows.setdefault(metric, []).extend(more)
    tables = [Table((metric,), [(labels, (value,)) for labels, value in each]) for metric, each in rows.items()]
    return render(tables, openmetrics=openmetrics)
