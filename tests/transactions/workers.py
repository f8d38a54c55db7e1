"""Real clients on threads of their own: producers, copiers and readers that write down all they do."""

import contextlib
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from tests.transactions.history import Abort, Begin, Commit, Crash, Outcome, Poll, Send
from tests.transactions.recorder import Recorder, to_bytes

from ottla.model.names import TopicPartition
from ottla.testing.load import RECONNECT, quiet

INPUT, OUTPUT = "input", "output"
GROUP = "copiers"
TRANSACTION_TIMEOUT_MS = 10_000
CALL_SECONDS = 10.0
HANG_SECONDS = 15.0
SILENCE_SECONDS_MAX = 30.0
READ_AT_ONCE = 500
COPIED_AT_ONCE = 100
SENT_AT_ONCE_MAX = 60


class LifeIsOver(Exception):
    """This producer can do no more: fenced, or in an error that only a new one gets out of."""


class Worker:
    """Does its work on a thread, over and over, until it is asked to stop."""

    def __init__(self, bootstrap: str, recorder: Recorder, name: str, seed: int) -> None:
        self.name = name
        self.failure: Exception | None = None
        self._bootstrap = bootstrap
        self._recorder = recorder
        self._chance = random.Random(f"{seed} {name}")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def ask_to_stop(self) -> None:
        self._stopping.set()

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)
        if self._thread.is_alive():
            stack = traceback.format_stack(sys._current_frames()[self._thread.ident or 0])
            raise AssertionError(f"{self.name} does not come to an end:\n{''.join(stack)}")
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self.live()
        except Exception as failure:  # noqa: BLE001 - raised again in the thread of the test
            self.failure = failure

    def live(self) -> None:
        raise NotImplementedError


class TransactionalWorker(Worker):
    """Lives with one transactional id after the other, mostly the same one; it may meet its own zombies."""

    def __init__(self, bootstrap: str, recorder: Recorder, name: str, seed: int) -> None:
        super().__init__(bootstrap, recorder, name, seed)
        self._generation = 0
        self._zombie: tuple[Producer, Commit] | None = None
        self._process = 0

    def _new_producer(self) -> Producer:
        """A new life, whose first act fences the one before; that one's late commit is then to be refused."""
        self._process = self._recorder.new_process()
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "client.id": self.name,
                "transactional.id": f"{self.name}-{self._generation}",
                "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
                "linger.ms": self._chance.choice((0, 2)),
                "compression.type": self._chance.choice(("none", "lz4", "zstd")),
                **RECONNECT,
            },
            logger=quiet,
        )
        _insist(lambda: producer.init_transactions(CALL_SECONDS))
        self._let_the_zombie_try()
        return producer

    def _let_the_zombie_try(self) -> None:
        if self._zombie is None:
            return
        producer, commit = self._zombie
        self._zombie = None
        commit.invoked = time.monotonic_ns()
        self._recorder.invoke(commit)
        try:
            producer.commit_transaction(CALL_SECONDS)
        except KafkaException as error:
            # Its transaction was ended by its successor, whatever the words of the refusal are.
            self._recorder.complete(commit, Outcome.INFO if _reason(error).retriable() else Outcome.FAIL)
        else:
            self._recorder.complete(commit, Outcome.OK)
        _let_go(producer)

    def _begin(self, producer: Producer) -> int:
        number = self._recorder.new_transaction()
        begin = Begin(process=self._process, invoked=time.monotonic_ns(), transaction=number)
        self._recorder.invoke(begin)
        producer.begin_transaction()
        self._recorder.complete(begin, Outcome.OK)
        return number

    def _send(self, producer: Producer, number: int, partition: TopicPartition, source: int | None = None) -> bool:
        """Whether the client took it; one that refuses is in a transaction that can only be aborted."""
        send = Send(
            process=self._process,
            invoked=time.monotonic_ns(),
            transaction=number,
            partition=partition,
            value=self._recorder.new_value(),
            source=source,
        )

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                send.offset = message.offset()
                self._recorder.complete(send, Outcome.OK)

        self._recorder.invoke(send)
        try:
            producer.produce(partition.topic, to_bytes(send), partition=partition.partition, on_delivery=delivered)
        except (BufferError, KafkaException):
            self._recorder.complete(send, Outcome.FAIL)
            return False
        producer.poll(0)
        return True

    def _commit(self, producer: Producer, number: int) -> bool:
        """Whether it is committed; if not, it was aborted."""
        commit = Commit(process=self._process, invoked=time.monotonic_ns(), transaction=number)
        self._recorder.invoke(commit)
        try:
            _insist(lambda: producer.commit_transaction(CALL_SECONDS))
        except KafkaException as error:
            if not _reason(error).txn_requires_abort():
                raise LifeIsOver(str(error)) from error
            self._abort(producer, number)
            return False
        self._recorder.complete(commit, Outcome.OK)
        return True

    def _abort(self, producer: Producer, number: int) -> None:
        abort = Abort(process=self._process, invoked=time.monotonic_ns(), transaction=number)
        self._recorder.invoke(abort)
        try:
            _insist(lambda: producer.abort_transaction(CALL_SECONDS))
        except KafkaException as error:
            raise LifeIsOver(str(error)) from error
        self._recorder.complete(abort, Outcome.OK)

    def _crash(self, producer: Producer, number: int) -> None:
        """Leave a transaction open: mostly its next life ends it, sometimes only its timeout does."""
        self._recorder.done(Crash(process=self._process, invoked=time.monotonic_ns()))
        if self._chance.random() < 0.05:
            self._generation += 1  # nobody will ever ask for this transactional id again
        else:
            self._zombie = (producer, Commit(process=self._process, invoked=0, transaction=number))


