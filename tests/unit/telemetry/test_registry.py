"""Metrics are declared once, measured once, and read when somebody asks."""

import re

import pytest

from ottla.telemetry.catalogue import CONNECTIONS, METRICS, REQUESTS
from ottla.telemetry.metric import Kind, Metric, Sample
from ottla.telemetry.registry import Telemetry


def test_a_snapshot_reads_what_is_true_now() -> None:
    telemetry, counted = Telemetry(), [1]
    telemetry.observe(CONNECTIONS, lambda: [(("PLAINTEXT",), counted[0])])
    assert telemetry.snapshot() == [Sample(CONNECTIONS, ("PLAINTEXT",), 1)]
    counted[0] = 5
    assert telemetry.snapshot() == [Sample(CONNECTIONS, ("PLAINTEXT",), 5)]


def test_a_metric_is_measured_in_one_place() -> None:
    telemetry = Telemetry()
    telemetry.observe(REQUESTS, list)
    with pytest.raises(AssertionError, match="measured twice"):
        telemetry.observe(REQUESTS, list)


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_names_follow_the_rules(metric: Metric) -> None:
    for name in (metric.name, *metric.also):
        assert re.fullmatch(r"(kafka|process|ottla|zookeeper)_[a-z0-9_]+", name)
    if metric.name.endswith("_total"):
        assert metric.kind is Kind.COUNTER
    elif metric.kind is Kind.COUNTER:
        assert metric.name.endswith(("_count", "rate")), "as Kafka's own metrics are called"
    if metric.rate_of:
        assert METRICS[metric.rate_of].kind is Kind.COUNTER
        assert METRICS[metric.rate_of].labels == metric.labels
    assert tuple(re.findall(r"\{(\w+)\}", metric.mbean)) == metric.labels, "labels are the keys of the MBean that vary"
    assert metric.doc.endswith(".")
