"""Sealed record batches on their way to the leaders of their partitions.

Up to five requests are under way to a broker, each with at most one batch of a partition. Batches of a partition carry
their sequence from the moment they are handed over, so one that is sent again after a lost connection is the same
batch to the broker: it is appended once, in order. The first failure for good ends the producer; all calls then raise.
"""

import asyncio
import contextlib
import heapq
import time
from collections.abc import Iterable
from typing import NamedTuple, Protocol, Self

from ottla.client.cluster import Cluster, error_code
from ottla.client.connection import REQUEST_TIMEOUT_S, Connection
from ottla.client.errors import (
    ClientError,
    ConnectionLost,
    DeliveryTimeout,
    RecordsRefused,
    RequestTimeout,
    Unreachable,
)
from ottla.client.transacting import FENCED, LOST, NO_PRODUCER, SECOND, ProducerId, add_partitions, by_class
from ottla.model.errors import ApiError, ErrorCode, OttlaError
from ottla.model.names import TopicPartition
from ottla.protocol.compression import Buffer, Codec
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.protocol.records import BATCH_OVERHEAD, NO_SEQUENCE, TRANSACTIONAL, seal_batch

ALL = -1
IN_FLIGHT_MAX = 5
"""So many batches of a producer does a partition remember: more could not be told from new ones."""
REQUEST_BYTES_MAX = 1024 * 1024
BUFFER_BYTES_MAX = 32 * 1024 * 1024
DELIVERY_TIMEOUT_S = 120.0
PAUSE_FIRST_S = 0.02
PAUSE_MAX_S = 1.0

_BY_NAME_VERSION_MAX = 12  # from 13 on topics go by id
_FIRST_TRANSACTION_VERSION_MAX = 11
_SEQUENCE_MASK = 0x7FFF_FFFF

# Whoever answers with one of these is not the leader, or does not know yet that it is.
_ASK_FOR_LEADER = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.KAFKA_STORAGE_ERROR,
    }
)  # fmt: skip
_DONE = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})
_LOST_CONTACT = (ConnectionLost, RequestTimeout, Unreachable)


class Records(Protocol):
    """One batch for one partition, encoded and compressed, without producer and sequence."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def record_count(self) -> int: ...
    @property
    def base_timestamp(self) -> int: ...
    @property
    def max_timestamp(self) -> int: ...
    @property
    def payload(self) -> Buffer: ...
    @property
    def codec(self) -> Codec: ...


class ProducerLimits(NamedTuple):
    acks: int = ALL
    request_bytes_max: int = REQUEST_BYTES_MAX
    buffer_bytes_max: int = BUFFER_BYTES_MAX
    request_timeout_s: float = REQUEST_TIMEOUT_S
    delivery_timeout_s: float = DELIVERY_TIMEOUT_S
    in_flight_max: int = IN_FLIGHT_MAX


class Appended(NamedTuple):
    """A batch as its leader has it."""

    number: int
    """Batches of one partition were handed over in this order."""
    base_offset: int
    """-1 where the leader knows only that it has the batch."""
    record_count: int


class TransactionPart(NamedTuple):
    """The transaction that a producer writes in. It is begun and ended elsewhere: several producers may share it."""

    transactional_id: str
    producer: ProducerId
    version: int


class _Batch:
    __slots__ = ("data", "deadline", "first", "number", "partition", "record_count")

    def __init__(self, number: int, partition: TopicPartition, record_count: int, data: Buffer, deadline: float):
        self.number = number
        self.partition = partition
        self.record_count = record_count
        self.data = data
        self.deadline = deadline
        self.first = False
        """Whether everything before it was acknowledged when it was sent."""

    def __lt__(self, other: "_Batch") -> bool:
        return self.number < other.number


class _Lane:
    """The batches of one partition: waiting (a heap, oldest first) and under way."""

    __slots__ = ("flying", "leader", "next_sequence", "not_before", "partition", "pause_s", "takes_part", "waiting")

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.waiting: list[_Batch] = []
        self.flying: set[_Batch] = set()
        self.leader: int | None = None
        self.takes_part = False
        self.next_sequence = 0
        self.not_before = 0.0
        self.pause_s = PAUSE_FIRST_S

    def put_back(self, batch: _Batch, now: float) -> None:
        heapq.heappush(self.waiting, batch)
        self.not_before = now + self.pause_s
        self.pause_s = min(self.pause_s * 2, PAUSE_MAX_S)


class _Node:
    """What goes to one broker."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.wake = asyncio.Event()


