"""The Spark session that pipelines share."""

from collections.abc import Mapping

from pyspark.sql import SparkSession

from ottla.spark.session import build_session

# What Spark must never show of an option or setting, beyond what it hides by itself.
_HIDDEN = r"(?i)secret|password|passwd|token|credential|access[.]?key|jaas|sasl|private|api[.]?key"

DEFAULTS: Mapping[str, str] = {
    "spark.redaction.regex": _HIDDEN,
    "spark.sql.redaction.options.regex": rf"(?i)url|{_HIDDEN.removeprefix('(?i)')}",
    "spark.scheduler.mode": "FAIR",  # one pipeline's big batch does not hold up another's small one
    "spark.sql.streaming.stopTimeout": "60s",
}


def pipeline_session(name: str, master: str, conf: Mapping[str, str]) -> SparkSession:
    return build_session(name, master, {**DEFAULTS, **conf})
