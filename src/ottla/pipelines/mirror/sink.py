"""The end of a flow: records as they are, under the target's names, with a note of where each went."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ottla.model.names import TopicPartition
from ottla.pipelines.connectors.base import Batch, Written
from ottla.pipelines.connectors.options import ConnectorOptions
from ottla.pipelines.connectors.transactional import TopicTarget
from ottla.pipelines.errors import ConnectorProblem
from ottla.pipelines.mirror import naming
from ottla.pipelines.mirror.offset_map import Entry, to_notes
from ottla.pipelines.mirror.spec import Flow
from ottla.pipelines.mirror.topics import ensure_topics
from ottla.spark.headers import HEADERS, never_null
from ottla.spark.writing.batch_tasks import SOURCE_OFFSET
from ottla.spark.writing.copied import Note, Run

PROVENANCE = "ottla.mirror.from"
"""A header for each cluster that a record has come through: its id."""


class MirrorOptions(ConnectorOptions, frozen=True, kw_only=True):
    mirror: Flow
    cluster: str
    clusters: list[str]
    source_id: str


class MirrorSink:
    KIND: ClassVar[str] = "mirror"
    Options: ClassVar[type[MirrorOptions]] = MirrorOptions

    def __init__(self, options: MirrorOptions) -> None:
        self._options = options
        self._flow = options.mirror
        self._ready: set[TopicPartition] = set()
        self._sources: dict[TopicPartition, TopicPartition] = {}

    def problems(self) -> list[str]:
        return []

    def target(self) -> TopicTarget:
        return TopicTarget(topic=None, compression=self._flow.compression, exactly_once=True, in_plan=True)

    def columns(self, frame: DataFrame, base_dir: Path) -> list[Column]:
        headers = never_null(sf.col("headers"))
        if self._flow.provenance:
            came_from = sf.struct(
                sf.lit(PROVENANCE).alias("key"), sf.lit(self._options.source_id).cast("binary").alias("value")
            )
            headers = sf.concat(headers, sf.array(came_from).cast(HEADERS))
        return [
            sf.col("key"),
            sf.col("value"),
            headers.alias("headers"),
            self._name().alias("topic"),
            sf.col("partition"),
            sf.col("timestamp"),
            sf.col("offset").alias(SOURCE_OFFSET),
        ]

    def _name(self) -> Column:
        prefixed = sf.concat(sf.lit(f"{self._flow.source}{naming.SEPARATOR}"), sf.col("topic"))
        if self._flow.names == "prefix":
            return prefixed
        beats = sf.col("topic").rlike(naming.heartbeats_pattern(self._options.clusters))
        return sf.when(beats, prefixed).otherwise(sf.col("topic"))

    def write(self, frame: DataFrame, batch: Batch) -> Written:
        raise ConnectorProblem("copies are written by the runner, all of a batch in one transaction")

    # What the runner asks of a sink that copies.

    def prepare(self, clients: Callable[[str], Mapping[str, str]], read: Collection[TopicPartition]) -> None:
        self._sources = {self.written_to(partition): partition for partition in read}
        if self._sources.keys() <= self._ready:
            return
        ensure_topics(clients(self._flow.source), clients(self._flow.target), self._flow, self._sources)
        self._ready |= self._sources.keys()

    def written_to(self, partition: TopicPartition) -> TopicPartition:
        name = naming.remote_name(self._flow, partition.topic, self._options.clusters)
        return TopicPartition(name, partition.partition)

    def notes(self, copied: Mapping[TopicPartition, Sequence[Run]]) -> list[Note]:
        topic = naming.map_topic(self._flow)
        return [
            note
            for target, runs in sorted(copied.items())
            for note in to_notes(topic, Entry(self._sources[target], target, runs))
        ]
