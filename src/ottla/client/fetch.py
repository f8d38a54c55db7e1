"""Reading a partition's record batches as they lie in the log: raw, in order, a fetch ahead of whoever decodes them."""

import asyncio
import struct
import time
from collections.abc import AsyncGenerator
from typing import NamedTuple
from uuid import UUID

from ottla.client.cluster import Cluster, error_code
from ottla.client.errors import ClientError
from ottla.client.offsets import EARLIEST, FoundOffset, list_offsets
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import NO_TOPIC_ID, TopicPartition
from ottla.model.wire_numbers import READ_COMMITTED, READ_UNCOMMITTED
from ottla.protocol.compression import Buffer
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData

FETCH_BYTES_MAX = 50 * 1024 * 1024
PARTITION_BYTES_MAX = 4 * 1024 * 1024
WAIT_MS_MAX = 500
STALL_S_MAX = 120.0
EMPTY_PAUSE_S = 0.02
UNKNOWN_S_MAX = 3.0
"""For so long a topic that nobody knows may only be one that a broker which has just started does not know yet."""

_BY_NAME_VERSION_MAX = 12
_NO_SESSION = -1

_OFFSET_AND_LENGTH = struct.Struct(">qi")
_LAST_OFFSET_DELTA = struct.Struct(">i")
_LAST_OFFSET_DELTA_POSITION = 23

