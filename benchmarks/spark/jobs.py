"""A Spark process that does the jobs it is told, one a line, and says how long each took.

One process has one format and one broker, so nothing of a connector is in the process that runs without it.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ottla.spark.session import build_session

READY = "ready"
FIGURES = "figures "


class Jobs:
    def __init__(self, spark: SparkSession, format_name: str, bootstrap: str, sink: Mapping[str, str]) -> None:
        self._spark = spark
        self._format = format_name
        self._client = {"kafka.bootstrap.servers": bootstrap}
        self._sink = dict(sink)

    def read(self, topic: str) -> dict[str, Any]:
        """Every record of a topic, all columns, to nowhere."""
        frame = self._spark.read.format(self._format).options(**self._client).option("subscribe", topic).load()
        started = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        return {"seconds": time.perf_counter() - started}

    def count(self, topic: str) -> dict[str, Any]:
        """How many records the topic holds, as this format reads it."""
        frame = self._spark.read.format(self._format).options(**self._client).option("subscribe", topic).load()
        return {"records": frame.count()}

    def write(self, topic: str, records: int, size: int) -> dict[str, Any]:
        """Generated rows to a topic: a key, and a value of `size` bytes."""
        rows = self._spark.range(records).selectExpr(
            "cast(id as string) as key", f"lpad(id, {size}, 'abcdefghij') as value"
        )
        started = time.perf_counter()
        writer = rows.write.format(self._format).mode("append").options(**self._client, **self._sink)
        writer.option("topic", topic).save()
        return {"seconds": time.perf_counter() - started}

    def follow(self, topic: str, rows_per_batch: int, into: str | None) -> dict[str, Any]:
        """A stream over a topic in small micro-batches, to nowhere or to another topic; milliseconds of each."""
        reader = self._spark.readStream.format(self._format).options(**self._client).option("subscribe", topic)
        frame = reader.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", rows_per_batch).load()
        with tempfile.TemporaryDirectory(prefix="ottla-bench-") as checkpoint:
            query = (
                self._stream(frame, into).option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
            )
            query.awaitTermination()
            progress = [json.loads(each.json) for each in query.recentProgress]
        batches = [each["durationMs"]["triggerExecution"] for each in progress if each["numInputRows"]]
        return {"batch_ms": batches, "records": sum(each["numInputRows"] for each in progress)}

    def _stream(self, frame: DataFrame, into: str | None) -> Any:
        if into is None:
            return frame.writeStream.format("noop")
        writer = frame.select("key", "value").writeStream.format(self._format).options(**self._client, **self._sink)
        return writer.option("topic", into)


def main() -> None:
    asked = json.loads(sys.argv[1])
    spark = build_session("benchmark", asked["master"], asked["conf"])
    spark.sparkContext.setLogLevel("ERROR")
    jobs = Jobs(spark, asked["format"], asked["bootstrap"], asked["sink"])
    print(READY, flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        job: Callable[..., dict[str, Any]] = getattr(jobs, command.pop("job"))
        print(FIGURES + json.dumps(job(**command)), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
