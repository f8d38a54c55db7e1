"""Transactions without sockets: producers, partitions and the machine, with a log that a crash leaves behind."""

import dataclasses
from collections.abc import Collection

from msgspec.structs import replace

from ottla.broker.coordination.transactions.events import EPOCH_MAX, End, Init, Step
from ottla.broker.coordination.transactions.machine import TransactionMachine, check_step
from ottla.broker.coordination.transactions.states import PREPARED
from ottla.model.errors import ErrorCode
from ottla.model.names import TopicPartition
from ottla.protocol.transaction_records import (
    TransactionState,
    TransactionValue,
    decode_transaction_key,
    decode_transaction_value,
    encode_transaction_key,
    encode_transaction_value,
)

TIMEOUT_MS = 1000
PARTITIONS = tuple(TopicPartition("t", number) for number in range(3))
NONE = ErrorCode.NONE


@dataclasses.dataclass(slots=True)
class Producer:
    """A client as it sees itself. A zombie is one that does not know yet that another one has its name."""

    name: str
    version: int
    producer_id: int = -1
    producer_epoch: int = -1
    token: int | None = None
    """The transaction it is in, if any."""
    ending: bool | None = None
    """It asked for this outcome and has not heard yet: it can only ask for the same again."""


@dataclasses.dataclass(slots=True)
class PartitionLog:
    """What a partition does with transactional records: epochs, open transactions, outcomes."""

    epochs: dict[int, int] = dataclasses.field(default_factory=dict)
    open: dict[int, set[int]] = dataclasses.field(default_factory=dict)
    """Producer id -> tokens of the records that are not decided yet."""


class World:
    def __init__(self) -> None:
        self.machine = TransactionMachine()
        self.log: list[tuple[bytes, bytes | None]] = []
        self.partitions = {partition: PartitionLog() for partition in PARTITIONS}
        self.now_ms = 1_000_000
        self.next_producer_id = 100
        self.producers: list[Producer] = []
        self.marked: dict[str, set[TopicPartition]] = {}
        """Which markers of a prepared transaction are written; forgotten in a crash."""
        self.outcomes: dict[int, set[bool]] = {}
        """Token -> what its records were told to be."""
        self.promises: dict[int, bool] = {}
        """Token -> what its producer was told."""
        self.tokens = 0

    # The coordinator's part

    def allocate(self) -> int:
        self.next_producer_id += 1
        return self.next_producer_id

    def apply(self, name: str, step: Step) -> None:
        """Append and replay, as the runtime does."""
        assert not step.wants_producer_id
        if step.value is not None:
            check_step(self.machine.transactions.get(name), step.value)
            key, value = encode_transaction_key(name), encode_transaction_value(step.value)
            assert decode_transaction_value(value) == step.value
            self.log.append((key, value))
            self.machine.replay(name, step.value)
            self.machine.remember_last_epoch(name, step.last_epoch)

    def reloaded(self) -> TransactionMachine:
        machine = TransactionMachine()
        for key, value in self.log:
            name = decode_transaction_key(key)
            assert name is not None
            machine.replay(name, None if value is None else decode_transaction_value(value))
        return machine

    def crash(self) -> None:
        self.machine = self.reloaded()
        self.marked.clear()

    def init(self, event: Init) -> Step:
        step = self.machine.init(event, self.now_ms)
        if step.wants_producer_id:
            step = self.machine.init(event, self.now_ms, self.allocate())
        self.apply(event.transactional_id, step)
        return step

    def end(self, event: End) -> Step:
        step = self.machine.end(event, self.now_ms)
        if step.wants_producer_id:
            step = self.machine.end(event, self.now_ms, self.allocate())
        self.apply(event.transactional_id, step)
        return step

    def abort_timed_out(self) -> None:
        for name in self.machine.timed_out(self.now_ms):
            step = self.machine.abort_timed_out(name, self.now_ms)
            if step is not None and step.wants_producer_id:
                step = self.machine.abort_timed_out(name, self.now_ms, self.allocate())
            assert step is not None
            self.apply(name, step)

    def expire(self, expiration_ms: int) -> None:
        for name in self.machine.expired(self.now_ms, expiration_ms):
            assert self.machine.transactions[name].state not in PREPARED | {TransactionState.ONGOING}
            self.log.append((encode_transaction_key(name), None))
            self.machine.replay(name, None)

    def write_marker(self, name: str, partition: TopicPartition) -> None:
        value = self.machine.transactions[name]
        assert value.state in PREPARED
        self.mark(value, partition)
        self.marked.setdefault(name, set()).add(partition)

    def mark(self, value: TransactionValue, partition: TopicPartition) -> None:
        log = self.partitions[partition]
        if log.epochs.get(value.producer_id, -1) > value.producer_epoch:
            assert value.producer_id not in log.open, "a newer epoch began before this transaction had its marker"
            return
        log.epochs[value.producer_id] = value.producer_epoch
        for token in log.open.pop(value.producer_id, ()):
            self.outcomes.setdefault(token, set()).add(value.state is TransactionState.PREPARE_COMMIT)

    def complete(self, name: str) -> None:
        for partition in self.machine.transactions[name].partitions - self.marked.pop(name, set()):
            self.write_marker(name, partition)
        self.marked.pop(name, None)
        self.apply(name, self.machine.complete(name, self.now_ms))

    # The producers' part

    def begin(self, producer: Producer) -> None:
        """A transaction, if it is not in one."""
        if producer.token is None:
            self.tokens += 1
            producer.token = self.tokens

    def add(self, producer: Producer, partitions: Collection[TopicPartition]) -> ErrorCode:
        step = self.machine.add_partitions(
            producer.name, producer.producer_id, producer.producer_epoch, partitions, self.now_ms, producer.version
        )
        self.apply(producer.name, step)
        return step.error

    def write(self, producer: Producer, partition: TopicPartition) -> ErrorCode:
        """One record: added or verified, and then judged by the partition itself."""
        assert producer.token is not None
        if producer.version >= 2:
            code = self.add(producer, [partition])
        else:
            identity = producer.name, producer.producer_id, producer.producer_epoch
            code = self.machine.verify(*identity, [partition])[partition]
        log = self.partitions[partition]
        if code is NONE and log.epochs.get(producer.producer_id, -1) > producer.producer_epoch:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        if code is NONE:
            log.epochs[producer.producer_id] = producer.producer_epoch
            log.open.setdefault(producer.producer_id, set()).add(producer.token)
        return code

    def use_up_epochs(self, name: str) -> None:
        """What 32 thousand transactions would do."""
        value = self.machine.transactions[name]
        for producer in self.producers:
            if (producer.producer_id, producer.producer_epoch) == (value.producer_id, value.producer_epoch):
                producer.producer_epoch = EPOCH_MAX - 1
        later = replace(value, producer_epoch=EPOCH_MAX - 1)
        self.log.append((encode_transaction_key(name), encode_transaction_value(later)))
        self.machine.replay(name, later)
