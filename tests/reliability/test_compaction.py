"""kill -9 while logs are cleaned: no newest value is lost, no deleted key comes back."""

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.chance import SEED, SOAK

from ottla.testing import RunningBroker, broker
from ottla.testing.load import quiet
from ottla.testing.waiting import wait_until

ROUNDS = 30 if SOAK else 3
TOPIC = "table"
KEYS = 3_000
DELETED_SHARE = 0.2
RECORDS_PER_SECOND = 6_000
SEQUENCE = "sequence"

# Dirty at once, and slow to clean: most kills then come in the middle of a cleaning.
SETTINGS: dict[str, str | int] = {
    "log.segment.bytes": 1_048_576,
    "log.cleaner.backoff.ms": 20,
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.cleaner.io.max.bytes.per.second": 12_000_000,
    "log.cleaner.delete.retention.ms": 300,
    "log.segment.delete.delay.ms": 200,
    "log.flush.offset.checkpoint.interval.ms": 250,
}
RESTING, WORKING = {"log.cleaner.enable": "false"}, {"log.cleaner.enable": "true"}


class Operation:
    """The last thing known to have been written to a key."""

    __slots__ = ("deletes", "sequence")

    def __init__(self, sequence: int, deletes: bool) -> None:
        self.sequence = sequence
        self.deletes = deletes


class TableWriter:
    """Writes and deletes keys without end, and remembers what was sent and what was acknowledged."""

    def __init__(self, bootstrap: str, seed: int) -> None:
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5}
        self._producer = Producer(settings, logger=quiet)
        self._chance = random.Random(seed)
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._acknowledged: dict[bytes, Operation] = {}
        self._deletes_sent: dict[bytes, int] = {}
        self.refusals: list[KafkaError] = []
        self.total = 0
        self._thread = threading.Thread(target=self._write)

    def start(self) -> "TableWriter":
        self._thread.start()
        return self

    def _write(self) -> None:
        begun, sequence = time.monotonic(), 0
        while not self._stopping.is_set():
            due = int((time.monotonic() - begun) * RECORDS_PER_SECOND)
            for _ in range(min(due - sequence, 1000)):
                self._one(sequence)
                sequence += 1
            self._producer.poll(0.005)
        self._producer.flush(60)

    def _one(self, sequence: int) -> None:
        key = b"key-%d" % self._chance.randrange(KEYS)
        deletes = self._chance.random() < DELETED_SHARE
        with self._lock:
            if deletes:
                self._deletes_sent[key] = sequence

        def delivered(error: KafkaError | None, _: Message) -> None:
            with self._lock:
                if error is not None:
                    self.refusals.append(error)
                else:
                    self._acknowledged[key] = Operation(sequence, deletes)
                    self.total += 1

        value = None if deletes else b"%d:" % sequence + b"v" * self._chance.randrange(20, 300)
        while True:
            try:
                self._producer.produce(TOPIC, value, key, headers={SEQUENCE: str(sequence)}, on_delivery=delivered)
            except BufferError:
                self._producer.poll(0.01)
            else:
                return

    def promised(self) -> dict[bytes, Operation]:
        with self._lock:
            return dict(self._acknowledged)

    def may_be_deleted_after(self, key: bytes, sequence: int) -> bool:
        """Whether a deletion was sent later than this, acknowledged or not."""
        with self._lock:
            return self._deletes_sent.get(key, -1) >= sequence

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()


