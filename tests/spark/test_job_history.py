"""What Spark remembers of its jobs."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ottla.spark.job_history import first_failure, was_stage_retried


def broken(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.num_rows:
            raise ValueError("nobody knows this number")
        yield batch


def test_the_first_failure_of_a_job_is_told_in_its_words(spark: SparkSession) -> None:
    with pytest.raises(PySparkException):
        spark.range(3).mapInArrow(broken, "id bigint").collect()
    assert "nobody knows this number" in first_failure(spark)


def test_a_stage_that_ran_once_was_not_retried(spark: SparkSession) -> None:
    spark.sparkContext.setJobGroup("ran once", "")
    spark.range(3).collect()
    tracker = spark.sparkContext.statusTracker()
    (job,) = tracker.getJobIdsForGroup("ran once")
    info = tracker.getJobInfo(job)
    assert info is not None
    assert not was_stage_retried(spark, set(info.stageIds))
