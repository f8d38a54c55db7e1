"""What Spark remembers of its own jobs: whether a stage ran twice, and why a task failed first."""

from collections.abc import Collection

from pyspark.sql import SparkSession

EVENTS_WAIT_MS = 10_000


def was_stage_retried(spark: SparkSession, stages: Collection[int]) -> bool:
    """Whether a stage was submitted more than once. A task cannot see that: PySpark does not tell it."""
    tracker = spark.sparkContext.statusTracker()
    _events_are_in(spark)
    attempts = [info.currentAttemptId for stage in stages if (info := tracker.getStageInfo(stage)) is not None]
    # A stage that is forgotten already cannot vouch for itself.
    return len(attempts) < len(set(stages)) or any(attempts)


def first_failure(spark: SparkSession) -> str:
    """The first failure of the stage that failed last, in Spark's words."""
    _events_are_in(spark)
    store = spark.sparkContext._jsc.sc().statusStore()
    jvm = spark._jvm
    assert jvm is not None, "there is a JVM behind this session"
    stages = jvm.scala.jdk.javaapi.CollectionConverters.asJava(store.stageList(None))
    failed = [stage for stage in stages if stage.numFailedTasks() > 0]
    if not failed:
        return "Spark does not remember it; look into the executors' logs"
    stage = max(failed, key=lambda stage: (stage.stageId(), stage.attemptId()))
    tasks = jvm.scala.jdk.javaapi.CollectionConverters.asJava(store.taskList(stage.stageId(), stage.attemptId(), 1000))
    messages = [(task.taskId(), task.errorMessage().get()) for task in tasks if task.errorMessage().isDefined()]
    return str(min(messages)[1]) if messages else "Spark does not remember it; look into the executors' logs"


def _events_are_in(spark: SparkSession) -> None:
    """What happened is known to listeners a moment later."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(EVENTS_WAIT_MS)
