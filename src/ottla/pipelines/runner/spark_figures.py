"""What the driver's Spark says of itself when it is asked: a handful of calls to its JVM."""

from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from ottla.telemetry import pipelines
from ottla.telemetry.metric import Metric


def spark_figures(spark: SparkSession) -> dict[Metric, float]:
    """Nothing if its JVM does not answer: whether pipelines run is for others to say."""
    try:
        return _asked(spark)
    except (Py4JError, OSError):
        return {}


def _asked(spark: SparkSession) -> dict[Metric, float]:
    jvm: Any = spark.sparkContext._jvm
    runtime = jvm.java.lang.Runtime.getRuntime()
    collectors = jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()
    context: Any = spark.sparkContext._jsc.sc()
    executors = list(context.statusTracker().getExecutorInfos())
    return {
        pipelines.HEAP: runtime.totalMemory() - runtime.freeMemory(),
        pipelines.HEAP_MAX: runtime.maxMemory(),
        pipelines.COLLECTING: sum(each.getCollectionTime() for each in collectors) / 1000,
        # The driver is listed, too; it runs tasks only if there is nobody else.
        pipelines.EXECUTORS: len(executors) - (0 if context.isLocal() else 1),
        pipelines.RUNNING_TASKS: sum(each.numRunningTasks() for each in executors),
    }
