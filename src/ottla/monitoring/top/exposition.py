"""Reads what a metrics listener says, of Ottla's brokers or of a jmx_exporter beside Kafka's. Pure."""

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

_LINE = re.compile(r"(?P<name>[A-Za-z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)(?:\s+-?\d+)?\s*$")
_LABEL = re.compile(r'(?P<name>\w+)="(?P<value>(?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")


class Measured(NamedTuple):
    name: str
    labels: dict[str, str]
    value: float


def parse(text: str) -> Iterator[Measured]:
    """Samples of Prometheus' text; lines that are none are passed over."""
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        found = _LINE.match(line)
        if found is None:
            continue
        try:
            value = float(found["value"])
        except ValueError:
            continue
        labels = {
            label["name"]: _ESCAPED.sub(lambda each: "\n" if each[1] == "n" else each[1], label["value"])
            for label in _LABEL.finditer(found["labels"] or "")
        }
        yield Measured(found["name"], labels, value)


class RequestFigures(NamedTuple):
    """Of one kind of request, all brokers together."""

    request: str
    requests: float
    errors: float
    p50_ms: float | None
    p99_ms: float | None
    """The worst of the brokers."""


_COUNTS = ("kafka_network_requestmetrics_requests_total", "kafka_network_requestmetrics_requestspersec")
_ERRORS = ("kafka_network_requestmetrics_errors_total", "kafka_network_requestmetrics_errorspersec")
_TIMES = "kafka_network_requestmetrics_totaltimems"


def requests_in(texts: list[str]) -> dict[str, RequestFigures]:
    """By request, from the metrics of several brokers."""
    found: dict[str, dict[str, float]] = {}
    for text in texts:
        samples = list(parse(text))
        # A listener may serve a meter under both of its names: one of them is counted.
        names = {each.name for each in samples}
        count_name = next((name for name in _COUNTS if name in names), "")
        error_name = next((name for name in _ERRORS if name in names), "")
        for each in samples:
            request = each.labels.get("request")
            if request is None:
                continue
            figures = found.setdefault(request, {})
            if each.name == count_name:
                figures["count"] = figures.get("count", 0.0) + each.value
            elif each.name == error_name and each.labels.get("error") != "NONE":
                figures["errors"] = figures.get("errors", 0.0) + each.value
            elif each.name == _TIMES and not math.isnan(each.value):
                key = {"0.50": "p50", "0.99": "p99"}.get(each.labels.get("quantile", ""))
                if key is not None:
                    figures[key] = max(figures.get(key, 0.0), each.value)
    return {
        request: RequestFigures(
            request, each.get("count", 0.0), each.get("errors", 0.0), each.get("p50"), each.get("p99")
        )
        for request, each in found.items()
        if each
    }
