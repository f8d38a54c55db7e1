"""Dead letters back to where they came from.

A letter is sent once. What was sent is noted in the topic `<dead letters>.replayed`, one record for each letter, in the
same transaction that sends it; so it holds whatever is killed and when, and whoever reads that topic knows.
"""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from ottla.client import admin
from ottla.client.cluster import Cluster
from ottla.client.settings import client_settings
from ottla.pipelines.errors import FatalFailure
from ottla.pipelines.frames import TOPIC_ROW
from ottla.pipelines.runner import dead_letters
from ottla.pipelines.runner.batches import kept_frames
from ottla.pipelines.runner.deployment import Deployment
from ottla.pipelines.runner.failures import the_point
from ottla.pipelines.runner.topics import create_topic
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.moments import in_utc
from ottla.spark.writing.batch_writer import write_batch

_PLACE = re.compile(r"(?P<partition>\d+):(?P<offset>\d+)")

# What `--where` can speak of, beside what the letter itself is.
COLUMNS = (
    "partition", "offset", "timestamp", "step", "error", "row", "source",
    "source_topic", "source_partition", "source_offset", "source_timestamp", "key", "value",
)  # fmt: skip


@dataclass(frozen=True)
class Letter:
    """One that was chosen, as it is shown."""

    partition: int
    offset: int
    step: str | None
    error: str | None
    source_topic: str | None
    source_partition: int | None
    source_offset: int | None
    source_timestamp: datetime | None


def parse_places(text: str) -> list[tuple[int, int]]:
    """`0:12,0:15`: partitions and offsets of the dead-letter topic."""
    places = []
    for item in text.split(","):
        found = _PLACE.fullmatch(item.strip())
        if found is None:
            raise FatalFailure(f"--offsets wants partition:offset,... such as 0:12,0:15; not `{item}`")
        places.append((int(found["partition"]), int(found["offset"])))
    return places


def replay(
    deployment: Deployment, spark: SparkSession, *, where: str | None, places: Sequence[tuple[int, int]], send: bool
) -> list[Letter]:
    """Choose letters that were not sent yet, send them, and say which they were."""
    topic = deployment.checked.spec.errors.dead_letter
    if topic is None:
        raise FatalFailure(f"{deployment.plan.name} has no dead letters: `errors.dead_letter` names no topic")
    replayed = f"{topic}.replayed"
    cluster = letters_cluster(deployment)
    there = loop.run(_topics(shared_cluster(client_settings(deployment.kafka(cluster)))))
    if topic not in there:
        return []
    with kept_frames() as keep:
        letters = _letters(deployment, spark, topic)
        if replayed in there:
            letters = letters.join(_sent(deployment, spark, replayed), ["partition", "offset"], "left_anti")
        chosen = keep(_choose(letters, where, places))
        told = chosen.drop("key_bytes", "value_bytes", "headers")
        shown = [_shown(row.asDict()) for row in in_utc(told.collect(), told.schema)]
        _refuse_letters_without_topic(shown, there)
        if send and shown:
            if replayed not in there:
                loop.run(create_topic(deployment.kafka(cluster), replayed, {"cleanup.policy": "compact"}))
            _send(deployment, chosen, replayed)
    return sorted(shown, key=lambda letter: (letter.partition, letter.offset))


def letters_cluster(deployment: Deployment) -> str | None:
    """Where the dead letters are. They go back in one transaction, so the topics they came from must be there, too."""
    clusters = {query.target_cluster for query in deployment.plan.queries}
    clusters |= {query.source_cluster for query in deployment.plan.queries}
    if len(clusters) > 1:
        raise FatalFailure("the dead letters are in one cluster and what they were is in another: send them by hand")
    return clusters.pop()


async def _topics(cluster: Cluster) -> set[str]:
    return {topic.name for topic in await admin.list_topics(cluster)}


