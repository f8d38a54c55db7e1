"""Clients of the simulated cluster: they speak through real connections, try again as clients do, and remember all.

What they did and were told goes into one history in the form of tests/transactions, so its checker judges them too. A
send that is not part of a transaction counts as a transaction of its own that is committed when it is acknowledged.
"""

import asyncio
import itertools
import random
import struct
from collections.abc import Awaitable, Iterable
from typing import NamedTuple, TypeVar

from tests.simulation.loop import Host, SimulatedLoop, host_context
from tests.transactions.history import AnyOperation, Assign, Commit, Outcome, Poll, Send

from ottla.client.connection import Connection
from ottla.client.errors import ClientError
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.protocol.records import NewRecord, decode_batch, encode_batch, iterate_batches
from ottla.protocol.schema import TopLevel

R = TypeVar("R", bound=TopLevel)
T = TypeVar("T")

BASE_PORT = 9_000
REQUEST_SECONDS_MAX = 3.0
CONNECT_SECONDS_MAX = 1.5
RETRY_SECONDS = 0.1
PRODUCE_BY_NAME_VERSION_MAX = 12
FETCH_BY_NAME_VERSION_MAX = 12
FETCH_BYTES_MAX = 64 * 1024
GROUP, TRANSACTION = 0, 1
LATEST = -1
_VALUE = struct.Struct(">q")

ACCEPTED = (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
FORGOTTEN = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID)
"""What an idempotent producer is told when the broker does not know what came before."""

Failures = (ClientError, ApiError)
"""What a client meets when brokers fail: it looks again who leads and tries once more."""


class Acknowledged(NamedTuple):
    """A record that a broker said is safe."""

    partition: TopicPartition
    offset: int
    value: int
    at: int
    """When, in the order of the history."""


class Mark(NamedTuple):
    """A high watermark that a client was told: with a fetch, or when it asked for the end of the partition.

    A leader that has just taken over may know an older one than its predecessor told and says so with a fetch. Asked
    for the end it does not answer until it knows better (KIP-207).
    """

    is_end: bool
    partition: TopicPartition
    leader_epoch: int
    offset: int
    asked: int
    answered: int


class History:
    """What all clients of a run did and saw."""

    def __init__(self) -> None:
        self.operations: list[AnyOperation] = []
        self.acknowledged: list[Acknowledged] = []
        self.marks: list[Mark] = []
        self.broken_sequences: list[str] = []
        """Told to an idempotent producer that had left nothing out: the broker has forgotten what it acknowledged."""
        self.refused_transactions: list[str] = []
        """Told to a transactional producer that did nothing wrong and has its id for itself."""
        self.committed_positions: dict[tuple[str, TopicPartition], int] = {}
        """What a group's last acknowledged commit said."""
        self.lost_positions: list[str] = []
        self._positions_in_doubt: dict[tuple[str, TopicPartition], int] = {}
        self._ticks = itertools.count(1)
        self._processes = itertools.count(1)
        self._transactions = itertools.count(1)
        self._values = itertools.count(1)

    def position_in_doubt(self, group: str, partition: TopicPartition, position: int) -> None:
        """A commit was not answered: it may count any time, also after later ones."""
        known = self._positions_in_doubt.get((group, partition), position)
        self._positions_in_doubt[group, partition] = min(known, position)

    def least_position(self, group: str, partition: TopicPartition) -> int:
        """What a group must be told now, at least."""
        committed = self.committed_positions.get((group, partition), -1)
        return min(committed, self._positions_in_doubt.get((group, partition), committed))

    def now(self) -> int:
        return next(self._ticks)

    def new_process(self) -> int:
        return next(self._processes)

    def new_transaction(self) -> int:
        return next(self._transactions)

    def new_value(self) -> int:
        return next(self._values)

    def invoke(self, operation: AnyOperation) -> None:
        self.operations.append(operation)

    def complete(self, operation: AnyOperation, outcome: Outcome) -> None:
        operation.completed = self.now()
        operation.outcome = outcome

    def polled(self, process: int, partition: TopicPartition, found: list[tuple[int, int]], *, committed: bool) -> None:
        if found:
            poll = Poll(
                process=process, invoked=self.now(), partition=partition, committed_only=committed,
                offsets=[offset for offset, _ in found], values=[value for _, value in found],
            )  # fmt: skip
            self.invoke(poll)
            self.complete(poll, Outcome.OK)


