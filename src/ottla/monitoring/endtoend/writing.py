"""Sends records at fixed times, whatever became of those before: a broker that hangs is asked again and again."""

import asyncio
import itertools
import json
import logging
import time
from collections.abc import Callable, Iterable

from ottla.client.cluster import Cluster, error_code, raise_for
from ottla.client.errors import ClientError
from ottla.model.errors import ApiError, ErrorCode, OttlaError
from ottla.monitoring.endtoend.leaders import Leaders
from ottla.monitoring.endtoend.settings import EndToEndSettings
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from ottla.protocol.records import NewRecord, encode_batch

logger = logging.getLogger(__name__)

RETRY_SECONDS = 0.05
GRACE_SECONDS = 0.25
_BY_NAME_VERSION_MAX = 12

# Whoever answers with one of these does not acknowledge the record, and another may: it is sent again.
_NOT_WRITTEN = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.BROKER_NOT_AVAILABLE,
    }
)  # fmt: skip


class Sent:
    """What became of one record. `offset` is None where nobody acknowledged it."""

    __slots__ = ("delay_ms", "index", "offset", "partition", "reason")

    def __init__(self, partition: int, index: int, offset: int | None, delay_ms: float, reason: str = "") -> None:
        self.partition = partition
        self.index = index
        self.offset = offset
        self.delay_ms = delay_ms
        self.reason = reason


class Writer:
    """`tell_sending` hears of each record before it leaves, `tell` what became of it.

    `partitions` are those to write to: only those that somebody reads from before the first record is in
    them, which otherwise would be taken for lost.
    """

    def __init__(
        self,
        settings: EndToEndSettings,
        cluster: Cluster,
        leaders: Leaders,
        producer_id: str,
        *,
        partitions: Callable[[], Iterable[int]],
        tell_sending: Callable[[int, int, int], None],
        tell: Callable[[Sent], None],
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._leaders = leaders
        self._producer_id = producer_id
        self._partitions = partitions
        self._tell_sending = tell_sending
        self._tell = tell
        self._paused = False
        self._next: dict[int, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        try:
            while True:
                for partition in () if self._paused else sorted(self._partitions()):
                    index = self._next.get(partition, 0)
                    self._next[partition] = index + 1
                    task = asyncio.create_task(self._send(partition, index), name=f"record {index} of {partition}")
                    self._tasks.add(task)
                    task.add_done_callback(self._ended)
                due = max(due + self._settings.delay_s, loop.time() - 1.0)  # after a pause of ours: no flood
                await asyncio.sleep(max(0.0, due - loop.time()))
        finally:
            await self.finish(0.0)

    def pause(self) -> None:
        """Send no more."""
        self._paused = True

    async def finish(self, seconds: float) -> None:
        """Wait for those under way; what is left then is cancelled."""
        if self._tasks and seconds > 0:
            await asyncio.wait(self._tasks, timeout=seconds)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("The monitor itself failed", exc_info=error)

    async def _send(self, partition: int, index: int) -> None:
        started = time.monotonic()
        now_ms = int(time.time() * 1000)
        self._tell_sending(partition, index, now_ms)
        offset: int | None = None
        reason = ""
        try:
            # Longer than a request gets: so it is the connection that gives up, and the next record has another.
            async with asyncio.timeout(self._settings.write_timeout_s + GRACE_SECONDS):
                deadline = started + self._settings.write_timeout_s
                offset = await self._until_written(partition, index, now_ms, deadline)
        except TimeoutError:
            reason = f"not acknowledged within {self._settings.write_timeout_s:g} s"
        except OttlaError as error:
            reason = str(error)
        if offset is None:
            self._leaders.look_again()
        self._tell(Sent(partition, index, offset, (time.monotonic() - started) * 1000, reason))

    async def _until_written(self, partition: int, index: int, now_ms: int, deadline: float) -> int:
        for attempt in itertools.count():
            leader = self._leaders.leader(partition)
            try:
                if leader is None:
                    raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {partition} has no leader")
                try:
                    await self._cluster.connection(leader)
                except ClientError as error:  # nothing was sent
                    raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE, str(error)) from error
                batch = self._record(index, attempt, now_ms)
                return await self._write(partition, leader, batch, max(0.0, deadline - time.monotonic()))
            except ApiError as error:
                if error.code not in _NOT_WRITTEN or time.monotonic() + RETRY_SECONDS > deadline:
                    raise
                self._leaders.look_again()
                await asyncio.sleep(RETRY_SECONDS)
        raise AssertionError("counting does not end")

    async def _write(self, partition: int, leader: int, batch: bytes, timeout_s: float) -> int:
        request = ProduceRequest(
            acks=self._settings.acks,
            timeout_ms=int(self._settings.write_timeout_s * 1000),
            topic_data=[
                TopicProduceData(
                    name=self._settings.topic, partition_data=[PartitionProduceData(index=partition, records=batch)]
                )
            ],
        )
        response = await self._cluster.call(
            request, ProduceResponse, node=leader, max_version=_BY_NAME_VERSION_MAX, timeout_s=timeout_s
        )
        answer = response.responses[0].partition_responses[0]
        raise_for(answer.error_code, answer.error_message or error_code(answer.error_code).name)
        return answer.base_offset

    def _record(self, index: int, attempt: int, now_ms: int) -> bytes:
        """As Xinfra Monitor writes them, so that either can read the other's."""
        document = {
            "topic": self._settings.topic,
            "time": now_ms,
            "index": index,
            "attempt": attempt,
            "producerId": self._producer_id,
            "content": "",
        }
        bare = len(json.dumps(document, separators=(",", ":")))
        document["content"] = "x" * max(0, self._settings.record_bytes - bare)
        value = json.dumps(document, separators=(",", ":")).encode()
        return bytes(encode_batch([NewRecord(None, value, now_ms)]))
