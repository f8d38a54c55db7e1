"""Writes down what clients do, from many threads at once."""

import itertools
import struct
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence

from confluent_kafka import KafkaException, Message
from tests.transactions.history import AnyOperation, Assign, Outcome, Poll, Send

from ottla.model.names import TopicPartition

_VALUE = struct.Struct(">qq")
NO_SOURCE = -1


def to_bytes(send: Send) -> bytes:
    return _VALUE.pack(send.value, NO_SOURCE if send.source is None else send.source)


def of_bytes(data: bytes) -> int:
    """The value; its source is in the history already."""
    value: int = _VALUE.unpack(data)[0]
    return value


class Recorder:
    """One history. Appending to a list is one step in Python, so the threads need no lock."""

    def __init__(self) -> None:
        self.history: list[AnyOperation] = []
        self._processes = itertools.count(1)
        self._transactions = itertools.count(1)
        self._values = itertools.count(1)

    @property
    def operations(self) -> int:
        return len(self.history)

    def new_process(self) -> int:
        return next(self._processes)

    def new_transaction(self) -> int:
        return next(self._transactions)

    def new_value(self) -> int:
        return next(self._values)

    def invoke(self, operation: AnyOperation) -> None:
        self.history.append(operation)

    @staticmethod
    def complete(operation: AnyOperation, outcome: Outcome) -> None:
        operation.completed = time.monotonic_ns()
        operation.outcome = outcome

    def done(self, operation: AnyOperation) -> None:
        """Something that is invoked and completed in one step."""
        self.complete(operation, Outcome.OK)
        self.history.append(operation)

    def assigned(self, process: int, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self.done(Assign(process=process, invoked=time.monotonic_ns(), partition=partition))

    def polled(self, process: int, invoked: int, messages: Sequence[Message], *, committed_only: bool) -> list[Poll]:
        """Write down what a call returned, a poll for each partition. What is no record is left out."""
        found: dict[TopicPartition, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for message in messages:
            if message.error() is None:
                topic, number, offset, value = message.topic(), message.partition(), message.offset(), message.value()
                assert topic is not None
                assert number is not None
                assert offset is not None
                assert value is not None
                offsets, values = found[TopicPartition(topic, number)]
                offsets.append(offset)
                values.append(of_bytes(value))
            elif message.error().fatal():
                raise KafkaException(message.error())
        polls = [
            Poll(
                process=process,
                invoked=invoked,
                partition=partition,
                offsets=offsets,
                values=values,
                committed_only=committed_only,
            )
            for partition, (offsets, values) in found.items()
        ]
        for poll in polls:
            self.done(poll)
        return polls