class Client:
    """Connections to brokers, and what it knows of who leads what."""

    def __init__(
        self, host: Host, brokers: Iterable[int], chance: random.Random, history: History, *, loop: SimulatedLoop
    ) -> None:
        self.host = host
        self._loop = loop
        self.history = history
        self._chance = chance
        self._brokers = list(brokers)
        self._connections: dict[int, Connection] = {}
        self._leaders: dict[TopicPartition, tuple[int, int]] = {}

    def host_task(self, work: Awaitable[T]) -> "asyncio.Future[T]":
        """Something that this client does."""
        return self._loop.create_task(work, context=host_context(self.host))

    async def call(
        self, broker: int, request: TopLevel, answer: type[R], *, max_version: int | None = None,
        timeout_s: float = REQUEST_SECONDS_MAX,
    ) -> R:  # fmt: skip
        connection = await self.connected(broker)
        return await connection.call(request, answer, timeout_s=timeout_s, max_version=max_version)

    async def connected(self, broker: int) -> Connection:
        connection = self._connections.get(broker)
        if connection is None or not connection.usable:
            connection = self._connections[broker] = await Connection.open(
                f"broker-{broker}", BASE_PORT + broker, client_id=self.host.name, timeout_s=CONNECT_SECONDS_MAX
            )
        return connection

    def any_broker(self) -> int:
        return self._chance.choice(self._brokers)

    async def pause(self, longest: float = RETRY_SECONDS) -> None:
        await asyncio.sleep((0.2 + self._chance.random()) * longest)

    async def leader(self, partition: TopicPartition) -> tuple[int, int]:
        """Who leads it, and in which epoch."""
        if partition not in self._leaders:
            await self._look_up(partition.topic)
        if partition not in self._leaders:
            raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE)
        return self._leaders[partition]

    def forget_leader(self, partition: TopicPartition) -> None:
        self._leaders.pop(partition, None)

    async def _look_up(self, topic: str) -> None:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        response = await self.call(self.any_broker(), request, MetadataResponse)
        for found in response.topics:
            _raise(found.error_code)
            for each in found.partitions:
                if each.leader_id >= 0:
                    where = TopicPartition(topic, each.partition_index)
                    self._leaders[where] = (each.leader_id, each.leader_epoch)

    async def coordinator(self, key: str, kind: int) -> int:
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        response = await self.call(self.any_broker(), request, FindCoordinatorResponse)
        _raise(response.coordinators[0].error_code)
        return response.coordinators[0].node_id

    async def produce(
        self, partition: TopicPartition, batch: bytearray, *, acks: int, transactional_id: str | None = None,
        max_version: int = PRODUCE_BY_NAME_VERSION_MAX, connection: Connection | None = None,
    ) -> PartitionProduceResponse:  # fmt: skip
        """Through this very connection, or whichever there is to the leader."""
        data = PartitionProduceData(index=partition.partition, records=batch)
        request = ProduceRequest(
            transactional_id=transactional_id, acks=acks, timeout_ms=2_000,
            topic_data=[TopicProduceData(name=partition.topic, partition_data=[data])],
        )  # fmt: skip
        if connection is None:
            connection = await self.connected((await self.leader(partition))[0])
        response = await connection.call(
            request, ProduceResponse, timeout_s=REQUEST_SECONDS_MAX, max_version=max_version
        )
        return response.responses[0].partition_responses[0]

    async def fetch(
        self, partition: TopicPartition, offset: int, *, committed: bool, wait_ms: int = 300
    ) -> PartitionData:
        broker, epoch = await self.leader(partition)
        wanted = FetchPartition(
            partition=partition.partition, current_leader_epoch=epoch, fetch_offset=offset,
            partition_max_bytes=FETCH_BYTES_MAX,
        )  # fmt: skip
        request = FetchRequest(
            max_wait_ms=wait_ms, min_bytes=1, max_bytes=FETCH_BYTES_MAX, isolation_level=int(committed),
            topics=[FetchTopic(topic=partition.topic, partitions=[wanted])],
        )  # fmt: skip
        asked = self.history.now()
        response = await self.call(broker, request, FetchResponse, max_version=FETCH_BY_NAME_VERSION_MAX)
        _raise(response.error_code)
        found = response.responses[0].partitions[0]
        _raise(found.error_code)
        mark = Mark(False, partition, epoch, found.high_watermark, asked, self.history.now())
        self.history.marks.append(mark)
        return found

    async def latest_offset(self, partition: TopicPartition, *, committed: bool = False) -> int:
        broker, epoch = await self.leader(partition)
        wanted = ListOffsetsPartition(partition_index=partition.partition, current_leader_epoch=epoch, timestamp=LATEST)
        request = ListOffsetsRequest(
            replica_id=-1, isolation_level=int(committed),
            topics=[ListOffsetsTopic(name=partition.topic, partitions=[wanted])],
        )  # fmt: skip
        asked = self.history.now()
        response = await self.call(broker, request, ListOffsetsResponse)
        found = response.topics[0].partitions[0]
        _raise(found.error_code)
        if not committed:
            self.history.marks.append(Mark(True, partition, epoch, found.offset, asked, self.history.now()))
        return found.offset

    async def new_producer_id(self) -> tuple[int, int]:
        while True:
            try:
                request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
                response = await self.call(self.any_broker(), request, InitProducerIdResponse)
                _raise(response.error_code)
            except Failures:
                await self.pause()
            else:
                return response.producer_id, response.producer_epoch