class TransactionalProducer(TransactionalWorker):
    """Sends batches to all partitions of the input topic; commits most, aborts some, crashes at times."""

    def __init__(
        self, bootstrap: str, recorder: Recorder, name: str, seed: int, partitions: int, *, rest: float = 0.0
    ) -> None:
        super().__init__(bootstrap, recorder, name, seed)
        self._partitions = partitions
        self._rest_seconds = rest

    def live(self) -> None:
        producer = self._new_producer()
        while not self._stopping.wait(self._rest_seconds):
            number = self._begin(producer)
            taken = all(
                self._send(producer, number, TopicPartition(INPUT, self._chance.randrange(self._partitions)))
                for _ in range(self._chance.randint(1, SENT_AT_ONCE_MAX))
            )
            fate = self._chance.random()
            try:
                if fate < 0.02:
                    self._crash(producer, number)
                    return
                if fate < 0.15 or not taken:
                    self._abort(producer, number)
                else:
                    self._commit(producer, number)
            except LifeIsOver:
                _let_go(producer)
                return


class Copier(TransactionalWorker):
    """Carries records from the input topic over to the output topic, its position in the same transaction."""

    def __init__(self, bootstrap: str, recorder: Recorder, name: str, seed: int, group_protocol: str) -> None:
        super().__init__(bootstrap, recorder, name, seed)
        self._group_protocol = group_protocol

    def live(self) -> None:
        producer = self._new_producer()
        consumer = Consumer(_copier_settings(self._bootstrap, self._group_protocol), logger=quiet)
        process = self._process

        def assigned(_: Consumer, partitions: list[confluent_kafka.TopicPartition]) -> None:
            self._recorder.assigned(process, [TopicPartition(each.topic, each.partition) for each in partitions])

        consumer.subscribe([INPUT], on_assign=assigned)
        try:
            while not self._stopping.is_set() and self._copy_some(producer, consumer):
                pass
        finally:
            consumer.close()

    def _copy_some(self, producer: Producer, consumer: Consumer) -> bool:
        """Whether this life goes on."""
        invoked = time.monotonic_ns()
        messages = consumer.consume(COPIED_AT_ONCE, timeout=0.2)
        polls = self._recorder.polled(self._process, invoked, messages, committed_only=True)
        if not polls:
            return True
        number = self._begin(producer)
        taken = all(
            self._send(producer, number, TopicPartition(OUTPUT, poll.partition.partition), source)
            for poll in polls
            for source in poll.values
        )
        fate = self._chance.random()
        try:
            if fate < 0.02:
                self._crash(producer, number)
                return False
            committed = taken and self._add_positions(producer, consumer, polls) and fate >= 0.08
            if committed:
                committed = self._commit(producer, number)
            else:
                self._abort(producer, number)
        except LifeIsOver:
            _let_go(producer)
            return False
        if not committed:
            self._go_back(consumer, polls)
        return True

    @staticmethod
    def _add_positions(producer: Producer, consumer: Consumer, polls: list[Poll]) -> bool:
        positions = [
            confluent_kafka.TopicPartition(poll.partition.topic, poll.partition.partition, poll.offsets[-1] + 1)
            for poll in polls
        ]
        metadata = consumer.consumer_group_metadata()
        try:
            _within(HANG_SECONDS, lambda: producer.send_offsets_to_transaction(positions, metadata, CALL_SECONDS))
        except KafkaException as error:
            if _reason(error).fatal():
                raise LifeIsOver(str(error)) from error
            return False
        return True

    def _go_back(self, consumer: Consumer, polls: list[Poll]) -> None:
        """To where the aborted transaction began. A partition that is no longer ours is its new owner's business."""
        ours = {(each.topic, each.partition) for each in consumer.assignment()}
        for poll in polls:
            if tuple(poll.partition) in ours:
                self._recorder.assigned(self._process, [poll.partition])
                consumer.seek(confluent_kafka.TopicPartition(*poll.partition, poll.offsets[0]))


