"""What a driver tells Prometheus of its pipelines, made of the status document."""

import re
from pathlib import Path
from typing import Any

from ottla.pipelines.runner.metrics import PIPELINE_METRICS, metrics_text

ROOT = Path(__file__).parents[3]


def query(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "query": name, "state": "running", "batches": 3, "input_rows": 100, "sink_rows": {"topic": 90, "files": 80},
        "dead_letters": 2, "late_rows": 1, "restarts": 4, "lag": 7, "rows_per_second": 12.5, "batch_seconds": 0.25,
        "batch_parts": {"addBatch": 0.2, "walCommit": 0.01}, "state_rows": 5, "state_bytes": 640, **changes,
    }  # fmt: skip


def test_every_metric_says_what_the_status_says() -> None:
    document = {"pipelines": [{"pipeline": "orders", "queries": [query("orders"), query('q"2', lag=None)]}]}
    told = values(metrics_text(document))
    assert told['ottla_pipeline_lag_records{pipeline="orders",query="orders"}'] == 7
    assert 'ottla_pipeline_lag_records{pipeline="orders",query="q\\"2"}' not in told, "it is not known yet"
    assert told['ottla_pipeline_sink_rows_total{pipeline="orders",query="orders",sink="files"}'] == 80
    assert told['ottla_pipeline_batch_part_seconds{pipeline="orders",query="orders",part="addBatch"}'] == 0.2
    assert told['ottla_pipeline_state{pipeline="orders",query="q\\"2",state="running"}'] == 1
    assert {name.split("{")[0] for name in told} == {metric.name for metric in PIPELINE_METRICS}


def values(text: str) -> dict[str, float]:
    found = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in found}


def test_a_driver_without_pipelines_tells_nothing() -> None:
    assert values(metrics_text({"pipelines": []})) == {}


def test_openmetrics_has_an_end() -> None:
    assert metrics_text({"pipelines": []}, openmetrics=True).endswith("# EOF\n")


def test_the_page_names_every_metric() -> None:
    page = (ROOT / "docs/pipelines.md").read_text()
    assert {metric.name for metric in PIPELINE_METRICS} == set(re.findall(r"`(ottla_pipeline_\w+)`", page))