class Producer:
    """Use it as an async context manager inside one event loop; `send` waits while too much is under way."""

    def __init__(
        self,
        cluster: Cluster,
        limits: ProducerLimits | None = None,
        *,
        producer: ProducerId = NO_PRODUCER,
        transaction: TransactionPart | None = None,
    ) -> None:
        self.limits = limits or ProducerLimits()
        self.record_counts: dict[TopicPartition, int] = {}
        """How many records each partition was given."""
        self.appended: dict[TopicPartition, list[Appended]] = {}
        """Where the batches of each partition went, in the order of the answers."""
        self._cluster = cluster
        self._producer = producer if transaction is None else transaction.producer
        self._transaction = transaction
        self._is_idempotent = self._producer.id >= 0
        if self._is_idempotent and self.limits.acks != ALL:
            raise ValueError("an idempotent producer needs acks=all")
        self._lanes: dict[TopicPartition, _Lane] = {}
        self._nodes: dict[int, _Node] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._next_number = 0
        self._buffered_bytes = 0
        self._outstanding = 0
        self._error: OttlaError | None = None
        self._progress = asyncio.Event()
        self._homeless = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._start(self._find_leaders(), "leaders of partitions")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Drop what is not yet acknowledged; `flush` first to keep it."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def send(self, records: Records) -> None:
        """Hand over a batch. Returns when there is room for it; whether it arrived is told by `flush`."""
        size = len(records.payload) + BATCH_OVERHEAD
        while self._buffered_bytes and self._buffered_bytes + size > self.limits.buffer_bytes_max:
            await self._next_progress()
        self._raise_failure()
        partition = TopicPartition(records.topic, records.partition)
        lane = self._lanes.get(partition)
        if lane is None:
            lane = self._lanes[partition] = _Lane(partition)
            self._homeless.set()
        batch = self._seal(lane, records)
        heapq.heappush(lane.waiting, batch)
        self.record_counts[partition] = self.record_counts.get(partition, 0) + records.record_count
        self._buffered_bytes += len(batch.data)
        self._outstanding += 1
        if lane.leader is not None:
            self._nodes[lane.leader].wake.set()

    async def send_all(self, batches: Iterable[Records]) -> None:
        for records in batches:
            await self.send(records)

    async def flush(self) -> None:
        """Wait until everything is acknowledged, or raise why it cannot be."""
        while self._outstanding:
            await self._next_progress()
        self._raise_failure()

    def _seal(self, lane: _Lane, records: Records) -> _Batch:
        sequence = lane.next_sequence if self._is_idempotent else NO_SEQUENCE
        lane.next_sequence = (lane.next_sequence + records.record_count) & _SEQUENCE_MASK
        data = seal_batch(
            records.payload,
            base_offset=0,
            leader_epoch=-1,
            attributes=records.codec | (TRANSACTIONAL if self._transaction is not None else 0),
            last_offset_delta=records.record_count - 1,
            base_timestamp=records.base_timestamp,
            max_timestamp=records.max_timestamp,
            producer_id=self._producer.id,
            producer_epoch=self._producer.epoch,
            base_sequence=sequence,
            record_count=records.record_count,
        )
        self._next_number += 1
        deadline = time.monotonic() + self.limits.delivery_timeout_s
        return _Batch(self._next_number, lane.partition, records.record_count, data, deadline)

    # Waiting, failing

    async def _next_progress(self) -> None:
        self._raise_failure()
        self._progress.clear()
        await self._progress.wait()
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._error is not None:
            raise self._error

    def _fail(self, error: OttlaError) -> None:
        if self._error is None:
            self._error = error
        self._lanes.clear()
        self._outstanding = self._buffered_bytes = 0
        self._progress.set()

    def _start(self, work: "asyncio._CoroutineLike[None]", name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            wrapped = error if isinstance(error, OttlaError) else ClientError(f"the producer broke: {error!r}")
            wrapped.__cause__ = None if wrapped is error else error
            self._fail(wrapped)

    # Leaders

    async def _find_leaders(self) -> None:
        """Give every partition its broker, and a part in the transaction; again for those that lost it."""
        pause_s = PAUSE_FIRST_S
        while True:
            wanted = [lane for lane in self._lanes.values() if lane.leader is None]
            if not wanted:
                self._homeless.clear()
                await self._homeless.wait()
                pause_s = PAUSE_FIRST_S
                continue
            await self._join_transaction(wanted)
            missing = await self._look_up(wanted)
            if missing is None:
                continue
            self._check_deadlines(wanted, missing)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, PAUSE_MAX_S)

    async def _join_transaction(self, wanted: list[_Lane]) -> None:
        new = [lane for lane in wanted if not lane.takes_part]
        if self._transaction is not None and self._transaction.version < SECOND and new:
            partitions = [lane.partition for lane in new]
            await add_partitions(
                self._cluster, self._transaction.transactional_id, self._transaction.producer, partitions
            )
        for lane in new:
            lane.takes_part = True

    async def _look_up(self, wanted: list[_Lane]) -> str | None:
        """Why some partitions have no leader now; None if all have."""
        try:
            groups, failed = await self._cluster.by_leader(lane.partition for lane in wanted)
        except _LOST_CONTACT as error:
            return str(error)
        for node, partitions in groups.items():
            for partition in partitions:
                lane = self._lanes.get(partition)
                if lane is not None:
                    lane.leader = node
            self._node(node).wake.set()
        if not failed:
            return None
        partition, code = next(iter(failed.items()))
        return f"{partition} has no leader ({code.name})"

    def _check_deadlines(self, lanes: Iterable[_Lane], reason: str) -> None:
        now = time.monotonic()
        for lane in lanes:
            if lane.waiting and lane.waiting[0].deadline < now:
                self._fail(self._delivery_timeout(lane.partition, reason))

    def _delivery_timeout(self, partition: TopicPartition, reason: str) -> DeliveryTimeout:
        seconds = self.limits.delivery_timeout_s
        return DeliveryTimeout(f"records for {partition} could not be delivered within {seconds:g} s: {reason}")

    # Sending

    def _node(self, node_id: int) -> _Node:
        node = self._nodes.get(node_id)
        if node is None:
            node = self._nodes[node_id] = _Node()
            self._start(self._send_to(node_id, node), f"records to broker {node_id}")
        return node

    async def _send_to(self, node_id: int, node: _Node) -> None:
        while True:
            batches, wait_s = self._gather(node_id) if node.in_flight < self.limits.in_flight_max else ([], None)
            if not batches:
                node.wake.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(node.wake.wait(), wait_s)
                continue
            try:
                connection = await self._cluster.connection(node_id)
            except (*_LOST_CONTACT, ApiError) as error:
                self._put_back(batches, str(error))
                continue
            node.in_flight += 1
            self._start(self._exchange(node, connection, batches), "one produce request")

    def _gather(self, node_id: int) -> tuple[list[_Batch], float | None]:
        """The next request's batches, oldest first of each partition; or how long until there may be some."""
        now = time.monotonic()
        batches: list[_Batch] = []
        size = 0
        soonest: float | None = None
        depth = IN_FLIGHT_MAX if self._is_idempotent else 1
        for lane in self._lanes.values():
            if lane.leader != node_id or not lane.waiting or len(lane.flying) >= depth:
                continue
            if lane.not_before > now:
                soonest = lane.not_before - now if soonest is None else min(soonest, lane.not_before - now)
                continue
            batch = lane.waiting[0]
            if batches and size + len(batch.data) > self.limits.request_bytes_max:
                continue
            batch.first = not lane.flying
            heapq.heappop(lane.waiting)
            lane.flying.add(batch)
            batches.append(batch)
            size += len(batch.data)
        if batches:
            self._last_come_first(batches)
        return batches, soonest

    def _last_come_first(self, batches: list[_Batch]) -> None:
        """Partitions just served go to the end of the line, so that a full request starves none."""
        for batch in batches:
            self._lanes[batch.partition] = self._lanes.pop(batch.partition)

    async def _exchange(self, node: _Node, connection: Connection, batches: list[_Batch]) -> None:
        request = self._request(batches)
        is_first_version = self._transaction is not None and self._transaction.version < SECOND
        max_version = _FIRST_TRANSACTION_VERSION_MAX if is_first_version else _BY_NAME_VERSION_MAX
        try:
            if self.limits.acks == 0:
                await connection.tell(request, max_version=max_version)
                for batch in batches:
                    self._done(batch)
            else:
                response = await connection.call(
                    request, ProduceResponse, max_version=max_version, timeout_s=self.limits.request_timeout_s
                )
                self._take_answers(batches, response)
        except _LOST_CONTACT as error:
            self._put_back(batches, str(error))
        finally:
            node.in_flight -= 1
            node.wake.set()

    def _request(self, batches: list[_Batch]) -> ProduceRequest:
        topics: dict[str, list[PartitionProduceData]] = {}
        for batch in batches:
            data = PartitionProduceData(index=batch.partition.partition, records=batch.data)
            topics.setdefault(batch.partition.topic, []).append(data)
        return ProduceRequest(
            transactional_id=None if self._transaction is None else self._transaction.transactional_id,
            acks=self.limits.acks,
            timeout_ms=int(self.limits.request_timeout_s * 1000),
            topic_data=[TopicProduceData(name=topic, partition_data=data) for topic, data in topics.items()],
        )

    # Answers

    def _take_answers(self, batches: list[_Batch], response: ProduceResponse) -> None:
        answers = {
            TopicPartition(topic.name, answer.index): answer
            for topic in response.responses
            for answer in topic.partition_responses
        }
        for batch in batches:
            answer = answers.get(batch.partition)
            if answer is None:
                self._fail(ClientError(f"the answer to a produce request says nothing of {batch.partition}"))
                return
            self._take_answer(batch, answer)

    def _take_answer(self, batch: _Batch, answer: PartitionProduceResponse) -> None:
        code = error_code(answer.error_code)
        if code in _DONE:
            known = self.appended.setdefault(batch.partition, [])
            known.append(Appended(batch.number, answer.base_offset, batch.record_count))
            self._done(batch)
        elif code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not batch.first:
            self._put_back([batch], "a batch before it has to be sent again", keep_leader=True)
        elif code.retriable:
            self._put_back([batch], answer.error_message or code.name, keep_leader=code not in _ASK_FOR_LEADER)
        else:
            self._fail(_refusal(batch.partition, code, answer.error_message))

    def _done(self, batch: _Batch) -> None:
        lane = self._lanes.get(batch.partition)
        if lane is None or batch not in lane.flying:
            return  # the producer has failed meanwhile
        lane.flying.discard(batch)
        lane.pause_s = PAUSE_FIRST_S
        self._buffered_bytes -= len(batch.data)
        self._outstanding -= 1
        self._progress.set()

    def _put_back(self, batches: list[_Batch], reason: str, *, keep_leader: bool = False) -> None:
        now = time.monotonic()
        for batch in batches:
            lane = self._lanes.get(batch.partition)
            if lane is None or batch not in lane.flying:
                continue
            if batch.deadline < now:
                self._fail(self._delivery_timeout(batch.partition, reason))
                return
            lane.flying.discard(batch)
            lane.put_back(batch, now)
            if not keep_leader:
                lane.leader = None
                self._homeless.set()


def _refusal(partition: TopicPartition, code: ErrorCode, message: str | None) -> ApiError:
    if code in FENCED or code in LOST:
        return by_class(ApiError(code, message), str(partition))
    advice = ""
    if code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE):
        advice = "; lower batch.size, or raise max.message.bytes of the topic if single records are that large"
    return RecordsRefused(code, f"{partition} refuses the records: {message or code.name}{advice}")