def _letters(deployment: Deployment, spark: SparkSession, topic: str) -> DataFrame:
    records = _read(deployment, spark, topic)
    said = {
        "pipeline": dead_letters.PIPELINE,
        "step": dead_letters.STEP,
        "error": dead_letters.MESSAGE,
        "row": dead_letters.ROW,
        "source": dead_letters.SOURCE,
        "source_topic": dead_letters.TOPIC,
    }
    numbers = {"source_partition": (dead_letters.PARTITION, "int"), "source_offset": (dead_letters.OFFSET, "bigint")}
    letters = records.select(
        "partition",
        "offset",
        "timestamp",
        "headers",
        sf.col("key").alias("key_bytes"),
        sf.col("value").alias("value_bytes"),
        sf.col("key").cast("string").alias("key"),
        sf.col("value").cast("string").alias("value"),
        *(_header(header).alias(name) for name, header in said.items()),
        *(_header(header).cast(kind).alias(name) for name, (header, kind) in numbers.items()),
        sf.timestamp_millis(_header(dead_letters.TIMESTAMP).cast("bigint")).alias("source_timestamp"),
    )
    return letters.filter(sf.col("pipeline") == deployment.plan.name)


def _sent(deployment: Deployment, spark: SparkSession, replayed: str) -> DataFrame:
    place = sf.split(sf.col("key").cast("string"), ":")
    return _read(deployment, spark, replayed).select(
        place[0].cast("int").alias("partition"), place[1].cast("bigint").alias("offset")
    )


def _read(deployment: Deployment, spark: SparkSession, topic: str) -> DataFrame:
    options = {f"kafka.{name}": value for name, value in deployment.kafka(letters_cluster(deployment)).items()}
    return spark.read.format("ottla").options(**options, subscribe=topic, includeHeaders="true").load()


def _header(name: str) -> Column:
    """The last header of this name as text: an original record may have been a dead letter before."""
    found = sf.filter(sf.col("headers"), lambda header: header["key"] == name)
    return sf.try_element_at(found, sf.lit(-1))["value"].cast("string")


def _choose(letters: DataFrame, where: str | None, places: Sequence[tuple[int, int]]) -> DataFrame:
    if places:
        wanted = [(sf.col("partition") == partition) & (sf.col("offset") == offset) for partition, offset in places]
        condition = wanted[0]
        for other in wanted[1:]:
            condition = condition | other
        letters = letters.filter(condition)
    if where is None:
        return letters
    try:
        return letters.filter(where)
    except PySparkException as error:
        raise FatalFailure(
            f"--where `{where}` cannot be used: {the_point(str(error))}. Columns: {', '.join(COLUMNS)}"
        ) from None


def _shown(row: dict[str, Any]) -> Letter:
    return Letter(**{name: row[name] for name in Letter.__dataclass_fields__})


def _refuse_letters_without_topic(letters: Sequence[Letter], there: set[str]) -> None:
    for letter in letters:
        place = f"{letter.partition}:{letter.offset}"
        if letter.source_topic is None:
            raise FatalFailure(f"letter {place} never was a record of a topic: it cannot be sent back; leave it out")
        if letter.source_topic not in there:
            raise FatalFailure(f"letter {place} came from topic {letter.source_topic}, which is gone; leave it out")


def _send(deployment: Deployment, letters: DataFrame, replayed: str) -> None:
    name = f"ottla.{deployment.plan.name}.replay"
    kept = sf.filter(sf.col("headers"), lambda header: ~header["key"].startswith(dead_letters.PREFIX))
    null = sf.lit(None)
    back = letters.select(
        sf.col("key_bytes").alias("key"),
        sf.col("value_bytes").alias("value"),
        kept.alias("headers"),
        sf.col("source_topic").alias("topic"),
        sf.col("source_partition").alias("partition"),
        null.cast("timestamp").alias("timestamp"),
    )
    place = sf.concat_ws(":", "partition", "offset")
    note = sf.to_json(sf.struct("source_topic", "source_partition", "source_offset", "step", "error"))
    notes = letters.select(
        place.cast("binary").alias("key"),
        note.cast("binary").alias("value"),
        null.cast(TOPIC_ROW["headers"].dataType).alias("headers"),
        sf.lit(replayed).alias("topic"),
        null.cast("int").alias("partition"),
        null.cast("timestamp").alias("timestamp"),
    )
    written = write_batch(
        back.unionByName(notes).to(TOPIC_ROW),
        client=deployment.kafka(letters_cluster(deployment)),
        transactional_id=name,
        group=name,
        batch_id=time.time_ns() // 1_000_000,
        offsets={},
        query=name,
    )
    if written.already_there:
        raise FatalFailure("this machine's clock stands before that of the last replay: nothing was sent")
