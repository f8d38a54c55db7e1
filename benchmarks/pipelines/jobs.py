"""One run of the orders example in a process of its own: with Ottla's pipelines, or written by hand with PySpark.

What it prints at the end is a line of JSON: the milliseconds of each batch, Spark's jobs and py4j's calls in a batch,
and seconds of processor time until the first batch was written and from there to the end.
"""

import itertools
import json
import os
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import py4j.java_gateway
import pyarrow.compute as pc
from confluent_kafka import Producer
from examples.orders.generator import Event, events
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from ottla.pipelines.runner.deploy import deploy
from ottla.pipelines.runner.deployment import SMALL_RECORDS
from ottla.pipelines.runner.queries import start_query
from ottla.pipelines.runner.topics import prepare_topics
from ottla.spark.session import build_session

FIGURES = "figures "
WAIT_S_MAX = 900
SEED, CUSTOMERS = 7, 400
_ORDER = "id STRING, customer STRING, item STRING, quantity INT, price_cents INT, at TIMESTAMP"
_CUSTOMER = "id STRING, name STRING, country STRING"

JOBS: dict[str, str] = {
    "copy": """
name: orders
sources: {orders: {topic: orders, start: earliest}}
sinks: [{topic: orders.sales}]
errors: {dead_letter: orders.dead}
limits: {max_records: 5000}
""",
    "filter": f"""
name: orders
sources: {{orders: {{topic: orders, format: json, schema: "{_ORDER}", start: earliest}}}}
steps: [{{filter: quantity BETWEEN 1 AND 100}}]
sinks: [{{topic: orders.sales, key: id, format: json}}]
errors: {{dead_letter: orders.dead}}
limits: {{max_records: 5000}}
""",
}
"""Pipelines beside the example itself. All are exactly once, with dead letters."""
EXAMPLE = "example"


class Calls:
    """How often Python asked the JVM for something."""

    def __init__(self) -> None:
        self.count = 0
        before = py4j.java_gateway.GatewayClient.send_command

        def counted(client: Any, *arguments: Any, **named: Any) -> Any:
            self.count += 1
            return before(client, *arguments, **named)

        py4j.java_gateway.GatewayClient.send_command = counted


def run_pipeline(spark: SparkSession, asked: dict[str, Any]) -> StreamingQuery:
    folder = Path(asked["folder"])
    deployment = deploy(folder / "pipeline.yaml", bootstrap=asked["bootstrap"], state_dir=folder / "state")
    prepare_topics(deployment)
    return start_query(deployment.plan.queries[0], deployment, spark, once=True).stream


def run_by_hand(spark: SparkSession, asked: dict[str, Any]) -> StreamingQuery:
    """The same steps with Spark's own connector: at least once, bad records left out and not kept."""
    client = {"kafka.bootstrap.servers": asked["bootstrap"]}
    folder = Path(asked["folder"])
    orders = spark.readStream.format("kafka").options(**client).option("subscribe", "orders")
    orders = orders.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", asked["batch"])
    if asked["job"] == EXAMPLE:
        writer = _example_by_hand(spark, client, folder, orders.load())
    else:
        rows = orders.load().select("key", "value")
        if asked["job"] == "filter":
            rows = _parsed(rows, _ORDER).select("r.*").filter("quantity BETWEEN 1 AND 100")
            rows = rows.select(sf.col("id").alias("key"), sf.to_json(sf.struct("*")).alias("value"))
        writer = rows.writeStream.format("kafka").options(**client).option("topic", "hand.sales")
    return writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()


def _parsed(frame: DataFrame, schema: str) -> DataFrame:
    row = sf.from_json(sf.col("value").cast("string"), schema).alias("r")
    return frame.select(row, *(name for name in ("key", "offset") if name in frame.columns))


def _example_by_hand(spark: SparkSession, client: dict[str, str], folder: Path, orders: DataFrame) -> DataStreamWriter:
    records = spark.read.format("kafka").options(**client).option("subscribe", "customers").load()
    last = _parsed(records, _CUSTOMER).groupBy("key").agg(sf.max_by("r", "offset").alias("r"))
    customers = last.select(sf.col("r.id").alias("customer"), "r.name", "r.country")
    rows = _parsed(orders, _ORDER).select("r.*").withWatermark("at", "30 minutes")
    rows = rows.dropDuplicatesWithinWatermark(["id"]).filter("quantity BETWEEN 1 AND 100")

    def total(batches: Any) -> Any:
        for batch in batches:
            yield batch.append_column("total_cents", pc.multiply(batch["quantity"], batch["price_cents"]).cast("int64"))

    def write(batch: DataFrame, number: int) -> None:
        known = batch.join(customers, "customer")
        priced = known.mapInArrow(total, f"{known.schema.toDDL()}, total_cents BIGINT").persist()
        value = sf.to_json(sf.struct("id", "customer", "name", "country", "item", "quantity", "total_cents", "at"))
        topic = priced.select(sf.col("id").alias("key"), value.alias("value")).write.format("kafka").options(**client)
        topic.option("topic", "hand.sales").save()
        priced.write.mode("append").partitionBy("country").parquet(str(folder / "lake"))
        priced.unpersist()

    return rows.writeStream.foreachBatch(write)


