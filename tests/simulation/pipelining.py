"""A producer with several batches on their way at once, as real ones have them."""

import asyncio
from typing import NamedTuple

from tests.simulation.clients import ACCEPTED, FORGOTTEN, Failures, PlainProducer
from tests.transactions.history import Send

from ottla.client.connection import Connection
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition
from ottla.protocol.messages.produce import PartitionProduceResponse

AT_ONCE_MAX = 4
"""A broker remembers the last five batches of a producer: what comes again must be among them."""


class Due(NamedTuple):
    """A batch that is not acknowledged yet."""

    sequence: int
    sends: list[Send]


class PipeliningProducer(PlainProducer):
    """Sends the next batches without waiting for the first; what is not acknowledged is sent again, all in order.

    Nothing it sends is ever left out, so being told that something is out of order breaks a promise: a broker that
    refused one batch must not take or condemn the next one before that has come again.
    """

    async def run(self) -> None:
        self._producer = await self.new_producer_id()
        while not self.stopping:
            await self._send_several(self._chance.choice(self.partitions), self._chance.randint(2, AT_ONCE_MAX))
            await self.pause(0.3)

    async def _send_several(self, partition: TopicPartition, count: int) -> None:
        due = [self._next(partition) for _ in range(count)]
        while due:
            try:
                leader, _ = await self.leader(partition)
                connection = await self.connected(leader)  # one for all of them, or they would not arrive in order
                due = await self._round(partition, due, connection)
            except Failures:
                self.forget_leader(partition)
            if due:
                await self.pause()

    def _next(self, partition: TopicPartition) -> Due:
        sends = self._new_sends(partition, self._chance.randint(1, 2))
        sequence = self._sequences.get(partition, 0)
        self._sequences[partition] = sequence + len(sends)
        return Due(sequence, sends)

    async def _round(self, partition: TopicPartition, due: list[Due], connection: Connection) -> list[Due]:
        """Send all of them at once; what has to be sent again."""
        answers = await asyncio.gather(*(self._answer(partition, each, connection) for each in due))
        again = []
        for each, answer in zip(due, answers, strict=True):
            if answer is not None and ErrorCode(answer.error_code) in ACCEPTED:
                self._acknowledged(each.sends, answer.base_offset)
            elif answer is not None and ErrorCode(answer.error_code) in FORGOTTEN:
                name = ErrorCode(answer.error_code).name
                self.history.broken_sequences.append(f"{partition}: {name} at sequence {each.sequence}")
                await self._start_anew()
                return []
            else:
                again.append(each)
        if again:
            self.forget_leader(partition)
        return again

    async def _answer(
        self, partition: TopicPartition, due: Due, connection: Connection
    ) -> PartitionProduceResponse | None:
        """None when there was none, and nobody knows what became of it."""
        try:
            batch = self._batch(due.sends, due.sequence)
            answer = await self.produce(partition, batch, acks=-1, connection=connection)
        except Failures:
            return None
        code = ErrorCode(answer.error_code)
        if not (code.retriable or code in ACCEPTED or code in FORGOTTEN):
            raise ApiError(code, f"{partition}: {answer.error_message}")
        return answer
