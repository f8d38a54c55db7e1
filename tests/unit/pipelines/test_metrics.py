"""What a driver tells Prometheus of its pipelines, made of the status document."""

from types import SimpleNamespace
from typing import Any, cast

from py4j.protocol import Py4JNetworkError

from ottla.pipelines.runner.metrics import metrics_text
from ottla.pipelines.runner.spark_figures import spark_figures
from ottla.telemetry import pipelines
from ottla.telemetry.metric import Metric
from ottla.telemetry.pipelines import PIPELINE_METRICS

SPARK: dict[Metric, float] = {
    pipelines.HEAP: 1e8, pipelines.HEAP_MAX: 1e9, pipelines.COLLECTING: 0.5, pipelines.EXECUTORS: 1,
    pipelines.RUNNING_TASKS: 2,
}  # fmt: skip


def query(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "query": name, "state": "running", "batches": 3, "input_rows": 100, "sink_rows": {"topic": 90, "files": 80},
        "dead_letters": 2, "late_rows": 1, "restarts": 4, "lag": 7, "rows_per_second": 12.5, "batch_seconds": 0.25,
        "batch_parts": {"addBatch": 0.2, "walCommit": 0.01}, "state_rows": 5, "state_bytes": 640,
        "input_rows_per_second": 11.5, "batch_started": 1.7e9, "busy_seconds": 3.5, "busy_parts": {"addBatch": 3.0},
        "state_operators": {"dedupe": 5}, "state_parts": {"commit": 0.5}, "state_updates": 9, "state_removals": 4,
        "watermark_seconds": 1.6e9, "event_time_max_seconds": 1.65e9, **changes,
    }  # fmt: skip


def test_every_metric_says_what_the_status_says() -> None:
    document = {"pipelines": [{"pipeline": "orders", "queries": [query("orders"), query('q"2', lag=None)]}]}
    told = values(metrics_text(document, SPARK))
    assert told['ottla_pipeline_lag_records{pipeline="orders",query="orders"}'] == 7
    assert 'ottla_pipeline_lag_records{pipeline="orders",query="q\\"2"}' not in told, "it is not known yet"
    assert told['ottla_pipeline_sink_rows_total{pipeline="orders",query="orders",sink="files"}'] == 80
    assert told['ottla_pipeline_batch_part_seconds{pipeline="orders",query="orders",part="addBatch"}'] == 0.2
    assert told['ottla_pipeline_state{pipeline="orders",query="q\\"2",state="running"}'] == 1
    assert told['ottla_pipeline_state_operator_rows{pipeline="orders",query="orders",operator="dedupe"}'] == 5
    assert told["ottla_spark_running_tasks"] == 2
    assert {name.split("{")[0] for name in told} == set(PIPELINE_METRICS)


def test_a_query_without_a_watermark_tells_none() -> None:
    unknown = query("orders", watermark_seconds=None, event_time_max_seconds=None, state_operators={})
    told = metrics_text({"pipelines": [{"pipeline": "orders", "queries": [unknown]}]})
    assert "watermark_timestamp" not in told
    assert "state_operator" not in told


def values(text: str) -> dict[str, float]:
    found = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in found}


def test_a_driver_without_pipelines_tells_nothing() -> None:
    assert values(metrics_text({"pipelines": []})) == {}


def test_openmetrics_has_an_end() -> None:
    text = metrics_text({"pipelines": [{"pipeline": "a", "queries": [query("a")]}]}, SPARK, openmetrics=True)
    assert text.endswith("# EOF\n")
    families = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(families) == len(set(families)), "a counter's family is its name without _total"


class GoneJvm:
    """Of a Spark whose JVM has ended: nothing of it answers."""

    def __getattr__(self, name: str) -> Any:
        raise Py4JNetworkError("Answer from Java side is empty")


def test_a_spark_that_does_not_answer_says_nothing_of_itself_and_queries_are_told_all_the_same() -> None:
    told = spark_figures(cast("Any", SimpleNamespace(sparkContext=GoneJvm())))
    assert told == {}
    text = metrics_text({"pipelines": [{"pipeline": "orders", "queries": [query("orders")]}]}, told)
    assert "ottla_pipeline_batches_total" in text
    assert "ottla_spark" not in text
