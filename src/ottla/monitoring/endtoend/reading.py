"""Reads the monitor's topic from its end on: one fetch at a time from each broker, for all that it leads."""

import asyncio
import json
import logging
from collections.abc import Callable

from ottla.client import offsets
from ottla.client.cluster import Cluster, error_code, raise_for
from ottla.model.errors import ApiError, ErrorCode, OttlaError
from ottla.model.names import TopicPartition
from ottla.monitoring.endtoend.leaders import Leaders
from ottla.monitoring.endtoend.settings import EndToEndSettings
from ottla.protocol.errors import CorruptBatch, MalformedMessage
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from ottla.protocol.records import decode_batch, iterate_batches

logger = logging.getLogger(__name__)

WAIT_MS = 250
PARTITION_BYTES = 1024 * 1024
FETCH_BYTES = 16 * 1024 * 1024
PAUSE_SECONDS = 0.1
_BY_NAME_VERSION_MAX = 12
_NO_SESSION = -1


class Reader:
    """`tell_read` hears of each record of ours, `tell_passed` how far a partition was read, `tell_failed` of errors."""

    def __init__(
        self,
        settings: EndToEndSettings,
        cluster: Cluster,
        leaders: Leaders,
        producer_id: str,
        *,
        tell_read: Callable[[int, int, int], None],
        tell_passed: Callable[[int, int], None],
        tell_rewound: Callable[[int, int], None],
        tell_failed: Callable[[str], None],
    ) -> None:
        self.positions: dict[int, int] = {}
        """Where each partition is read next."""
        self._settings = settings
        self._cluster = cluster
        self._leaders = leaders
        self._producer_id = producer_id
        self._tell_read = tell_read
        self._tell_passed = tell_passed
        self._tell_rewound = tell_rewound
        self._tell_failed = tell_failed

    async def seek_to_end(self) -> None:
        """Of partitions that have no position yet. To be called before the first record is sent to them."""
        new = [
            TopicPartition(self._settings.topic, each) for each in self._leaders.places if each not in self.positions
        ]
        found = await offsets.list_offsets(self._cluster, dict.fromkeys(new, offsets.LATEST)) if new else {}
        for partition, end in found.items():
            if not isinstance(end, offsets.FoundOffset):
                raise ApiError(end, f"the end of {partition} is not known: {end.name}")
            self.positions[partition.partition] = end.offset or 0

    async def run(self) -> None:
        """One task for each broker that there is; brokers come and go."""
        reading: dict[int, asyncio.Task[None]] = {}
        try:
            while True:
                for broker in self._leaders.brokers:
                    if broker not in reading or reading[broker].done():
                        reading[broker] = asyncio.create_task(self._read_from(broker), name=f"reader of {broker}")
                await asyncio.sleep(PAUSE_SECONDS)
        finally:
            for task in reading.values():
                task.cancel()
            await asyncio.gather(*reading.values(), return_exceptions=True)

    async def _read_from(self, broker: int) -> None:
        while broker in self._leaders.brokers:
            mine = [number for number, place in self._leaders.places.items() if place.leader == broker]
            if not all(number in self.positions for number in mine):
                mine = await self._with_positions(mine)
            if not mine:
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            try:
                if not await self._fetch(broker, mine):
                    self._leaders.look_again()
                    await asyncio.sleep(PAUSE_SECONDS)
            except OttlaError as error:
                self._tell_failed(str(error))
                self._leaders.look_again()
                await asyncio.sleep(PAUSE_SECONDS)

    async def _with_positions(self, mine: list[int]) -> list[int]:
        try:
            await self.seek_to_end()
        except OttlaError as error:
            self._tell_failed(str(error))
        return [number for number in mine if number in self.positions]

    async def _fetch(self, broker: int, partitions: list[int]) -> bool:
        """Whether it still leads them all."""
        asked = [
            FetchPartition(partition=number, fetch_offset=self.positions[number], partition_max_bytes=PARTITION_BYTES)
            for number in partitions
        ]
        request = FetchRequest(
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            session_epoch=_NO_SESSION,
            topics=[FetchTopic(topic=self._settings.topic, partitions=asked)],
        )
        response = await self._cluster.call(request, FetchResponse, node=broker, max_version=_BY_NAME_VERSION_MAX)
        raise_for(response.error_code)
        leads = True
        for topic in response.responses:
            for found in topic.partitions:
                code = error_code(found.error_code)
                if code is ErrorCode.OFFSET_OUT_OF_RANGE:
                    await self._find_again(found.partition_index)
                elif code is not ErrorCode.NONE:
                    leads = False
                    self._tell_failed(f"partition {found.partition_index}: {code.name}")
                else:
                    self._take(found)
        return leads

    def _take(self, found: PartitionData) -> None:
        number = found.partition_index
        before = position = self.positions[number]
        records = found.records if found.records is not None else b""
        for start, header in iterate_batches(records):
            if not header.is_control:
                try:
                    batch = decode_batch(records, start)
                except (CorruptBatch, MalformedMessage) as error:
                    self._tell_failed(f"partition {number}: {error}")  # and what was in it will be missed
                    batch = []
                for record in batch:
                    ours = self._ours(record.value) if record.offset >= position else None
                    if ours is not None:
                        self._tell_read(number, *ours)
            position = max(position, header.next_offset)
        self.positions[number] = position
        if position != before:
            self._tell_passed(number, position)

    def _ours(self, value: bytes | None) -> tuple[int, int] | None:
        """Index and attempt of a record that this monitor has written; others may write to the topic, too."""
        try:
            document = json.loads(value or b"")
            if document["producerId"] != self._producer_id:
                return None
            return int(document["index"]), int(document["attempt"])
        except (ValueError, TypeError, KeyError):
            return None

    async def _find_again(self, number: int) -> None:
        """The log was cut, at its beginning by retention or at its end by a leader that had less."""
        partition = TopicPartition(self._settings.topic, number)
        for time in (offsets.EARLIEST, offsets.LATEST):
            found = (await offsets.list_offsets(self._cluster, {partition: time})).get(partition)
            if not isinstance(found, offsets.FoundOffset) or found.offset is None:
                return
            position = self.positions[number]
            if time == offsets.EARLIEST and found.offset > position:
                self.positions[number] = found.offset
                self._tell_passed(number, found.offset)
                return
            if time == offsets.LATEST and found.offset < position:
                self.positions[number] = found.offset
                self._tell_rewound(number, found.offset)
