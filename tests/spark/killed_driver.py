"""A driver of its own, to be killed: `python killed_driver.py stream|pipeline <arguments as JSON>`."""

import json
import sys

from pyspark.sql import DataFrame, SparkSession

from ottla.model.names import TopicPartition
from ottla.spark.resident.caller import lease, session_in
from ottla.spark.session import build_session
from ottla.spark.writing.batch_writer import write_batch


def stream(arguments: dict[str, str]) -> None:
    """From one topic to another with format("ottla"), until the input is at its end."""
    spark = build_session("killed", arguments["master"], {"spark.driver.memory": "512m"})
    options = {"kafka.bootstrap.servers": arguments["bootstrap"]}
    frame = spark.readStream.format("ottla").options(
        subscribe=arguments["source"], startingOffsets="earliest", **options
    )
    query = (
        frame.load().select("value").writeStream.format("ottla").options(topic=arguments["sink"], **options)
        .option("checkpointLocation", arguments["checkpoint"]).trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()


def pipeline(arguments: dict[str, str]) -> None:
    """One micro-batch with write_batch, as a pipeline does it. Its JVM can be another's: who writes is this process."""
    lent = lease()
    if lent is None:
        one_batch(build_session("killed", arguments["master"], {"spark.driver.memory": "512m"}), arguments)
        return
    with session_in(lent) as spark:
        one_batch(spark, arguments)


def one_batch(spark: SparkSession, arguments: dict[str, str]) -> None:
    rows = spark.range(0, int(arguments["rows"]), 1, 2).selectExpr(
        "CAST(NULL AS binary) AS key", "CAST(CAST(id AS string) AS binary) AS value",
        "CAST(NULL AS array<struct<key:string,value:binary>>) AS headers", f"'{arguments['sink']}' AS topic",
        "CAST(id % 2 AS int) AS partition", "CAST(NULL AS timestamp) AS timestamp",
    )  # fmt: skip
    written = write_batch(
        failing(rows, arguments.get("marker")), client={"bootstrap.servers": arguments["bootstrap"]},
        transactional_id=arguments["name"], group=arguments["name"], batch_id=0, query="q",
        offsets={TopicPartition(arguments["source"], 0): 7}, is_small=arguments.get("small") == "true",
    )  # fmt: skip
    print(json.dumps(written._asdict()))


def failing(frame: DataFrame, marker: str | None) -> DataFrame:
    """With a marker, the first task of the frame fails once after all of its rows have gone through."""
    if marker is None:
        return frame
    from tests.spark.breaking import break_once

    return frame.mapInArrow(break_once(marker), frame.schema)


if __name__ == "__main__":
    {"stream": stream, "pipeline": pipeline}[sys.argv[1]](json.loads(sys.argv[2]))
