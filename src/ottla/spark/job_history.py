"""What Spark remembers of its own jobs: whether a stage ran twice, and why a task failed first."""

import contextlib
import time
from collections.abc import Collection
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

EVENTS_SECONDS_MAX = 60.0
LOOK_SECONDS = 0.005


def was_stage_retried(spark: SparkSession, stages: Collection[int]) -> bool:
    """Whether a stage was submitted more than once. A task cannot see that: PySpark does not tell it."""
    tracker: Any = spark.sparkContext.statusTracker()._jtracker  # the values, without a call for each field
    return any(_was_retried(tracker, stage) for stage in stages)


def _was_retried(tracker: Any, stage: int, seconds_max: float = EVENTS_SECONDS_MAX) -> bool:
    """What happened is known a moment later, when Spark's listeners have been told.

    Waiting until they have nothing more to hear would be simpler, but beside other queries that moment may never come.
    """
    deadline = time.monotonic() + seconds_max
    while True:
        info = tracker.getStageInfo(stage)
        if info is not None:
            if info.currentAttemptId():
                return True
            if info.numCompletedTasks() == info.numTasks():
                return False
        if time.monotonic() >= deadline:
            return True  # a stage that is forgotten already, or that nobody was told of, cannot vouch for itself
        time.sleep(LOOK_SECONDS)


def first_failure(spark: SparkSession) -> str:
    """The first failure of the stage that failed last, in Spark's words."""
    with contextlib.suppress(Py4JJavaError):  # it took too long: then what is known has to do
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(int(EVENTS_SECONDS_MAX * 1000))
    store = spark.sparkContext._jsc.sc().statusStore()
    jvm = spark._jvm
    assert jvm is not None, "there is a JVM behind this session"
    stages = jvm.scala.jdk.javaapi.CollectionConverters.asJava(_all_stages(store))
    failed = [stage for stage in stages if stage.numFailedTasks() > 0]
    if not failed:
        return "Spark does not remember it; look into the executors' logs"
    stage = max(failed, key=lambda stage: (stage.stageId(), stage.attemptId()))
    tasks = jvm.scala.jdk.javaapi.CollectionConverters.asJava(store.taskList(stage.stageId(), stage.attemptId(), 1000))
    messages = [(task.taskId(), task.errorMessage().get()) for task in tasks if task.errorMessage().isDefined()]
    return str(min(messages)[1]) if messages else "Spark does not remember it; look into the executors' logs"


def _all_stages(store: Any) -> Any:
    """Scala's defaults are methods to those who call it from elsewhere."""
    return store.stageList(None, *(getattr(store, f"stageList$default${number}")() for number in range(2, 6)))