KINDS: dict[str, Callable[[SparkSession, dict[str, Any]], StreamingQuery]] = {
    "ottla": run_pipeline,
    "hand": run_by_hand,
}


def _session(asked: dict[str, Any]) -> SparkSession:
    """Ottla's, as `ottla pipeline run` makes it, or PySpark's as it comes; both shuffle to two partitions."""
    conf = {"spark.scheduler.mode": "FAIR", "spark.sql.shuffle.partitions": "2", **asked["conf"]}
    if asked["session"] == "ottla":
        small = asked["kind"] == "ottla" and all(size <= SMALL_RECORDS for size, _ in asked["sizes"])
        return build_session("benchmark", asked["master"], conf, small_batches=small)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("benchmark").master(asked["master"])
    for key, value in ({"spark.ui.enabled": "false", "spark.driver.memory": "1g"} | conf).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def figures(asked: dict[str, Any]) -> dict[str, Any]:
    """By the number of rows in a batch. All in one session, one size after the other."""
    began = psutil.Process().create_time()
    spark = _session(asked)
    start = {"session_s": time.time() - began}
    calls = Calls()
    feed = events(SEED, sum(size * count for size, count in asked["sizes"]), CUSTOMERS)
    found: dict[str, Any] = {}
    for size, count in asked["sizes"]:
        sending = time.time()
        _send(asked["bootstrap"], itertools.islice(feed, size * count))
        began += time.time() - sending  # making the data is nobody's start
        found[str(size)] = _one_size(spark, {**asked, "batch": size}, calls, found, began, start)
    spark.stop()
    return found


def _one_size(
    spark: SparkSession,
    asked: dict[str, Any],
    calls: Calls,
    found: dict[str, Any],
    began: float,
    start: dict[str, float],
) -> dict[str, Any]:
    text = JOBS.get(asked["job"]) or Path(asked["pipeline"]).read_text()
    file = Path(asked["folder"], "pipeline.yaml")
    file.write_text(re.sub(r"max_records: \d+", f"max_records: {asked['batch']}", text))
    query = KINDS[asked["kind"]](spark, asked)
    while not query.recentProgress and query.isActive:
        query.awaitTermination(1)
    cpu_first, calls_first = _cpu_by_process(), calls.count
    if not query.awaitTermination(WAIT_S_MAX):
        raise TimeoutError("the query did not end")
    cpu_all, calls_all = _cpu_by_process(), calls.count
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup(str(query.runId))
    reports = [json.loads(report.json()) for report in query._jsq.recentProgress()]
    # The last one has what rounding left over, a few rows.
    whole = [report for report in reports if report["numInputRows"] * 2 > asked["batch"]]
    batches = [report["durationMs"]["triggerExecution"] for report in whole]
    later = max(1, len(reports) - 1)
    parts = {key for report in reports for key in report["durationMs"]}
    figures = {
        "all_ms": batches,
        "batch_ms": statistics.median(batches[1:]),
        "rows_s": asked["batch"] * 1000 / statistics.median(batches[1:]),
        "parts_ms": {
            key: statistics.median(each["durationMs"].get(key, 0) for each in reports) for key in sorted(parts)
        },
        "input_rows": sum(report["numInputRows"] for report in reports),
        "jobs": len(jobs) / len(reports),
        "calls": (calls_all - calls_first) / later,
        "batch_cpu_s": (sum(cpu_all.values()) - sum(cpu_first.values())) / later,
        **{f"{kind}_cpu_s": (cpu_all[kind] - cpu_first[kind]) / later for kind in PROCESSES},
    }
    if not found:
        first = datetime.fromisoformat(reports[0]["timestamp"]).timestamp() + batches[0] / 1000
        figures |= start | {"first_s": first - began, "first_cpu_s": sum(cpu_first.values())}
    return figures


def _send(bootstrap: str, some: Iterable[Event]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for event in some:
        producer.produce("orders", event.value, event.key)
        producer.poll(0)
    producer.flush()


PROCESSES = ("java", "driver", "workers")


def _cpu_by_process() -> dict[str, float]:
    """Seconds so far: Spark's JVM, this process, and Python workers (with those that have ended)."""
    found = dict.fromkeys(PROCESSES, 0.0)
    root = psutil.Process()
    for process in [root, *root.children(recursive=True)]:
        try:
            times, name = process.cpu_times(), process.name()
        except psutil.NoSuchProcess:
            continue
        kind = "driver" if process.pid == root.pid else "java" if name == "java" else "workers"
        found[kind] += times.user + times.system
        found["workers"] += times.children_user + times.children_system
    return found


if __name__ == "__main__":
    print(FIGURES + json.dumps(figures(json.loads(sys.argv[1]))), flush=True)
