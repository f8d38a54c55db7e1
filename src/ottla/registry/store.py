"""The topic `_schemas` as a store: read from its start, followed for ever, written by one instance at a time.

Who writes takes the producer id behind WRITER first, which raises its epoch, and appends a NOOP with it: from then on
the partition refuses whatever an earlier writer still sends, and what that one had sent before lies before the NOOP and
has been read when the first decision is taken.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence

from ottla.client.admin import Resource, ResourceType, create_topic, describe_configs
from ottla.client.cluster import Cluster, raise_for
from ottla.client.errors import ClientError
from ottla.client.fetch import Fetched, FetchSettings, OffsetOutOfRange, PartitionFetcher
from ottla.client.offsets import EARLIEST, LATEST, FoundOffset, list_offsets
from ottla.client.transacting import ProducerId, init_producer
from ottla.model.errors import ApiError, ErrorCode, OttlaError
from ottla.model.names import TopicPartition
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from ottla.protocol.records import NewRecord, decode_batch, encode_batch, iterate_batches
from ottla.registry.errors import Code, RegistryError
from ottla.registry.limits import RECORD_BYTES_MAX
from ottla.registry.records import NOOP_RECORD, RegistryRecord, read_record
from ottla.registry.state import RegistryState

logger = logging.getLogger(__name__)

SCHEMAS_TOPIC = "_schemas"
WRITER = "ottla-schema-registry"
"""The transactional id whose epoch tells writers apart; nothing is written in a transaction."""
WRITER_TIMEOUT_MS = 60_000
APPEND_SECONDS_MAX = 30.0
RETRY_PAUSE_S = 0.2
REPLICATION_FACTOR_MAX = 3
TOPIC_CONFIGS = {"cleanup.policy": "compact", "max.message.bytes": str(RECORD_BYTES_MAX)}
_BY_NAME_VERSION_MAX = 12
_ALL = -1
_RETRY = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})


class Fenced(OttlaError):
    """Another instance writes now, or it is not known what became of the last record. Whoever gets this stops."""


class SchemasTopic:
    """`connect` opens one more way to the cluster: a fetch that waits must not hold up a write."""

    def __init__(self, connect: Callable[[], Cluster], topic: str = SCHEMAS_TOPIC) -> None:
        self.state = RegistryState()
        self._partition = TopicPartition(topic, 0)
        self._reading, self._writing = connect(), connect()
        self._position = 0
        self._moved = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None
        self._producer: ProducerId | None = None
        self._sequence = 0
        self._leader: int | None = None

    async def open(self) -> None:
        """The topic is there, has been read to its end, and is followed from now on."""
        await self._make()
        self._position = await self._offset(EARLIEST)
        self._reader = asyncio.create_task(self._follow(), name="registry reader")
        await self.catch_up()

    async def close(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        await self._reading.close()
        await self._writing.close()

    async def catch_up(self) -> None:
        """What anybody has written before this call is in the state afterwards."""
        await self.wait_for(await self._offset(LATEST))

    async def wait_for(self, end: int) -> None:
        """Until everything below this offset has been replayed."""
        try:
            async with asyncio.timeout(APPEND_SECONDS_MAX):
                while self._position < end:
                    moved = self._moved
                    await moved.wait()
        except TimeoutError:
            raise RegistryError(
                Code.TIMEOUT,
                f"{self._partition.topic} could not be read up to offset {end} in {APPEND_SECONDS_MAX:g} s",
            ) from None

    # Writing.

    async def take_over(self) -> None:
        """Become the writer: nobody else's records are accepted when this returns, and all of them are known."""
        self._producer = await init_producer(self._writing, WRITER, WRITER_TIMEOUT_MS)
        self._sequence = 0
        await self.append([NOOP_RECORD])

    def give_up(self) -> None:
        self._producer = None

    async def append(self, written: Sequence[RegistryRecord]) -> None:
        """All or none, durable and replayed when this returns."""
        producer = self._producer
        if producer is None:
            raise Fenced("this instance does not write")
        now = int(time.time() * 1000)
        batch = encode_batch(
            [NewRecord(each.key_bytes(), each.value_bytes(), now) for each in written],
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=self._sequence,
        )
        try:
            async with asyncio.timeout(APPEND_SECONDS_MAX):
                end = await self._send(bytes(batch)) + len(written)
        except (TimeoutError, ApiError, ClientError) as error:
            if isinstance(error, ApiError) and error.code is ErrorCode.MESSAGE_TOO_LARGE:
                # Refused before its sequence was looked at: that number is still to come, and this instance writes on.
                raise RegistryError(
                    Code.TOO_LARGE,
                    f"the schema is larger than a record of {self._partition.topic} may be; its max.message.bytes says",
                ) from None
            self._producer = None
            raise Fenced(f"{self._partition.topic} cannot be written: {str(error) or 'no answer in time'}") from error
        self._sequence = (self._sequence + len(written)) & 0x7FFF_FFFF
        await self.wait_for(end)

    async def _send(self, batch: bytes) -> int:
        """The same batch again and again until it is known to be there: its sequence makes it one."""
        while True:
            try:
                return await self._send_once(batch)
            except ApiError as error:
                if not error.code.retriable and error.code not in _RETRY:
                    raise
            except ClientError as error:
                logger.warning("Cannot write to %s yet: %s", self._partition, error)
            self._leader = None
            await asyncio.sleep(RETRY_PAUSE_S)

    async def _send_once(self, batch: bytes) -> int:
        if self._leader is None:
            self._leader = (await self._writing.leader(self._partition)).node
        data = PartitionProduceData(index=self._partition.partition, records=batch)
        request = ProduceRequest(
            acks=_ALL,
            timeout_ms=int(APPEND_SECONDS_MAX * 1000),
            topic_data=[TopicProduceData(name=self._partition.topic, partition_data=[data])],
        )
        response = await self._writing.call(
            request, ProduceResponse, node=self._leader, max_version=_BY_NAME_VERSION_MAX
        )
        answer = response.responses[0].partition_responses[0]
        if answer.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER or (
            not answer.error_code and answer.base_offset < 0
        ):
            return await self._offset(LATEST)
        raise_for(answer.error_code, answer.error_message)
        return answer.base_offset

    # Reading.

    async def _follow(self) -> None:
        fetcher = PartitionFetcher(self._reading, self._partition, FetchSettings(committed=False))
        while True:
            try:
                self._take(await fetcher.fetch(self._position))
            except OffsetOutOfRange as error:
                logger.warning("%s; its records are read from there", error)
                self._position = error.log_start_offset
            except OttlaError as error:
                logger.warning("Cannot read %s yet: %s", self._partition, error)
                await asyncio.sleep(RETRY_PAUSE_S)

    def _take(self, fetched: Fetched) -> None:
        position = self._position
        for start, header in iterate_batches(fetched.records):
            if not header.is_control:
                for record in decode_batch(fetched.records, start):
                    if record.offset >= self._position:
                        found = read_record(record.key, record.value)
                        if found is None:
                            self.state.unread += 1
                        else:
                            self.state.replay(found, record.timestamp)
            position = max(position, header.base_offset + header.last_offset_delta + 1)
        if position != self._position:
            self._position = position
            moved, self._moved = self._moved, asyncio.Event()
            moved.set()

    async def _offset(self, which: int) -> int:
        found = (await list_offsets(self._writing, {self._partition: which}))[self._partition]
        if not isinstance(found, FoundOffset):
            raise ApiError(found, f"{self._partition}: {found.name}")
        return found.offset or 0

    async def _make(self) -> None:
        """With one partition, compacted for ever; a topic that would lose schemas is refused."""
        name = self._partition.topic
        await self._writing.retrying(lambda: self._writing.metadata([]))
        factor = min(REPLICATION_FACTOR_MAX, len(self._writing.brokers))
        try:
            await create_topic(self._writing, name, partitions=1, replication_factor=factor, configs=TOPIC_CONFIGS)
            logger.info("Created %s with replication factor %d", name, factor)
        except ApiError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
        with contextlib.suppress(ApiError):  # who may not see settings has to know them
            resource = Resource(ResourceType.TOPIC, name)
            configs = (await describe_configs(self._writing, [resource]))[resource]
            policy = next((each.value for each in configs if each.name == "cleanup.policy"), "compact")
            if policy != "compact":
                raise RegistryError(
                    Code.STORE, f"cleanup.policy of {name} is {policy}: schemas would be lost; set it to compact"
                )
