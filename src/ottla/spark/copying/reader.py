"""The driver's side of a copy: a streaming read of the source whose tasks write to the target."""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from ottla.client.settings import client_settings
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.copying.preparing import Preparing
from ottla.spark.copying.results import to_batch
from ottla.spark.copying.task import CopyTask, Ends, copy
from ottla.spark.reading import resolving
from ottla.spark.reading.flow_option import CopyTo, FlowOption
from ottla.spark.reading.offsets import StreamOffset, TopicIds
from ottla.spark.reading.pacing import share
from ottla.spark.reading.reader import StreamReader
from ottla.spark.worker_heap import freeze_modules


class CopyPartition(InputPartition):
    def __init__(self, task: CopyTask) -> None:
        super().__init__(task)


class CopyingReader(StreamReader):
    def __init__(self, options: Mapping[str, str], flow: FlowOption, copy_to: CopyTo) -> None:
        super().__init__(options, flow)
        self._copy_to = copy_to
        self._preparing: Preparing | None = None

    def _made_again(self, start: StreamOffset, before: TopicIds) -> set[str]:
        """No loss by itself: what the target's topic is a copy of is written there, and `preparing` compares it."""
        known = {**before, **start.topics}
        return {topic for topic, now in self._topic_ids.items() if known.get(topic, now) != now}

    def partitions(self, start: dict[str, object], end: dict[str, object]) -> Sequence[InputPartition]:
        return [CopyPartition(task) for task in loop.run(self._tasks(start, end))]

    async def _tasks(self, start: dict[str, object], end: dict[str, object]) -> list[CopyTask]:
        ranges = await self._plan(start, end)
        if not ranges:
            return []
        source = shared_cluster(self._options.consumer.client)
        if self._preparing is None:
            target = shared_cluster(client_settings(self._copy_to.target))
            self._preparing = Preparing(self._copy_to, source, target)
        partitions = await resolving.find_partitions(source, self._options.subscription)
        read = {found.partition for found in ranges}
        topics = {partition.topic for partition in read}
        copied = await self._preparing.prepare(
            {at: topic_id for at, topic_id in partitions.items() if at.topic in topics}
        )
        rate = share(self._flow.bytes_per_second, len(ranges))
        return [
            CopyTask(found.partition, found.end, self._preparing.source_of(partitions[found.partition]), rate)
            for found in ranges
            if found.partition in partitions
            and found.partition.topic in copied  # the next look tells what became of the others
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:
            return
        freeze_modules()
        options = self._options
        ends = Ends(
            options.consumer.client,
            client_settings(self._copy_to.target),
            options.consumer.fetch,
            options.fail_on_data_loss,
        )
        copied = loop.run(copy(partition.value, ends))
        yield to_batch(partition.value.partition, copied, include_headers=options.include_headers)