def read_table(bootstrap: str) -> tuple[dict[bytes, Operation], int]:
    """What a reader of the whole log ends up with, and how many records it read."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader"}, logger=quiet)
    place = TopicPartition(TOPIC, 0, 0)
    _, end = consumer.get_watermark_offsets(place, timeout=30)
    consumer.assign([place])
    table: dict[bytes, Operation] = {}
    count, before = 0, -1

    def read() -> bool:
        nonlocal count, before
        for message in consumer.consume(5000, 0.5):
            assert message.error() is None, message.error()
            assert message.offset() > before, "offsets rise"
            before, count = message.offset(), count + 1
            sequence = int(dict(message.headers())[SEQUENCE])
            assert message.value() is None or message.value().startswith(b"%d:" % sequence)
            table[message.key()] = Operation(sequence, message.value() is None)
        return bool(consumer.position([place])[0].offset >= end)

    wait_until(read, f"the reader is at {end}", seconds=60)
    consumer.close()
    return table, count


def audit(table: dict[bytes, Operation], promised: dict[bytes, Operation], writer: TableWriter) -> list[str]:
    """What is wrong with the table, given what was acknowledged before it was read."""
    problems = []
    for key, known in promised.items():
        found = table.get(key)
        if found is None:
            if not writer.may_be_deleted_after(key, known.sequence):
                problems.append(f"{key!r}: value {known.sequence} is lost")
        elif found.sequence < known.sequence:
            what = "came back" if known.deletes else "is old"
            problems.append(f"{key!r}: {found.sequence} {what}, {known.sequence} was acknowledged")
    return problems


@pytest.fixture
def running() -> Iterator[RunningBroker]:
    with broker(SETTINGS) as started:
        admin = AdminClient({"bootstrap.servers": started.bootstrap}, logger=quiet)
        topic = NewTopic(TOPIC, 1, config={"cleanup.policy": "compact"})
        admin.create_topics([topic])[TOPIC].result(30)
        yield started


def _files(running: RunningBroker, *suffixes: str) -> list[Path]:
    return [path for path in (running.log_dirs[0] / f"{TOPIC}-0").iterdir() if path.name.endswith(suffixes)]


def _cleanings(running: RunningBroker) -> int:
    return running.log_text().count("Log cleaner cleaned")


def _wait_for_cleanings(running: RunningBroker, *, done: int) -> None:
    """Until this many cleanings are over and another one is under way."""
    wanted = _cleanings(running) + done
    wait_until(lambda: _cleanings(running) >= wanted, f"{done} cleanings are over", seconds=60)
    wait_until(lambda: _files(running, ".cleaned", ".swap"), "a cleaning is under way", seconds=60)


@pytest.mark.timeout(3600 if SOAK else 600)
def test_tables_survive_kills_during_cleanings(running: RunningBroker) -> None:
    chance = random.Random(SEED)
    writer = TableWriter(running.bootstrap, SEED).start()
    interrupted = cleanings = records = 0
    try:
        for number in range(ROUNDS):
            _wait_for_cleanings(running, done=chance.randrange(2))
            time.sleep(chance.random() / 4)  # a kill comes at any moment, so there is no condition to wait for
            running.kill()
            interrupted += bool(_files(running, ".cleaned", ".swap"))
            promised = writer.promised()
            running.restart(RESTING)
            assert not _files(running, ".cleaned", ".swap")
            table, records = read_table(running.bootstrap)
            problems = audit(table, promised, writer)
            assert not problems, f"after kill {number} of seed {SEED}: {problems[:5]}\n{running.log_text()[-3000:]}"
            running.restart(WORKING)
            cleanings = _cleanings(running)
        wait_until(lambda: _cleanings(running) > cleanings, "the last cleaning is over", seconds=60)
    finally:
        writer.stop()
    assert not writer.refusals, writer.refusals[:5]
    assert records < writer.total, "cleaning keeps the log short"
    print(
        f"\n{ROUNDS} kills, seed {SEED}: {writer.total:,} records acknowledged, {_cleanings(running)} cleanings, "
        f"{interrupted} kills in the middle of one, {records:,} records left at the last reading, nothing lost, "
        f"nothing came back"
    )


INTERNAL: dict[str, str | int] = {
    **SETTINGS,
    "log.roll.ms": 100,
    "log.cleaner.io.max.bytes.per.second": 1_000_000_000,
    "transaction.state.log.num.partitions": 1,
}


def test_coordinators_reload_from_cleaned_logs() -> None:
    """Offsets, some of them committed in transactions, and producers survive the cleaning of the internal topics."""
    with broker(INTERNAL) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap}, logger=quiet)
        admin.create_topics([NewTopic(TOPIC, 3)])[TOPIC].result(30)
        producers = [_transactional(running.bootstrap, f"writer-{number}") for number in range(3)]
        committed: dict[str, int] = {}
        rounds = 0

        def cleaned_twice() -> bool:
            nonlocal rounds
            rounds += 1
            for number, producer in enumerate(producers):
                committed[f"plain-{number}"] = _commit(running.bootstrap, f"plain-{number}", rounds)
                _commit_in_transaction(producer, running.bootstrap, f"mixed-{number}", rounds, abort=rounds % 3 == 0)
                if rounds % 3:
                    committed[f"mixed-{number}"] = rounds
            text = running.log_text()
            return all(
                text.count(f"{topic}-0: Log cleaner cleaned") >= 2
                for topic in ("__consumer_offsets", "__transaction_state")
            )

        wait_until(cleaned_twice, "both internal topics are cleaned twice", seconds=90)
        running.kill()
        running.restart(RESTING)
        for group, offset in committed.items():
            assert _committed(running.bootstrap, group) == offset, f"{group} after {rounds} rounds"
        successor = _transactional(running.bootstrap, "writer-0")
        _commit_in_transaction(successor, running.bootstrap, "mixed-0", 1_000_000, abort=False)
        assert _committed(running.bootstrap, "mixed-0") == 1_000_000
        with pytest.raises(KafkaException):  # its epoch was known before the kill, and is fenced by the successor's
            _commit_in_transaction(producers[0], running.bootstrap, "mixed-0", 5, abort=False)


def _transactional(bootstrap: str, name: str) -> Producer:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name}, logger=quiet)
    producer.init_transactions(30)
    return producer


def _group(bootstrap: str, group: str) -> Consumer:
    return Consumer({"bootstrap.servers": bootstrap, "group.id": group}, logger=quiet)


def _commit(bootstrap: str, group: str, offset: int) -> int:
    consumer = _group(bootstrap, group)
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
    consumer.close()
    return offset


def _commit_in_transaction(producer: Producer, bootstrap: str, group: str, offset: int, *, abort: bool) -> None:
    consumer = _group(bootstrap, group)
    try:
        producer.begin_transaction()
        producer.produce(TOPIC, b"value", b"key")
        position = [TopicPartition(TOPIC, 0, offset)]
        producer.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), 30)
        if abort:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    finally:
        consumer.close()


def _committed(bootstrap: str, group: str) -> int:
    consumer = _group(bootstrap, group)
    try:
        return int(consumer.committed([TopicPartition(TOPIC, 0)], timeout=30)[0].offset)
    finally:
        consumer.close()
