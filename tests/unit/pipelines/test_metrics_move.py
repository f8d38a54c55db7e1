"""What Spark reports and a driver counts moves its metrics. Neither Spark nor a broker is needed for that: reports are
those that Spark writes, and its JVM is a stand-in."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.metrics_moved import DRIVER, moved
from tests.unit.pipelines.test_progress import report

from ottla.pipelines.runner import supervisor as supervising
from ottla.pipelines.runner.batches import Counters
from ottla.pipelines.runner.deploy import deploy
from ottla.pipelines.runner.metrics import metrics_text
from ottla.pipelines.runner.spark_figures import spark_figures
from ottla.pipelines.runner.status import status_document
from ottla.pipelines.runner.supervisor import Supervisor
from ottla.telemetry import pipelines

FILE = """
name: orders
sources: {orders: {topic: orders}}
sinks: [{topic: copies}]
errors: {retries: 1, backoff: 1 ms, backoff_max: 1 ms}
"""


def fake_spark(*, local: bool, tasks: tuple[int, ...]) -> Any:
    """What `spark_figures` asks for, and no more."""
    runtime = SimpleNamespace(totalMemory=lambda: 900, freeMemory=lambda: 200, maxMemory=lambda: 1000)
    collectors = [SimpleNamespace(getCollectionTime=lambda ms=ms: ms) for ms in (250, 1250)]
    factory = SimpleNamespace(getGarbageCollectorMXBeans=lambda: collectors)
    lang = SimpleNamespace(
        Runtime=SimpleNamespace(getRuntime=lambda: runtime), management=SimpleNamespace(ManagementFactory=factory)
    )
    executors = [SimpleNamespace(numRunningTasks=lambda number=number: number) for number in tasks]
    tracker = SimpleNamespace(getExecutorInfos=lambda: executors)
    context = SimpleNamespace(statusTracker=lambda: tracker, isLocal=lambda: local)
    return SimpleNamespace(
        sparkContext=SimpleNamespace(
            _jvm=SimpleNamespace(java=SimpleNamespace(lang=lang)), _jsc=SimpleNamespace(sc=lambda: context)
        )
    )


def test_what_spark_says_of_itself() -> None:
    told = spark_figures(fake_spark(local=True, tasks=(2,)))
    assert told == {
        pipelines.HEAP: 700, pipelines.HEAP_MAX: 1000, pipelines.COLLECTING: 1.5, pipelines.EXECUTORS: 1,
        pipelines.RUNNING_TASKS: 2,
    }  # fmt: skip
    elsewhere = spark_figures(fake_spark(local=False, tasks=(0, 3, 4)))
    assert (elsewhere[pipelines.EXECUTORS], elsewhere[pipelines.RUNNING_TASKS]) == (2, 7), "the driver is none of them"


class Stream:
    """A query that has reported two batches, and ended."""

    isActive = False  # noqa: N815

    def __init__(self, name: str) -> None:
        reports = [SimpleNamespace(json=lambda n=n: json.dumps(report(n, name=name))) for n in (0, 1)]
        self._jsq = SimpleNamespace(recentProgress=lambda: reports)

    def exception(self) -> None:
        return None


def test_reports_and_counts_move_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that cannot start at first, and then runs two batches."""
    (tmp_path / "pipeline.yaml").write_text(FILE)
    deployment = deploy(tmp_path / "pipeline.yaml", bootstrap="127.0.0.1:1", state_dir=tmp_path / "state")
    errors = [OSError("no route to host")]

    def start(*given: Any, **more: Any) -> Any:
        if errors:
            raise errors.pop()
        counters = Counters(batches=2, rows={"topic-1": 80})
        stream = Stream(deployment.query_name(deployment.plan.queries[0]))
        return SimpleNamespace(stream=stream, work=SimpleNamespace(counters=counters), scans=1)

    monkeypatch.setattr(supervising, "prepare_topics", lambda deployment: None)
    monkeypatch.setattr(supervising, "start_query", start)
    monkeypatch.setattr(supervising, "LOOK_SECONDS", 0.001)
    supervisor = Supervisor(cast("Any", fake_spark(local=True, tasks=(1,))), [deployment], once=True)
    before = metrics_text(status_document(supervisor))
    assert supervisor.run()
    after = metrics_text(status_document(supervisor), spark_figures(supervisor.spark))
    assert set(DRIVER) - moved(before, after) == set(), "these do not move"