class PlainProducer(Client):
    """Sends batches one after the other: with acks=all idempotently, until each is acknowledged; with acks=1 once."""

    def __init__(
        self, host: Host, brokers: Iterable[int], chance: random.Random, history: History, *, loop: SimulatedLoop,
        partitions: list[TopicPartition], acks: int,
    ) -> None:  # fmt: skip
        super().__init__(host, brokers, chance, history, loop=loop)
        self.partitions = partitions
        self._acks = acks
        self._process = history.new_process()
        self._producer = (-1, -1)
        self._sequences: dict[TopicPartition, int] = {}
        self.stopping = False

    async def run(self) -> None:
        if self._acks == -1:
            self._producer = await self.new_producer_id()
        while not self.stopping:
            await self.send(self._chance.choice(self.partitions), self._chance.randint(1, 3))
            await self.pause(0.5)

    async def send(self, partition: TopicPartition, count: int) -> None:
        sends = self._new_sends(partition, count)
        offset = await (self._deliver(partition, sends) if self._acks == -1 else self._try(partition, sends))
        if offset is not None:
            self._acknowledged(sends, offset)

    def _new_sends(self, partition: TopicPartition, count: int) -> list[Send]:
        sends = []
        for _ in range(count):
            transaction = self.history.new_transaction()
            send = Send(
                process=self._process, invoked=self.history.now(), transaction=transaction, partition=partition,
                value=self.history.new_value(),
            )  # fmt: skip
            self.history.invoke(send)
            self.history.invoke(Commit(process=self._process, invoked=self.history.now(), transaction=transaction))
            sends.append(send)
        return sends

    def _acknowledged(self, sends: list[Send], offset: int) -> None:
        for number, send in enumerate(sends):
            self.history.complete(send, Outcome.OK)
            if self._acks == -1:  # what only the leader had may be lost, and its place taken
                send.offset = offset + number if offset >= 0 else None
                self.history.acknowledged.append(
                    Acknowledged(send.partition, send.offset if send.offset is not None else -1, send.value,
                                 self.history.now())
                )  # fmt: skip

    async def _deliver(self, partition: TopicPartition, sends: list[Send]) -> int | None:
        """Until it is acknowledged; None if this producer can never know."""
        sequence = self._sequences.get(partition, 0)
        while True:
            try:
                answer = await self.produce(partition, self._batch(sends, sequence), acks=-1)
            except Failures:
                self.forget_leader(partition)
                await self.pause()
                continue
            code = ErrorCode(answer.error_code)
            if code in ACCEPTED:
                self._sequences[partition] = sequence + len(sends)
                return answer.base_offset
            if code in FORGOTTEN:
                self.history.broken_sequences.append(f"{partition}: {code.name} at sequence {sequence}")
                await self._start_anew()
                return None
            if not code.retriable:
                raise ApiError(code, f"{partition}: {answer.error_message}")
            self.forget_leader(partition)
            await self.pause()

    async def _try(self, partition: TopicPartition, sends: list[Send]) -> int | None:
        try:
            answer = await self.produce(partition, self._batch(sends, -1), acks=self._acks)
        except Failures:
            self.forget_leader(partition)
            return None
        if answer.error_code:
            self.forget_leader(partition)
            return None
        return answer.base_offset

    async def _start_anew(self) -> None:
        self._process = self.history.new_process()
        self._sequences.clear()
        self._producer = await self.new_producer_id()

    def _batch(self, sends: list[Send], sequence: int) -> bytearray:
        identity = self._producer if sequence >= 0 else (-1, -1)
        return encode_sends(sends, identity, sequence)