class Reader(Worker):
    """Follows all partitions of both topics; goes back a little at times, into the middle of what it has read."""

    def __init__(
        self, bootstrap: str, recorder: Recorder, name: str, seed: int, partitions: int, *, committed_only: bool
    ) -> None:
        super().__init__(bootstrap, recorder, name, seed)
        self._committed_only = committed_only
        self._positions = {
            TopicPartition(topic, number): 0 for topic in (INPUT, OUTPUT) for number in range(partitions)
        }

    def live(self) -> None:
        process = self._recorder.new_process()
        consumer = Consumer(_reader_settings(self._bootstrap, committed_only=self._committed_only), logger=quiet)
        consumer.assign([confluent_kafka.TopicPartition(*each, at) for each, at in self._positions.items()])
        while not self._stopping.is_set():
            invoked = time.monotonic_ns()
            messages = consumer.consume(READ_AT_ONCE, timeout=0.2)
            polls = self._recorder.polled(process, invoked, messages, committed_only=self._committed_only)
            for poll in polls:
                self._positions[poll.partition] = poll.offsets[-1] + 1
            if polls and self._chance.random() < 0.01:
                partition = self._chance.choice(polls).partition
                back = max(0, self._positions[partition] - self._chance.randrange(300))
                self._recorder.assigned(process, [partition])
                consumer.seek(confluent_kafka.TopicPartition(*partition, back))
        consumer.close()


def read_to_the_end(bootstrap: str, recorder: Recorder, topic: str, partitions: int, *, committed_only: bool) -> None:
    """What the checker asks for at the end of a history: one reader that has read everything there is."""
    process = recorder.new_process()
    settings = _reader_settings(bootstrap, committed_only=committed_only)
    consumer = Consumer({**settings, "enable.partition.eof": True}, logger=quiet)
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(partitions)])
        left = set(range(partitions))
        heard = time.monotonic()
        while left:
            invoked = time.monotonic_ns()
            messages = consumer.consume(READ_AT_ONCE, timeout=0.1)
            heard = time.monotonic() if messages else heard
            waited = time.monotonic() - heard
            assert waited < SILENCE_SECONDS_MAX, f"nothing comes though partitions {left} of {topic} have not ended"
            recorder.polled(process, invoked, messages, committed_only=committed_only)
            left -= {
                message.partition()
                for message in messages
                if message.error() is not None and message.error().code() == KafkaError._PARTITION_EOF
            }
    finally:
        consumer.close()


def _copier_settings(bootstrap: str, group_protocol: str) -> dict[str, str | int | float | bool]:
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": bootstrap,
        "group.id": GROUP,
        "group.protocol": group_protocol,
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 50,
        **RECONNECT,
    }
    if group_protocol == "classic":
        settings |= {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 500}
    return settings


def _reader_settings(bootstrap: str, *, committed_only: bool) -> dict[str, str | int | float | bool]:
    return {
        "bootstrap.servers": bootstrap,
        "group.id": "readers",
        "isolation.level": "read_committed" if committed_only else "read_uncommitted",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "fetch.wait.max.ms": 50,
        **RECONNECT,
    }


def _reason(error: KafkaException) -> KafkaError:
    reason: KafkaError = error.args[0]
    return reason


def _let_go(producer: Producer) -> None:
    """Wait until nothing of it is on its way: a fenced one that is destroyed while brokers still refuse batches of it
    frees the text of its error twice, and takes the process with it (librdkafka 2.16, `rd_kafka_txns_term`)."""
    until = time.monotonic() + CALL_SECONDS
    while len(producer) and time.monotonic() < until:
        with contextlib.suppress(KafkaException):  # it says again that it is fenced, and `flush` nothing else
            producer.poll(0.1)
    producer.purge()


def _within(seconds: float, call: Callable[[], object]) -> None:
    """For a call that may ignore its own time limit, as librdkafka's does for positions when the coordinator is away
    (its issue 5456): a client that hangs is left behind like one that has crashed."""
    outcome: list[KafkaException | None] = []

    def run() -> None:
        try:
            call()
        except KafkaException as error:
            outcome.append(error)
        else:
            outcome.append(None)

    thread = threading.Thread(target=run, name="may hang", daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        raise LifeIsOver(f"no answer within {seconds:g} s")
    if outcome[0] is not None:
        raise outcome[0]


def _insist(call: Callable[[], object]) -> None:
    """Call again as long as the client says that this may help: the broker is away and comes back."""
    while True:
        try:
            call()
        except KafkaException as error:
            if not _reason(error).retriable():
                raise
        else:
            return
