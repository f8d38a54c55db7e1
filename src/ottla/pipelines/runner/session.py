"""The Spark session that pipelines share."""

from collections.abc import Mapping

from pyspark.sql import SparkSession

from ottla.spark.session import build_session

DEFAULTS: Mapping[str, str] = {
    "spark.scheduler.mode": "FAIR",  # one pipeline's big batch does not hold up another's small one
    "spark.sql.streaming.stopTimeout": "60s",
}


def pipeline_session(
    name: str, master: str, conf: Mapping[str, str], *, short_lived: bool = False, small_batches: bool = False
) -> SparkSession:
    return build_session(name, master, {**DEFAULTS, **conf}, short_lived=short_lived, small_batches=small_batches)
