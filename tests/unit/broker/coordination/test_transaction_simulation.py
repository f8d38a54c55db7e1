"""Throw every order of events at the machine; check what must hold in each of them."""

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.chance import SOAK

from ottla.broker.coordination.transactions.events import EPOCH_MAX, End, Init
from ottla.broker.coordination.transactions.states import AT_REST, PREPARED
from ottla.model.errors import ErrorCode
from ottla.model.names import TopicPartition
from ottla.protocol.transaction_records import TransactionState

from .transaction_world import NONE, PARTITIONS, TIMEOUT_MS, Producer, World

NAMES = st.sampled_from(["a", "a", "a", "b"])
VERSIONS = st.sampled_from([0, 2])
LOST = st.sampled_from([False, False, False, True])
"""Whether the answer gets lost on its way to the producer."""
FATAL = {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_TXN_STATE}


class TransactionSimulation(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.checked = 0

    @initialize(version=VERSIONS, partitions=st.sets(st.sampled_from(PARTITIONS)))
    def begin(self, version: int, partitions: set[TopicPartition]) -> None:
        """Start from a producer at work as often as from nothing."""
        if partitions:
            self.a_new_producer_comes("a", version, False)
        for partition in sorted(partitions):
            self.write(self.world.producers[0], partition)

    def some(self, data: Any, producers: list[Producer]) -> Producer:
        number: int = data.draw(st.integers(0, len(producers) - 1))
        return producers[number]

    def prepared(self) -> list[str]:
        return self.world.machine.prepared()

    def initialised(self) -> list[Producer]:
        return [producer for producer in self.world.producers if producer.producer_id >= 0]

    def at_work(self) -> list[Producer]:
        """Those who may write: they did not ask for the end of their transaction yet."""
        return [producer for producer in self.initialised() if producer.ending is None]

    # What producers do

    @rule(name=NAMES, version=VERSIONS, lost=LOST)
    def a_new_producer_comes(self, name: str, version: int, lost: bool) -> None:
        """Whoever had the name before becomes a zombie that does not know."""
        step = self.world.init(Init(name, TIMEOUT_MS))
        if step.error is NONE:
            self.nobody_else_has(name, step.producer_id, step.producer_epoch)
            if not lost:
                self.world.producers.append(Producer(name, version, step.producer_id, step.producer_epoch))
        else:
            assert step.error is ErrorCode.CONCURRENT_TRANSACTIONS

    def nobody_else_has(self, name: str, producer_id: int, epoch: int) -> None:
        for other in self.initialised():
            assert (other.producer_id, other.producer_epoch) != (producer_id, epoch)
            if other.name == name and other.producer_id == producer_id:
                assert other.producer_epoch < epoch

    @precondition(lambda self: bool(self.at_work()))
    @rule(data=st.data(), lost=LOST)
    def a_producer_starts_over(self, data: Any, lost: bool) -> None:
        """It tells which id and epoch it has; without its last answer it tells the same again."""
        self.start_over(self.some(data, self.at_work()), lost)

    def start_over(self, producer: Producer, lost: bool) -> None:
        step = self.world.init(Init(producer.name, TIMEOUT_MS, producer.producer_id, producer.producer_epoch))
        if step.value is not None:
            self.only_its_own(step.value.producer_id, producer)
        assert step.error in (NONE, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.PRODUCER_FENCED)
        if step.error is NONE and not lost:
            self.nobody_else_has(producer.name, step.producer_id, step.producer_epoch)
            producer.producer_id, producer.producer_epoch = step.producer_id, step.producer_epoch
            producer.token = None
        if step.error in FATAL:
            self.world.producers.remove(producer)

    def only_its_own(self, producer_id: int, producer: Producer) -> None:
        """Nobody ends a transaction but the one whose records are in it: a zombie never does."""
        records = (log.open.get(producer_id, set()) for log in self.world.partitions.values())
        assert set().union(*records) <= {producer.token}

    @precondition(lambda self: bool(self.at_work()))
    @rule(data=st.data(), partitions=st.sets(st.sampled_from(PARTITIONS), min_size=1))
    def a_producer_adds_partitions(self, data: Any, partitions: set[TopicPartition]) -> None:
        producer = self.some(data, self.at_work())
        self.world.begin(producer)
        self.give_up_if(producer, self.world.add(producer, partitions))

    @precondition(lambda self: bool(self.at_work()))
    @rule(data=st.data(), partition=st.sampled_from(PARTITIONS), added=st.sampled_from([True, True, False]))
    def a_producer_writes(self, data: Any, partition: TopicPartition, added: bool) -> None:
        self.write(self.some(data, self.at_work()), partition, added)

    def write(self, producer: Producer, partition: TopicPartition, added: bool = True) -> None:
        """Before version 2 partitions are added by a request of their own, which a client may have forgotten."""
        self.world.begin(producer)
        code = self.world.add(producer, [partition]) if added and producer.version < 2 else NONE
        if code is NONE:
            code = self.world.write(producer, partition)
        self.give_up_if(producer, code)

    @precondition(lambda self: bool(self.initialised()))
    @rule(data=st.data(), commit=st.booleans(), lost=LOST)
    def a_producer_ends(self, data: Any, commit: bool, lost: bool) -> None:
        self.end(self.some(data, self.initialised()), commit, lost)

    def end(self, producer: Producer, commit: bool, lost: bool) -> None:
        self.world.begin(producer)
        assert producer.token is not None
        if producer.ending is not None:
            commit = producer.ending
        producer.ending = commit
        event = End(producer.name, producer.producer_id, producer.producer_epoch, commit, producer.version)
        step = self.world.end(event)
        if step.value is not None:
            self.only_its_own(step.value.producer_id, producer)
        if lost:
            return
        if step.error is NONE:
            self.world.promises[producer.token] = commit
            producer.token = producer.ending = None
            if producer.version >= 2:
                producer.producer_id, producer.producer_epoch = step.producer_id, step.producer_epoch
        else:
            self.give_up_if(producer, step.error)

    def give_up_if(self, producer: Producer, code: ErrorCode) -> None:
        """These errors end a client's life: its records stay with whatever the coordinator makes of them."""
        if producer in self.world.producers and (code in FATAL or code is ErrorCode.INVALID_PRODUCER_EPOCH):
            self.world.producers.remove(producer)

    @precondition(lambda self: bool(self.initialised()))
    @rule(data=st.data(), versions=st.lists(VERSIONS, min_size=2, max_size=3), partition=st.sampled_from(PARTITIONS))
    def one_is_replaced_while_it_sleeps(self, data: Any, versions: list[int], partition: TopicPartition) -> None:
        """The last of those who come is in a transaction when the sleeper goes on as if nothing had happened."""
        sleeper = self.some(data, self.initialised())
        for version in versions:
            if sleeper.name in self.prepared():
                self.world.complete(sleeper.name)
            self.a_new_producer_comes(sleeper.name, version, False)
        newest = self.world.producers[-1]
        if newest is sleeper or newest.ending is not None:
            return
        self.write(newest, partition)
        does = data.draw(st.sampled_from(["write", "start over", "end"])) if sleeper.ending is None else "end"
        if does == "write":
            self.write(sleeper, data.draw(st.sampled_from(PARTITIONS)))
        elif does == "start over":
            self.start_over(sleeper, False)
        else:
            self.end(sleeper, data.draw(st.booleans()), False)
        if newest in self.world.producers:
            self.end(newest, True, False)

    @precondition(lambda self: bool(self.at_work()))
    @rule(data=st.data(), partitions=st.lists(st.sampled_from(PARTITIONS), min_size=2, max_size=2))
    def one_takes_too_long_and_goes_on(self, data: Any, partitions: list[TopicPartition]) -> None:
        producer = self.some(data, self.at_work())
        for partition in partitions:
            if producer in self.world.producers:
                self.write(producer, partition)
            self.time_passes(TIMEOUT_MS + 1)
            if producer.name in self.prepared():
                self.world.complete(producer.name)
        if producer in self.world.producers:
            self.end(producer, data.draw(st.booleans()), False)

    # What the world does

    @precondition(lambda self: bool(self.prepared()))
    @rule(data=st.data())
    def a_marker_is_written(self, data: Any) -> None:
        name = data.draw(st.sampled_from(sorted(self.prepared())))
        partitions = self.world.machine.transactions[name].partitions
        if partitions:
            self.world.write_marker(name, data.draw(st.sampled_from(sorted(partitions))))

    @precondition(lambda self: bool(self.prepared()))
    @rule(data=st.data())
    def the_rest_is_written(self, data: Any) -> None:
        self.world.complete(data.draw(st.sampled_from(sorted(self.prepared()))))

    @rule()
    def the_broker_crashes(self) -> None:
        self.world.crash()

    @rule(ms=st.sampled_from([1, TIMEOUT_MS // 2, TIMEOUT_MS + 1]))
    def time_passes(self, ms: int) -> None:
        self.world.now_ms += ms
        self.world.abort_timed_out()

    @rule()
    def unused_ids_expire(self) -> None:
        self.world.expire(TIMEOUT_MS)

    @precondition(lambda self: bool(self.world.machine.transactions))
    @rule(data=st.data())
    def epochs_are_used_up(self, data: Any) -> None:
        name = data.draw(st.sampled_from(sorted(self.world.machine.transactions)))
        value = self.world.machine.transactions[name]
        if value.state in AT_REST and value.producer_epoch < EPOCH_MAX - 1:
            self.world.use_up_epochs(name)
            for producer in self.at_work():
                if (producer.producer_id, producer.producer_epoch) == (value.producer_id, EPOCH_MAX - 1):
                    self.write(producer, PARTITIONS[0])
                    self.end(producer, data.draw(st.booleans()), data.draw(LOST))

    # What must always hold

    @invariant()
    def what_is_read_again_is_what_lived(self) -> None:
        if len(self.world.log) != self.checked:
            self.checked = len(self.world.log)
            assert self.world.reloaded().transactions == self.world.machine.transactions

    @invariant()
    def no_two_producers_have_the_same_id_and_epoch(self) -> None:
        held = [(producer.producer_id, producer.producer_epoch) for producer in self.initialised()]
        assert len(set(held)) == len(held)

    @invariant()
    def a_transaction_has_one_outcome(self) -> None:
        for token, outcomes in self.world.outcomes.items():
            assert len(outcomes) == 1, f"records of transaction {token} were both committed and aborted"

    @invariant()
    def promises_are_kept(self) -> None:
        for token, promise in self.world.promises.items():
            assert self.world.outcomes.get(token, {promise}) == {promise}

    @invariant()
    def an_open_record_belongs_to_an_open_transaction(self) -> None:
        """Nothing hangs: whatever is undecided in a partition, the coordinator knows that it has to decide it."""
        unfinished = {
            (value.producer_id, partition)
            for value in self.world.machine.transactions.values()
            if value.state in PREPARED or value.state is TransactionState.ONGOING
            for partition in value.partitions
        }
        for partition, log in self.world.partitions.items():
            for producer_id in log.open:
                assert (producer_id, partition) in unfinished

    def teardown(self) -> None:
        """In the end everyone is told: all markers are written, and every promise was kept in full."""
        self.world.now_ms += TIMEOUT_MS + 1
        self.world.abort_timed_out()
        for name in self.prepared():
            self.world.complete(name)
        assert not any(log.open for log in self.world.partitions.values())
        self.a_transaction_has_one_outcome()
        self.promises_are_kept()


TestTransactions = TransactionSimulation.TestCase
TestTransactions.settings = settings(
    max_examples=3_000 if SOAK else 150, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
