"""Transactional clients: producers of whole transactions, copiers that consume and produce in one, and a committer.

Both ways of Kafka 4 are used, as chance picks: partitions announced by the client beforehand (epochs change only with
InitProducerId), and partitions that join with the first write (every end of a transaction gives a new epoch).
"""

import random
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from tests.simulation.clients import (
    GROUP,
    TRANSACTION,
    Client,
    Failures,
    History,
    decode_values,
    encode_sends,
)
from tests.simulation.loop import Host, SimulatedLoop
from tests.transactions.history import Abort, Begin, Commit, Outcome, Send

from ottla.client.errors import ClientError
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

T = TypeVar("T")
ATTEMPTS_MAX = 12
NO_OFFSET = -1
PLAIN_TIMEOUT_MS = 4_000
GROUP_BY_NAME_VERSION_MAX = 9


class GivenUp(Exception):
    """This transaction cannot be carried on; whether a commit that was asked for happens is not known here."""


class Positions(Client):
    """What a group has read, asked for and told without membership."""

    async def committed_offset(self, group: str, partition: TopicPartition) -> int:
        topics = [OffsetFetchRequestTopics(name=partition.topic, partition_indexes=[partition.partition])]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)], require_stable=True
        )
        broker = await self.coordinator(group, GROUP)
        must_show = self.history.least_position(group, partition)
        response = await self.call(broker, request, OffsetFetchResponse, max_version=GROUP_BY_NAME_VERSION_MAX)
        answer = response.groups[0]
        raise_for(answer.error_code)
        found = answer.topics[0].partitions[0]
        raise_for(found.error_code)
        if found.committed_offset < must_show:
            self.history.lost_positions.append(
                f"{group} had committed {must_show} in {partition}, and is told {found.committed_offset}"
            )
        return max(found.committed_offset, 0)

    def position_acknowledged(self, group: str, partition: TopicPartition, offset: int) -> None:
        known = self.history.committed_positions.get((group, partition), NO_OFFSET)
        self.history.committed_positions[group, partition] = max(known, offset)


class Committer(Positions):
    """Commits ever greater positions of a group and asks for them again."""

    def __init__(
        self, host: Host, brokers: Iterable[int], chance: random.Random, history: History, *, loop: SimulatedLoop,
        group: str, partition: TopicPartition,
    ) -> None:  # fmt: skip
        super().__init__(host, brokers, chance, history, loop=loop)
        self._group, self._partition = group, partition
        self._position = 0
        self.stopping = False

    async def run(self) -> None:
        while not self.stopping:
            try:
                await self.step()
            except Failures:
                await self.pause()
            await self.pause(0.8)

    async def step(self) -> None:
        if self._chance.random() < 0.3:
            await self.committed_offset(self._group, self._partition)
            return
        self._position += 1
        offset = OffsetCommitRequestPartition(
            partition_index=self._partition.partition, committed_offset=self._position
        )
        request = OffsetCommitRequest(
            group_id=self._group, topics=[OffsetCommitRequestTopic(name=self._partition.topic, partitions=[offset])]
        )
        broker = await self.coordinator(self._group, GROUP)
        position = self._position
        try:
            response = await self.call(broker, request, OffsetCommitResponse, max_version=GROUP_BY_NAME_VERSION_MAX)
        except ClientError:
            self.history.position_in_doubt(self._group, self._partition, position)
            raise
        raise_for(response.topics[0].partitions[0].error_code)
        self.position_acknowledged(self._group, self._partition, position)


