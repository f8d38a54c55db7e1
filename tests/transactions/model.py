"""A broker of a few lines that does everything right, and clients that act by chance: histories without anomalies."""

import itertools
import random
from dataclasses import dataclass, field

from tests.transactions.history import Abort, AnyOperation, Assign, Begin, Commit, Crash, Outcome, Poll, Send

from ottla.model.names import TopicPartition

INPUT, OUTPUT = "input", "output"


@dataclass
class _Log:
    """One partition: records with their transactions; a transaction's end takes an offset too."""

    records: list[tuple[int, int, int]] = field(default_factory=list)
    """(offset, value, transaction), in order."""
    open: dict[int, int] = field(default_factory=dict)
    """The first offset of each transaction that is not decided."""
    end: int = 0

    def append(self, value: int, transaction: int) -> int:
        self.open.setdefault(transaction, self.end)
        self.records.append((self.end, value, transaction))
        self.end += 1
        return self.end - 1

    def decide(self, transaction: int) -> None:
        if self.open.pop(transaction, None) is not None:
            self.end += 1

    @property
    def last_stable(self) -> int:
        return min(self.open.values(), default=self.end)


class Model:
    """Clients take turns by chance. `history` is what they saw."""

    def __init__(self, chance: random.Random, *, partitions: int = 2) -> None:
        self.history: list[AnyOperation] = []
        self._chance = chance
        self._logs = {
            TopicPartition(topic, number): _Log() for topic in (INPUT, OUTPUT) for number in range(partitions)
        }
        self._committed: set[int] = set()
        self._processes = itertools.count(1)
        self._transactions = itertools.count(1)
        self._values = itertools.count(1)
        self._now = itertools.count(1)
        self._producers: dict[int, int | None] = {next(self._processes): None for _ in range(2)}
        self._readers = {next(self._processes): committed_only for committed_only in (True, True, False)}
        self._positions: dict[tuple[int, TopicPartition], int] = {}
        self._copied: dict[TopicPartition, int] = {}

    def run(self, steps: int) -> list[AnyOperation]:
        actions = (self._produce, self._produce, self._read, self._copy, self._crash)
        for _ in range(steps):
            self._chance.choice(actions)()
        for transaction in {number for log in self._logs.values() for number in log.open}:
            self._decide(transaction)  # as the broker does when their time is over
        while self._copy():
            pass
        for committed_only in (True, False):
            self._readers = {next(self._processes): committed_only}
            for partition in self._logs:
                self._read_partition(next(iter(self._readers)), partition, most=1 << 30)
        return self.history

    def _produce(self) -> None:
        process = self._chance.choice(list(self._producers))
        transaction = self._producers[process]
        if transaction is None:
            self._producers[process] = number = next(self._transactions)
            self._record(Begin(process=process, invoked=next(self._now), transaction=number))
        elif self._chance.random() < 0.7:
            number = self._chance.randrange(len(self._logs) // 2)
            self._send(process, transaction, TopicPartition(INPUT, number))
        else:
            self._finish(process, transaction, commit=self._chance.random() < 0.7)
            self._producers[process] = None

    def _send(self, process: int, transaction: int, partition: TopicPartition, source: int | None = None) -> None:
        send = Send(
            process=process, invoked=next(self._now), transaction=transaction, partition=partition,
            value=next(self._values), source=source,
        )  # fmt: skip
        self._record(send, heard=False)
        offset = self._logs[partition].append(send.value, transaction)
        if source is not None or self._chance.random() < 0.9:
            send.offset = offset
            self._complete(send)

    def _finish(self, process: int, transaction: int, *, commit: bool, heard: bool | None = None) -> None:
        """End a transaction; sometimes the broker does it and the answer is lost, sometimes the request is lost."""
        kind = Commit if commit else Abort
        operation = kind(process=process, invoked=next(self._now), transaction=transaction)
        heard = self._chance.random() < 0.9 if heard is None else heard
        self._record(operation, heard=False)
        if heard or self._chance.random() < 0.5:
            if commit:
                self._committed.add(transaction)
            self._decide(transaction)
        if heard:
            self._complete(operation)

    def _decide(self, transaction: int) -> None:
        for log in self._logs.values():
            log.decide(transaction)

    def _copy(self) -> bool:
        """Carry over one batch and its position in one transaction; an abort leaves the position where it was."""
        partition = self._chance.choice([each for each in self._logs if each.topic == INPUT])
        position = self._copied.get(partition, 0)
        batch = self._visible(partition, position, committed_only=True, most=3)
        if not batch:
            return any(
                self._visible(each, self._copied.get(each, 0), committed_only=True, most=1)
                for each in self._logs
                if each.topic == INPUT
            )
        process, transaction = next(self._processes), next(self._transactions)
        self._poll(process, partition, batch, committed_only=True)
        self._record(Begin(process=process, invoked=next(self._now), transaction=transaction))
        for _, value in batch:
            self._send(process, transaction, TopicPartition(OUTPUT, partition.partition), source=value)
        commit = self._chance.random() < 0.8
        self._finish(process, transaction, commit=commit, heard=True)
        if commit:
            self._copied[partition] = batch[-1][0] + 1
        return True

    def _crash(self) -> None:
        process = self._chance.choice(list(self._producers))
        transaction = self._producers.pop(process)
        self._record(Crash(process=process, invoked=next(self._now)))
        self._producers[next(self._processes)] = None
        if transaction is not None and self._chance.random() < 0.7:
            self._decide(transaction)  # its next life asks for the same transactional id

    def _read(self) -> None:
        process = self._chance.choice(list(self._readers))
        partition = self._chance.choice(list(self._logs))
        if self._chance.random() < 0.1:
            self._record(Assign(process=process, invoked=next(self._now), partition=partition))
            self._positions[process, partition] = self._chance.randrange(self._logs[partition].end + 1)
        self._read_partition(process, partition, most=self._chance.randrange(1, 5))

    def _read_partition(self, process: int, partition: TopicPartition, *, most: int) -> None:
        committed_only = self._readers[process]
        position = self._positions.get((process, partition), 0)
        batch = self._visible(partition, position, committed_only=committed_only, most=most)
        if batch:
            self._positions[process, partition] = batch[-1][0] + 1
            self._poll(process, partition, batch, committed_only=committed_only)

    def _poll(
        self, process: int, partition: TopicPartition, batch: list[tuple[int, int]], *, committed_only: bool
    ) -> None:
        offsets, values = [offset for offset, _ in batch], [value for _, value in batch]
        self._record(
            Poll(
                process=process, invoked=next(self._now), partition=partition, offsets=offsets, values=values,
                committed_only=committed_only,
            )
        )  # fmt: skip

    def _visible(
        self, partition: TopicPartition, position: int, *, committed_only: bool, most: int
    ) -> list[tuple[int, int]]:
        log = self._logs[partition]
        end = log.last_stable if committed_only else log.end
        return [
            (offset, value)
            for offset, value, transaction in log.records
            if position <= offset < end and (not committed_only or transaction in self._committed)
        ][:most]

    def _record(self, operation: AnyOperation, *, heard: bool = True) -> None:
        self.history.append(operation)
        if heard:
            self._complete(operation)

    def _complete(self, operation: AnyOperation) -> None:
        operation.completed = next(self._now)
        operation.outcome = Outcome.OK
