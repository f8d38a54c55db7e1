"""Every metric that rules and dashboards may ask for: the broker's, the monitor's and those of pipelines."""

import re

from ottla.monitoring.metrics import MONITOR_METRICS
from ottla.telemetry.catalogue import METRICS
from ottla.telemetry.metric import Kind, Metric
from ottla.telemetry.pipelines import PIPELINE_METRICS

DECLARED: dict[str, Metric] = {**METRICS, **MONITOR_METRICS, **PIPELINE_METRICS}
OF_PROMETHEUS = frozenset({"up"})

_NAME = re.compile(r"\b[a-z][a-z0-9_]*_[a-z0-9_]+\b|\bup\b")
_LABELS = re.compile(r"\{[^}]*\}|\b(?:by|without|on)\s*\([^)]*\)|\"[^\"]*\"")
_FUNCTIONS = frozenset({"predict_linear", "group_left", "clamp_min", "max_over_time", "min_over_time"})


def names_in(expression: str) -> set[str]:
    """The metrics that an expression asks for."""
    return set(_NAME.findall(_LABELS.sub(" ", expression))) - _FUNCTIONS


def is_declared(expression: str) -> bool:
    """Whether somebody measures all that an expression asks for."""
    return all(name in DECLARED or name in OF_PROMETHEUS for name in names_in(expression))


def rate(metric: Metric, window: str = "5m") -> str:
    return f"rate({metric.name}[{window}])" if metric.kind is Kind.COUNTER else metric.name
