"""Appending batches of another cluster as they are: Ottla's own AppendMirrored, for mirrors that keep offsets and for
backups that come back as they were."""

import asyncio
import time
from enum import Enum
from typing import NamedTuple

from ottla.client.cluster import Cluster, error_code
from ottla.client.errors import UnsupportedByBroker
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition
from ottla.protocol.compression import Buffer
from ottla.protocol.messages.append_mirrored import (
    AppendMirroredRequest,
    AppendMirroredResponse,
    MirroredPartition,
    MirroredTopic,
)

BROKER_TIMEOUT_MS = 30_000
HEARD_S_MAX = 30.0
PAUSE_S = 0.05
LEAVE_START = -1
"""The log's beginning stays where it is."""

# Nothing is known of what became of the records, or the broker could not: sent again, they are known by their offsets.
_TRY_AGAIN = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


class LogBounds(NamedTuple):
    start: int
    end: int


class NotFollowingOn(ApiError):
    """The mirrored log does not end where the batches begin."""

    def __init__(self, message: str, bounds: LogBounds) -> None:
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, message)
        self.bounds = bounds


class MirroredLog:
    """One partition of the target, wherever its leader moves."""

    def __init__(self, cluster: Cluster, partition: TopicPartition, source: str) -> None:
        self.partition = partition
        self._cluster = cluster
        self._source = source
        self._leader: int | None = None

    async def append(self, fetch_offset: int, records: Buffer = b"", log_start_offset: int = LEAVE_START) -> LogBounds:
        """Append whole batches that were fetched from this offset on; returns when all in-sync replicas have them.

        Raises NotFollowingOn if the log ends before the offset. Without records it only asks.
        """
        piece = MirroredPartition(self.partition.partition, fetch_offset, log_start_offset, memoryview(records))
        topic = MirroredTopic(self.partition.topic, self._source, [piece])
        request = AppendMirroredRequest(BROKER_TIMEOUT_MS, [topic])

        async def attempt() -> LogBounds:
            if self._leader is None:
                self._leader = (await self._cluster.leader(self.partition)).node
            try:
                return await self._append_once(request, self._leader)
            except BaseException:
                self._leader = None
                raise

        return await self._cluster.retrying(attempt)

    async def _append_once(self, request: AppendMirroredRequest, leader: int) -> LogBounds:
        response = await self._cluster.call(request, AppendMirroredResponse, node=leader)
        found = response.topics[0].partitions[0]
        code, bounds = error_code(found.error_code), LogBounds(found.log_start_offset, found.log_end_offset)
        message = f"{self.partition}: {found.error_message or code.name}"
        if code in _TRY_AGAIN:
            raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, message)
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            raise NotFollowingOn(message, bounds)
        if code is not ErrorCode.NONE:
            raise ApiError(code, message)
        return bounds


async def bounds_once_heard(cluster: Cluster, partition: TopicPartition, source: str) -> LogBounds:
    """Where a log begins and ends, once its leader has heard what the topic's source is: it says no until then."""
    given_up_at = time.monotonic() + HEARD_S_MAX
    while True:
        try:
            return await MirroredLog(cluster, partition, source).append(0)
        except ApiError as error:
            if error.code is not ErrorCode.POLICY_VIOLATION or time.monotonic() > given_up_at:
                raise
        await asyncio.sleep(PAUSE_S)


class TakesBatches(Enum):
    """Whether a cluster takes batches as they are from this client."""

    YES = "it does"
    NOT_OTTLA = "it is not an Ottla cluster"
    FORBIDDEN = "that needs ClusterAction on the cluster"


async def takes_batches(cluster: Cluster) -> TakesBatches:
    """Asked with a topic that cannot be there, so nothing comes of it but the answer."""
    nothing = MirroredTopic("", "", [MirroredPartition(0, 0, LEAVE_START, b"")])

    async def attempt() -> AppendMirroredResponse:
        return await cluster.call(AppendMirroredRequest(BROKER_TIMEOUT_MS, [nothing]), AppendMirroredResponse)

    try:
        response = await cluster.retrying(attempt)
    except UnsupportedByBroker:
        return TakesBatches.NOT_OTTLA
    code = error_code(response.topics[0].partitions[0].error_code)
    return TakesBatches.FORBIDDEN if code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED else TakesBatches.YES
