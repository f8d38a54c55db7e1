"""What PySpark logs in a process that shows its users errors in words."""

import logging
import os

from pyspark.logger import PySparkLogger

LOG_LEVEL_VARIABLE = "OTTLA_SPARK_LOG_LEVEL"
"""Unset, Spark says nothing but what is in no exception; `warn`, `info` or `debug` shows its log."""
_LOGGERS_THAT_ALSO_THROW = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


def quiet_loggers() -> None:
    """What is raised is not logged as well, with all of Java's stack."""
    if LOG_LEVEL_VARIABLE not in os.environ:
        for logger in _LOGGERS_THAT_ALSO_THROW:
            PySparkLogger.getLogger(logger).setLevel(logging.CRITICAL)
