"""A transactional producer that never waits: the next transaction begins when the end of the last is answered, with
several batches on their way to several partitions, which become part of it by being written to."""

import asyncio
import random
from collections.abc import Iterable

from tests.simulation.clients import ACCEPTED, Failures, History, encode_sends
from tests.simulation.loop import Host, SimulatedLoop
from tests.simulation.pipelining import AT_ONCE_MAX, Due
from tests.simulation.transactors import GivenUp, Transactor
from tests.transactions.history import Outcome, Send

from ottla.client.connection import Connection
from ottla.model.errors import ErrorCode
from ottla.model.names import TopicPartition
from ottla.protocol.messages.produce import PartitionProduceResponse

IN_A_ROW_MAX = 6
"""Then it rests for a moment, or a run would be nothing but this."""
ROUNDS_MAX = 60
TIMEOUT_MS = 500_000
"""Longer than any run: nobody but its producer ends a transaction, so being fenced breaks a promise too."""


class BackToBackTransactor(Transactor):
    """It does nothing wrong and has its id for itself: to be refused for good breaks a promise."""

    def __init__(
        self, host: Host, brokers: Iterable[int], chance: random.Random, history: History, *, loop: SimulatedLoop,
        transactional_id: str, partitions: list[TopicPartition],
    ) -> None:  # fmt: skip
        super().__init__(
            host, brokers, chance, history, loop=loop, transactional_id=transactional_id, partitions=partitions
        )
        self._joins_by_writing = True
        self._timeout_ms = TIMEOUT_MS

    async def run(self) -> None:
        while not self.stopping:
            try:
                if self._producer is None:
                    await self._start()
                for _ in range(IN_A_ROW_MAX):
                    await self.transaction()
            except (GivenUp, *Failures):
                self._producer = None
                await self.pause()
            await self.pause(1.5)
        if self._producer is None:
            await self._start(insists=True)  # or its last transaction would stay open, and nobody could read behind it

    async def transaction(self) -> None:
        number = self._begin()
        if self._chance.random() < 0.15:
            # A consumer that loses its partitions gives up before it has written anything.
            await self._end(number, commit=False)
            return
        chosen = self._chance.sample(self.partitions, self._chance.randint(1, len(self.partitions)))
        work = [self._send_several(number, partition, self._chance.randint(1, AT_ONCE_MAX)) for partition in chosen]
        results = await asyncio.gather(*work, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        await self._end(number, commit=self._chance.random() < 0.8)

    async def _send_several(self, transaction: int, partition: TopicPartition, count: int) -> None:
        due = [self._next(transaction, partition) for _ in range(count)]
        for _ in range(ROUNDS_MAX):
            try:
                leader, _ = await self.leader(partition)
                due = await self._round(partition, due, await self.connected(leader))
            except Failures:
                self.forget_leader(partition)
            if not due:
                return
            await self.pause()
        raise GivenUp(f"{partition}: no answer")

    def _next(self, transaction: int, partition: TopicPartition) -> Due:
        sends = [
            Send(
                process=self._process, invoked=self.history.now(), transaction=transaction, partition=partition,
                value=self.history.new_value(),
            )
            for _ in range(self._chance.randint(1, 2))
        ]  # fmt: skip
        for send in sends:
            self.history.invoke(send)
        sequence = self._sequences.get(partition, 0)
        self._sequences[partition] = sequence + len(sends)
        return Due(sequence, sends)

    async def _round(self, partition: TopicPartition, due: list[Due], connection: Connection) -> list[Due]:
        """Send all of them at once; what has to be sent again."""
        answers = await asyncio.gather(*(self._answer(partition, each, connection) for each in due))
        again = []
        for each, answer in zip(due, answers, strict=True):
            if answer is None or ErrorCode(answer.error_code) not in ACCEPTED:
                again.append(each)
                continue
            for number, send in enumerate(each.sends):
                send.offset = answer.base_offset + number if answer.base_offset >= 0 else None
                self.history.complete(send, Outcome.OK)
        if again:
            self.forget_leader(partition)
        return again

    async def _answer(
        self, partition: TopicPartition, due: Due, connection: Connection
    ) -> PartitionProduceResponse | None:
        assert self._producer is not None
        batch = encode_sends(due.sends, self._producer, due.sequence, transactional=True)
        try:
            answer = await self.produce(
                partition, batch, acks=-1, transactional_id=self._id, max_version=12, connection=connection
            )
        except Failures:
            return None
        code = ErrorCode(answer.error_code)
        if not code.retriable and code not in ACCEPTED:
            self._refused(f"{partition}, sequence {due.sequence}: {code.name}, {answer.error_message}")
        return answer

    def _refused(self, words: str) -> None:
        self.history.refused_transactions.append(f"{self._id} as {self._producer}: {words}")
        raise GivenUp(words)