# A broker that has just started, or a follower that is behind, says these of offsets and topics that are there. Whether
# a topic is another one by now, the metadata will tell.
_PASSING = frozenset(
    {
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class FetchSettings(NamedTuple):
    """How to fetch, in the words of a consumer's settings."""

    committed: bool = True
    """Up to the last stable offset, with the aborted transactions; otherwise up to the high watermark."""
    max_bytes: int = FETCH_BYTES_MAX
    partition_max_bytes: int = PARTITION_BYTES_MAX
    min_bytes: int = 1
    max_wait_ms: int = WAIT_MS_MAX
    rack: str = ""
    """Where the reader is: a replica in the same rack serves it, if the brokers agree."""
    stall_s_max: float = STALL_S_MAX
    """Records that are said to be there and do not come for so long are an error."""


class Fetched(NamedTuple):
    """An answer. `records` may begin before the offset asked for and may end in the middle of a batch."""

    offset: int
    records: Buffer
    aborted: list[tuple[int, int]]
    """Producer id and first offset of the aborted transactions that overlap; only for committed reading."""
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int

    @property
    def next_offset(self) -> int:
        """Where the next fetch goes on: behind the last batch that is complete here."""
        return max(self.offset, _behind_last_batch(self.records, self.offset))


class OffsetOutOfRange(ClientError):
    """The partition does not have the offset asked for: it was deleted, or the log has become shorter."""

    def __init__(self, partition: TopicPartition, offset: int, log_start_offset: int) -> None:
        self.partition = partition
        self.offset = offset
        self.log_start_offset = log_start_offset
        super().__init__(f"{partition} has no offset {offset}; its log begins at {log_start_offset}")


class TopicReplaced(ClientError):
    """The topic was deleted, and another was made under its name."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"the topic `{topic}` was deleted and made again while it was read")


class FetchStalled(ClientError):
    """Records that the leader once said are there do not come."""


class PartitionFetcher:
    """Fetches from one partition, wherever its leader moves. Remembers which topic it began with."""

    def __init__(self, cluster: Cluster, partition: TopicPartition, settings: FetchSettings) -> None:
        self.partition = partition
        self._cluster = cluster
        self._settings = settings
        self._topic_id: UUID = NO_TOPIC_ID
        self._leader: int | None = None
        self._leader_epoch = -1
        self._replica: int | None = None
        self._unknown_since: float | None = None

    async def fetch(self, offset: int) -> Fetched:
        """One answer for this offset, which may be empty at the end of the log."""

        async def attempt() -> Fetched:
            try:
                return await self._fetch_once(offset)
            except (ApiError, ClientError):
                self._leader = self._replica = None
                raise

        try:
            return await self._cluster.retrying(attempt)
        except ApiError as error:
            if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
        raise OffsetOutOfRange(self.partition, offset, await self._log_start())

    async def _log_start(self) -> int:
        found = (await list_offsets(self._cluster, {self.partition: EARLIEST}))[self.partition]
        if not isinstance(found, FoundOffset):
            raise ApiError(found, f"{self.partition}: {found.name}")
        return found.offset or 0

    async def read(self, start: int, end: int) -> AsyncGenerator[Fetched, None]:
        """All answers that hold the offsets from `start` up to `end`; the next fetch is under way while one is used.

        Ends early where the log says that nothing is left below `end`: compaction may have taken the last offsets.
        """
        offset = start
        deadline = time.monotonic() + self._settings.stall_s_max
        ahead: asyncio.Task[Fetched] | None = None
        try:
            while offset < end:
                fetched = await (ahead if ahead is not None else self.fetch(offset))
                ahead = None
                if fetched.next_offset <= offset:
                    if len(fetched.records):
                        raise FetchStalled(
                            f"the batch of {self.partition} at offset {offset} did not fit into "
                            f"{self._settings.partition_max_bytes} bytes: raise max.partition.fetch.bytes"
                        )
                    if self._readable_up_to(fetched) >= end:
                        return
                    if time.monotonic() > deadline:
                        raise FetchStalled(
                            f"{self.partition} gave nothing from offset {offset} for {self._settings.stall_s_max:g} s, "
                            f"and can be read up to {self._readable_up_to(fetched)}, not {end}"
                        )
                    await asyncio.sleep(EMPTY_PAUSE_S)
                    continue
                offset = fetched.next_offset
                if offset < end:
                    ahead = asyncio.create_task(self.fetch(offset), name=f"fetch {self.partition} at {offset}")
                yield fetched
                deadline = time.monotonic() + self._settings.stall_s_max
        finally:
            if ahead is not None:
                ahead.cancel()

    def _readable_up_to(self, fetched: Fetched) -> int:
        return fetched.last_stable_offset if self._settings.committed else fetched.high_watermark

    async def _fetch_once(self, offset: int) -> Fetched:
        if self._leader is None:
            await self._find_leader()
        by_id = self._topic_id != NO_TOPIC_ID
        topic = FetchTopic(topic=self.partition.topic, topic_id=self._topic_id, partitions=[self._asked(offset)])
        request = FetchRequest(
            max_wait_ms=self._settings.max_wait_ms,
            min_bytes=self._settings.min_bytes,
            max_bytes=self._settings.max_bytes,
            isolation_level=READ_COMMITTED if self._settings.committed else READ_UNCOMMITTED,
            session_epoch=_NO_SESSION,
            topics=[topic],
            rack_id=self._settings.rack,
        )
        while True:
            response = await self._cluster.call(
                request,
                FetchResponse,
                node=self._replica if self._replica is not None else self._leader,
                # Kafka before 3.1 tells ids of topics and fetches by name: there a topic that was made again is
                # known by its leader epoch alone.
                max_version=None if by_id else _BY_NAME_VERSION_MAX,
            )
            if response.error_code:
                raise ApiError(error_code(response.error_code))
            if response.responses:
                break
            # A client that is over its quota gets an answer without partitions: it says nothing about the log.
            await asyncio.sleep(max(response.throttle_time_ms / 1000, EMPTY_PAUSE_S))
        found = response.responses[0].partitions[0]
        self._raise_for(found)
        if found.preferred_read_replica >= 0:
            self._replica = found.preferred_read_replica
        return Fetched(
            offset,
            found.records if found.records is not None else b"",
            [(aborted.producer_id, aborted.first_offset) for aborted in found.aborted_transactions or ()],
            found.high_watermark,
            found.last_stable_offset,
            found.log_start_offset,
        )

    def _asked(self, offset: int) -> FetchPartition:
        return FetchPartition(
            partition=self.partition.partition,
            current_leader_epoch=self._leader_epoch if self._replica is None else -1,
            fetch_offset=offset,
            partition_max_bytes=self._settings.partition_max_bytes,
        )

    def _raise_for(self, found: PartitionData) -> None:
        code = error_code(found.error_code)
        if code is ErrorCode.NONE:
            return
        behind = code is ErrorCode.OFFSET_OUT_OF_RANGE and self._replica is not None
        if code in _PASSING or behind:
            raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, f"{self.partition}: {code.name}")
        raise ApiError(code, f"{self.partition}: {code.name}")

    async def _find_leader(self) -> None:
        try:
            leader = await self._cluster.leader(self.partition)
        except ApiError as error:
            if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and self._may_come_back():
                raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, str(error)) from error
            raise
        self._unknown_since = None
        if self._topic_id not in (NO_TOPIC_ID, leader.topic_id):
            raise TopicReplaced(self.partition.topic)
        self._topic_id = leader.topic_id
        self._leader = leader.node
        self._leader_epoch = leader.epoch

    def _may_come_back(self) -> bool:
        now = time.monotonic()
        if self._unknown_since is None:
            self._unknown_since = now
        return now - self._unknown_since < UNKNOWN_S_MAX


def _behind_last_batch(records: Buffer, otherwise: int) -> int:
    position = 0
    length = len(records)
    last = -1
    while position + _OFFSET_AND_LENGTH.size <= length:
        _, batch_length = _OFFSET_AND_LENGTH.unpack_from(records, position)
        end = position + _OFFSET_AND_LENGTH.size + batch_length
        if end > length or batch_length <= 0:
            break
        last, position = position, end
    if last < 0:
        return otherwise
    base_offset, _ = _OFFSET_AND_LENGTH.unpack_from(records, last)
    (delta,) = _LAST_OFFSET_DELTA.unpack_from(records, last + _LAST_OFFSET_DELTA_POSITION)
    return int(base_offset) + int(delta) + 1