class Transactor(Positions):
    """One transactional id, one transaction after the other."""

    def __init__(
        self, host: Host, brokers: Iterable[int], chance: random.Random, history: History, *, loop: SimulatedLoop,
        transactional_id: str, partitions: list[TopicPartition],
    ) -> None:  # fmt: skip
        super().__init__(host, brokers, chance, history, loop=loop)
        self._id = transactional_id
        self.partitions = partitions
        self._joins_by_writing = chance.random() < 0.5
        self._producer: tuple[int, int] | None = None
        self._process = 0
        self._sequences: dict[TopicPartition, int] = {}
        self._announced: set[TopicPartition] = set()
        self._timeout_ms = PLAIN_TIMEOUT_MS
        self._in_doubt = False
        """Whether a request of this epoch may still be on its way."""
        self.stopping = False

    async def run(self) -> None:
        while not self.stopping:
            try:
                if self._producer is None:
                    await self._start()
                await self.transaction()
            except (GivenUp, *Failures):
                self._producer = None
                await self.pause()
            await self.pause(0.6)

    async def transaction(self) -> None:
        number = self._begin()
        for _ in range(self._chance.randint(1, 3)):
            await self._send(number, self._chance.choice(self.partitions), [None] * self._chance.randint(1, 2))
        await self._end(number, commit=self._chance.random() < 0.7)

    # -- the parts of a transaction

    async def _start(self, *, insists: bool = False) -> None:
        self._process = self.history.new_process()
        request = InitProducerIdRequest(transactional_id=self._id, transaction_timeout_ms=self._timeout_ms)

        async def attempt() -> tuple[int, int]:
            broker = await self.coordinator(self._id, TRANSACTION)
            response = await self.call(broker, request, InitProducerIdResponse)
            raise_for(response.error_code)
            return response.producer_id, response.producer_epoch

        while True:
            try:
                self._producer = await attempt()
            except Failures:
                if self.stopping and not insists:
                    raise
                await self.pause()
            else:
                self._sequences.clear()
                return

    def _begin(self) -> int:
        number = self.history.new_transaction()
        begin = Begin(process=self._process, invoked=self.history.now(), transaction=number)
        self.history.invoke(begin)
        self.history.complete(begin, Outcome.OK)
        self._announced.clear()
        return number

    async def _send(self, transaction: int, partition: TopicPartition, sources: list[int | None]) -> None:
        """One batch; a source is the value that a record is a copy of."""
        assert self._producer is not None
        if not self._joins_by_writing and partition not in self._announced:
            await self._announce(partition)
        sends = [
            Send(
                process=self._process, invoked=self.history.now(), transaction=transaction, partition=partition,
                value=self.history.new_value(), source=source,
            )
            for source in sources
        ]  # fmt: skip
        for send in sends:
            self.history.invoke(send)
        sequence = self._sequences.get(partition, 0)
        offset = await self._deliver(partition, sends, sequence)
        self._sequences[partition] = sequence + len(sends)
        for index, send in enumerate(sends):
            send.offset = offset + index if offset >= 0 else None
            self.history.complete(send, Outcome.OK)

    async def _deliver(self, partition: TopicPartition, sends: list[Send], sequence: int) -> int:
        assert self._producer is not None
        version = 12 if self._joins_by_writing else 11
        for _ in range(ATTEMPTS_MAX):
            batch = encode_sends(sends, self._producer, sequence, transactional=True)
            try:
                answer = await self.produce(partition, batch, acks=-1, transactional_id=self._id, max_version=version)
            except Failures:
                self.forget_leader(partition)
                await self.pause()
                continue
            code = ErrorCode(answer.error_code)
            if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                return answer.base_offset
            if not code.retriable:
                raise GivenUp(f"{partition}: {code.name}")
            self.forget_leader(partition)
            await self.pause()
        raise GivenUp(f"{partition}: no answer")

    async def _announce(self, partition: TopicPartition) -> None:
        assert self._producer is not None
        producer_id, epoch = self._producer
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id, v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=partition.topic, partitions=[partition.partition])],
        )  # fmt: skip

        async def attempt() -> None:
            broker = await self.coordinator(self._id, TRANSACTION)
            response = await self.call(broker, request, AddPartitionsToTxnResponse, max_version=3)
            raise_for(response.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)

        await self._persist(attempt)
        self._announced.add(partition)

    async def _end(self, transaction: int, *, commit: bool) -> None:
        assert self._producer is not None
        producer_id, epoch = self._producer
        kind = Commit if commit else Abort
        operation = kind(process=self._process, invoked=self.history.now(), transaction=transaction)
        self.history.invoke(operation)
        request = EndTxnRequest(
            transactional_id=self._id, producer_id=producer_id, producer_epoch=epoch, committed=commit
        )

        async def attempt() -> EndTxnResponse:
            broker = await self.coordinator(self._id, TRANSACTION)
            version = 5 if self._joins_by_writing else 4
            response = await self.call(broker, request, EndTxnResponse, max_version=version)
            raise_for(response.error_code)
            return response

        response = await self._persist(attempt)
        self.history.complete(operation, Outcome.OK)
        if self._joins_by_writing:
            self._producer = (response.producer_id, response.producer_epoch)
            self._sequences.clear()
        elif self._in_doubt:
            # A late request would count for the next transaction: without an epoch for each only a new one helps.
            self._producer = None
        self._in_doubt = False

    async def _persist(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Try again while the answer says that it may help; then the transaction is given up."""
        for _ in range(ATTEMPTS_MAX):
            try:
                return await attempt()
            except ApiError as error:
                if not error.code.retriable:
                    self._refused(error.code.name)
            except Failures:
                self._in_doubt = True
            await self.pause()
        raise GivenUp("no answer")

    def _refused(self, words: str) -> None:
        """Told so, it cannot go on: its time was up, or it was fenced."""
        raise GivenUp(words)


class Copier(Transactor):
    """Carries records over from one partition to another, each with the position in one transaction."""

    def __init__(
        self, host: Host, brokers: Iterable[int], chance: random.Random, history: History, *, loop: SimulatedLoop,
        transactional_id: str, group: str, source: TopicPartition, target: TopicPartition,
    ) -> None:  # fmt: skip
        super().__init__(
            host, brokers, chance, history, loop=loop, transactional_id=transactional_id, partitions=[target]
        )
        self._group, self._source, self._target = group, source, target
        self.caught_up = False

    async def catch_up(self) -> None:
        """Until everything has been carried over. For when nobody writes any more."""
        self.caught_up = False
        while not self.caught_up:
            try:
                if self._producer is None:
                    await self._start()
                await self.transaction()
            except (GivenUp, *Failures):
                self._producer = None
                await self.pause()

    async def transaction(self) -> None:
        try:
            offset = await self.committed_offset(self._group, self._source)
            self._process = self.history.new_process()
            end = await self.latest_offset(self._source)
            found = await self.fetch(self._source, offset, committed=True)
        except Failures:
            self.forget_leader(self._source)
            await self.pause()
            return
        values, after = decode_values(found.records, offset, found, committed=True)
        if after == offset:
            self.caught_up = after >= end
            return
        batch = [source for _, source in values]
        number = self._begin()
        self.history.polled(self._process, self._source, values, committed=True)
        if batch:
            await self._send(number, self._target, list(batch))
        await self._commit_position(after)
        await self._end(number, commit=True)
        self.position_acknowledged(self._group, self._source, after)
        self.caught_up = after >= end

    async def _commit_position(self, offset: int) -> None:
        assert self._producer is not None
        producer_id, epoch = self._producer
        if not self._joins_by_writing:
            add = AddOffsetsToTxnRequest(
                transactional_id=self._id, producer_id=producer_id, producer_epoch=epoch, group_id=self._group
            )

            async def announce() -> None:
                broker = await self.coordinator(self._id, TRANSACTION)
                raise_for((await self.call(broker, add, AddOffsetsToTxnResponse, max_version=3)).error_code)

            await self._persist(announce)
        position = TxnOffsetCommitRequestPartition(partition_index=self._source.partition, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            transactional_id=self._id, group_id=self._group, producer_id=producer_id, producer_epoch=epoch,
            topics=[TxnOffsetCommitRequestTopic(name=self._source.topic, partitions=[position])],
        )  # fmt: skip

        async def attempt() -> None:
            broker = await self.coordinator(self._group, GROUP)
            version = 5 if self._joins_by_writing else 4
            response = await self.call(broker, request, TxnOffsetCommitResponse, max_version=version)
            raise_for(response.topics[0].partitions[0].error_code)

        await self._persist(attempt)


def raise_for(code: int) -> None:
    if code:
        raise ApiError(ErrorCode(code))
