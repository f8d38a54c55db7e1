"""The two ends of a flow as parts of a pipeline: its source, and where offsets are kept also its sink.

In a standby's flow the tasks of the source do the copying (`ottla.spark.copying`): its rows only tell what was copied,
and the sink notes that.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from pyspark.sql import DataFrame

from ottla.client.groups import commit_offsets
from ottla.client.settings import client_settings
from ottla.model.errors import OttlaError
from ottla.model.names import TopicPartition
from ottla.pipelines.connectors.base import Batch, SourceContext, Written
from ottla.pipelines.connectors.options import ConnectorOptions
from ottla.pipelines.connectors.topic import TopicSource, TopicSourceOptions
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.copying.results import Copied, from_value
from ottla.spark.reading import flow_option
from ottla.spark.reading.flow_option import FlowOption


class FlowSourceOptions(TopicSourceOptions, frozen=True, kw_only=True):
    flow: FlowOption


class FlowSource(TopicSource):
    """Topics of a flow: it can be paused, and has a pace."""

    Options: ClassVar[type[TopicSourceOptions]] = FlowSourceOptions

    def __init__(self, options: FlowSourceOptions) -> None:
        super().__init__(options)
        self._flow = options.flow

    def stream(self, context: SourceContext) -> DataFrame:
        # Copies go further than the plan where there is more by then: the sink shows in the group what they say.
        return super().stream(context if self._flow.copy_to is None else replace(context, group=None))

    def _connection(self, context: SourceContext) -> dict[str, str]:
        return super()._connection(context) | flow_option.written(self._flow)


class StandbyOptions(ConnectorOptions, frozen=True, kw_only=True):
    standby: str
    """The cluster, by its name in the file."""
    source: dict[str, str]
    target: dict[str, str]
    """Settings of clients."""
    group: str
    """Of the source, for lag."""
    positions: str
    """Of the target: with the source's leader epochs, by which a truncated source is known."""


class StandbySink:
    KIND: ClassVar[str] = "standby"
    Options: ClassVar[type[StandbyOptions]] = StandbyOptions

    def __init__(self, options: StandbyOptions) -> None:
        self._options = options

    def problems(self) -> list[str]:
        return []

    def write(self, frame: DataFrame, batch: Batch) -> Written:
        """Run the copies, and note how far they are. What counts is in the target's logs: a note may be late."""
        rows = frame.select("topic", "partition", "value").collect()
        copied = {TopicPartition(row["topic"], row["partition"]): from_value(row["value"]) for row in rows}
        loop.run(self._note(copied))
        return Written(rows=sum(each.records for each in copied.values()))

    async def _note(self, copied: Mapping[TopicPartition, Copied]) -> None:
        new = {at: each for at, each in copied.items() if each.epoch >= 0}
        if new:
            await commit_offsets(
                shared_cluster(client_settings(self._options.target)),
                self._options.positions,
                {at: each.end for at, each in new.items()},
                epochs={at: each.epoch for at, each in new.items()},
            )
        if copied:
            try:
                await commit_offsets(
                    shared_cluster(client_settings(self._options.source)),
                    self._options.group,
                    {at: each.end for at, each in copied.items()},
                )
            except OttlaError:
                return  # the source may be gone by now: the group there is for lag alone


def positions_group(group: str) -> str:
    return f"{group}.positions"


def promoted_group(group: str) -> str:
    """Of the target: where topics ended when they were promoted, which is all that both clusters have."""
    return f"{group}.promoted"


def client_of(bootstrap: str, client: Mapping[str, Any]) -> dict[str, Any]:
    return {**client, "bootstrap.servers": bootstrap}