def encode_sends(
    sends: list[Send], producer: tuple[int, int], sequence: int, *, transactional: bool = False
) -> bytearray:
    records = [NewRecord(timestamp=1_700_000_000_000, key=None, value=_VALUE.pack(send.value)) for send in sends]
    return encode_batch(
        records, producer_id=producer[0], producer_epoch=producer[1], base_sequence=sequence,
        transactional=transactional,
    )  # fmt: skip


def decode_values(records: bytes | bytearray | memoryview | None, offset: int, found: PartitionData, *,
                  committed: bool) -> tuple[list[tuple[int, int]], int]:  # fmt: skip
    """(offset, value) from `offset` on, without aborted records if `committed`; and where to go on."""
    values: list[tuple[int, int]] = []
    data = b"" if records is None else bytes(records)
    aborted = [(entry.producer_id, entry.first_offset) for entry in found.aborted_transactions or ()]
    out: set[int] = set()
    for position, header in iterate_batches(data):
        for entry in [each for each in aborted if each[1] <= header.last_offset]:
            aborted.remove(entry)
            out.add(entry[0])
        if header.is_control:
            out.discard(header.producer_id)
        elif not (committed and header.is_transactional and header.producer_id in out):
            for record in decode_batch(data, position):
                if record.offset >= offset:
                    assert record.value is not None
                    values.append((record.offset, _VALUE.unpack(record.value)[0]))
        offset = max(offset, header.next_offset)
    return values, offset


class Reader(Client):
    """Reads partitions from their beginning, round and round, wherever their leaders are."""

    def __init__(
        self, host: Host, brokers: Iterable[int], chance: random.Random, history: History, *, loop: SimulatedLoop,
        partitions: list[TopicPartition], committed: bool,
    ) -> None:  # fmt: skip
        super().__init__(host, brokers, chance, history, loop=loop)
        self.partitions = partitions
        self._committed = committed
        self._process = history.new_process()
        self._positions = dict.fromkeys(partitions, 0)
        self.stopping = False

    async def run(self) -> None:
        while not self.stopping:
            for partition in self.partitions:
                try:
                    await self.poll(partition)
                    if self._chance.random() < 0.2:
                        await self.latest_offset(partition)
                except Failures as error:
                    self._failed(partition, error)
                    await self.pause()
            await self.pause(0.7)

    async def read_to_end(self, partition: TopicPartition) -> list[tuple[int, int]]:
        """Until everything is read and no transaction is open any more; returns (offset, value) of all of it."""
        values: list[tuple[int, int]] = []
        while True:
            try:
                self.forget_leader(partition)
                end = await self.latest_offset(partition)
                while self._positions[partition] < end:
                    values += await self.poll(partition)
            except Failures:
                await self.pause()
            else:
                return values

    async def poll(self, partition: TopicPartition) -> list[tuple[int, int]]:
        offset = self._positions[partition]
        found = await self.fetch(partition, offset, committed=self._committed)
        values, after = decode_values(found.records, offset, found, committed=self._committed)
        self.history.polled(self._process, partition, values, committed=self._committed)
        self._positions[partition] = after
        return values

    def _failed(self, partition: TopicPartition, error: Exception) -> None:
        self.forget_leader(partition)
        if isinstance(error, ApiError) and error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
            # Only after a loss that is excused: everything committed is there otherwise, and the checker would see it.
            self.history.invoke(Assign(process=self._process, invoked=self.history.now(), partition=partition))
            self._positions[partition] = 0


def _raise(code: int) -> None:
    if code:
        raise ApiError(ErrorCode(code))


__all__ = [
    "Acknowledged", "Client", "Failures", "History", "Mark", "PlainProducer", "Reader",
    "decode_values", "encode_sends",
]  # fmt: skip
