"""What the supervisor makes of queries that cannot start; none of it needs Spark."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.errors import PySparkRuntimeError

from ottla.pipelines.runner import supervisor as supervising
from ottla.pipelines.runner.batches import Counters
from ottla.pipelines.runner.deploy import deploy
from ottla.pipelines.runner.failures import BUSY_RETRIES
from ottla.pipelines.runner.supervisor import Event, Supervisor

BUSY = "org.apache.spark.SparkException: Python worker failed to connect back."
FILE = """
name: orders
sources: {orders: {topic: orders}}
sinks: [{topic: copies}]
errors: {retries: 1, backoff: 1 ms, backoff_max: 1 ms}
"""


class Ended:
    """A query that has read what there was."""

    isActive = False  # noqa: N815
    _jsq = SimpleNamespace(recentProgress=list)

    def exception(self) -> None:
        return None


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[Event]]:
    """Run a pipeline whose query fails so often because the machine is busy, and then once for another reason."""

    def run_it(busy: int) -> list[Event]:
        (tmp_path / "pipeline.yaml").write_text(FILE)
        errors = [*[PySparkRuntimeError(BUSY)] * busy, OSError("no route to host")]

        def start(*given: Any, **more: Any) -> Any:
            if errors:
                raise errors.pop(0)
            return SimpleNamespace(stream=Ended(), work=SimpleNamespace(counters=Counters()), scans=1)

        monkeypatch.setattr(supervising, "prepare_topics", lambda deployment: None)
        monkeypatch.setattr(supervising, "start_query", start)
        monkeypatch.setattr(supervising, "LOOK_SECONDS", 0.001)
        events: list[Event] = []
        deployment = deploy(tmp_path / "pipeline.yaml", bootstrap="127.0.0.1:1", state_dir=tmp_path / "state")
        Supervisor(cast("Any", None), [deployment], once=True, tell=events.append).run()
        return events

    return run_it


def test_a_busy_machine_does_not_use_up_the_retries(run: Callable[[int], list[Event]]) -> None:
    whats = [event.what for event in run(5)]
    assert whats == [*["restarts"] * 6, "started", "done"]


def test_a_machine_that_stays_busy_fails_the_pipeline_in_the_end(run: Callable[[int], list[Event]]) -> None:
    events = run(BUSY_RETRIES + 1)
    assert [event.what for event in events][: BUSY_RETRIES + 1] == [*["restarts"] * BUSY_RETRIES, "failed"]
    assert "the machine is too busy" in events[BUSY_RETRIES].message
    assert f"given up after {BUSY_RETRIES + 1} failures in a row" in events[BUSY_RETRIES].message
