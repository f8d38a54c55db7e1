"""Metrics as text that Prometheus reads, under both sets of names that public dashboards ask for. Pure.

jmx_exporter's rules make `..._requests_total` of a meter's count; Confluent's and Grafana's dashboards ask for the
MBean's own name, `..._requestspersec`. Gauges have the same name in both. Of a histogram the quantiles have the same
name in both, too, and its count is `..._count` in one and has no suffix in the other.
"""

import math
import re
from collections.abc import Iterable, Iterator

from ottla.telemetry.metric import QUANTILES, Distribution, Kind, Metric, Table, Value

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

END = b"# EOF\n"
"""Behind all of it, in OpenMetrics."""
PIECE_BYTES = 64 * 1024

_METER = re.compile(r"(?P<domain>[\w.]+):type=(?P<type>[\w-]+),name=(?P<name>\w+PerSec)\b")
_TOTAL = "_total"


def render(tables: Iterable[Table], *, openmetrics: bool = False) -> str:
    return "".join(parts(tables, openmetrics=openmetrics)) + (END.decode() if openmetrics else "")


class Text:
    """The text of some tables, piece by piece. What has become text is let go of at once: `tables` is emptied."""

    def __init__(self, tables: list[Table], *, openmetrics: bool = False) -> None:
        tables.reverse()
        self._parts = parts((tables.pop() for _ in range(len(tables))), openmetrics=openmetrics)

    def next_piece(self) -> bytes:
        """Some metrics, none of them by halves; nothing when there are no more."""
        found: list[bytes] = []
        size = 0
        for part in self._parts:
            found.append(part.encode())
            size += len(found[-1])
            if size >= PIECE_BYTES:
                break
        return b"".join(found)


def parts(tables: Iterable[Table], *, openmetrics: bool = False) -> Iterator[str]:
    """The text, metric by metric: thousands of lines of one need not be held together with those of all others."""
    for table in tables:
        if not table.rows:
            continue
        texts = _labels(table)
        for position, metric in enumerate(table.metrics):
            lines: list[str] = []
            if metric.kind is Kind.HISTOGRAM:
                _add_histogram(lines, metric, table, position, openmetrics=openmetrics)
            else:
                _add_plain(lines, metric, texts, [row[1][position] for row in table.rows], openmetrics=openmetrics)
            lines.append("")
            yield "\n".join(lines)


def meter_name(metric: Metric) -> str | None:
    """What a meter is called by those who go by its MBean: domain, type and name. None of what is no meter."""
    found = _METER.match(metric.mbean) if metric.attribute == "Count" else None
    return None if found is None else "_".join(found.groups()).replace(".", "_").replace("-", "_").lower()


def other_names(metric: Metric) -> tuple[str, ...]:
    """Under which further names it is served."""
    meter = meter_name(metric) if metric.kind is not Kind.HISTOGRAM else None
    return metric.also if meter is None or meter == metric.name else (meter, *metric.also)


def _add_plain(lines: list[str], metric: Metric, texts: list[str], values: list[Value], *, openmetrics: bool) -> None:
    is_counter = metric.kind is Kind.COUNTER
    name, kind = metric.name, metric.kind.value
    if is_counter and not name.endswith(_TOTAL):  # OpenMetrics insists on the suffix
        kind = _untyped(openmetrics)
    family = name.removesuffix(_TOTAL) if openmetrics and is_counter else name
    if set(map(type, values)) == {int}:  # thousands, of partitions
        said = [f"{text} {value}" for text, value in zip(texts, values, strict=True)]
    else:
        said = [f"{text} {_value(value)}" for text, value in zip(texts, values, strict=True)]
    _head(lines, family, kind, metric.doc)
    lines.extend([name + each for each in said])
    for other in other_names(metric):
        _head(lines, other, _untyped(openmetrics), metric.doc)
        lines.extend([other + each for each in said])


def _add_histogram(lines: list[str], metric: Metric, table: Table, position: int, *, openmetrics: bool) -> None:
    counts: list[str] = []
    _head(lines, metric.name, _untyped(openmetrics), metric.doc)
    for labels, values in table.rows:
        value = values[position]
        assert isinstance(value, Distribution), metric.name
        pairs = [f'{name}="{_quoted(text)}"' for name, text in zip(metric.labels, labels, strict=True)]
        plain = "{" + ",".join(pairs) + "}" if pairs else ""
        for quantile, at in zip(QUANTILES, value.quantiles, strict=True):
            inside = ",".join([*pairs, f'quantile="{quantile}"'])
            lines.append(f"{metric.name}{{{inside}}} {_value(round(at, 6))}")
        lines.append(f"{metric.name}{plain} {value.number}")
        counts.append(f"{metric.name}_count{plain} {value.number}")
    _head(lines, metric.name + "_count", _untyped(openmetrics), metric.doc)
    lines.extend(counts)


def _head(lines: list[str], family: str, kind: str, doc: str) -> None:
    lines.append(f"# HELP {family} {_escaped(doc)}")
    lines.append(f"# TYPE {family} {kind}")


def _untyped(openmetrics: bool) -> str:
    return "unknown" if openmetrics else "untyped"


def _labels(table: Table) -> list[str]:
    """As they stand behind the name; metrics that were read together have the same."""
    names = table.metrics[0].labels
    if not names:
        return [""] * len(table.rows)
    if len(names) == 2:  # most are of partitions: thousands
        first, second = names
        return [f'{{{first}="{_quoted(a)}",{second}="{_quoted(b)}"}}' for (a, b), _ in table.rows]
    return [
        "{" + ",".join(f'{name}="{_quoted(text)}"' for name, text in zip(names, labels, strict=True)) + "}"
        for labels, _ in table.rows
    ]


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _quoted(text: str) -> str:
    return text if text.isalnum() else _escaped(text).replace('"', r"\"")


def _value(value: Value) -> str:
    if isinstance(value, Distribution):
        return str(value.number)
    if isinstance(value, int):
        return str(int(value))  # a bool is an int, too
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
