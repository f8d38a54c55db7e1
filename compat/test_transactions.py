"""Apache Kafka's own programs for transactions against a running broker."""

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import pytest
from compat.peer.kafka import java_command, run_tool
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing import RunningBroker, broker
from ottla.testing.load import RECONNECT, quiet
from ottla.testing.waiting import wait_until

pytestmark = pytest.mark.usefixtures("kafka_libs")

TOOLS = "org.apache.kafka.tools"
MESSAGES = 100_000
PARTITIONS = 2
KILLS = 6
COPY_SECONDS_MAX = 240


def _new_topic(running: RunningBroker, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": running.bootstrap}, logger=quiet)
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)


@pytest.fixture
def filled() -> Iterator[RunningBroker]:
    """A broker of its own, since it will be killed; its topic `input` holds the messages."""
    with broker({"transaction.abort.timed.out.transaction.cleanup.interval.ms": 1_000}) as running:
        _new_topic(running, "input", PARTITIONS)
        _new_topic(running, "output", PARTITIONS)
        producer = Producer({"bootstrap.servers": running.bootstrap, "linger.ms": 5}, logger=quiet)
        for number in range(MESSAGES):
            while True:
                try:
                    producer.produce("input", b"%d" % number, partition=number % PARTITIONS)
                except BufferError:
                    producer.poll(0.1)
                else:
                    break
        assert producer.flush(60) == 0
        yield running


class Copier:
    """Kafka's copier as a process; started again when it gave up, as whoever runs such a program would."""

    def __init__(self, bootstrap: str, number: int, log: Path) -> None:
        self._log = log
        self.starts = 0
        self._command = java_command(
            f"{TOOLS}.TransactionalMessageCopier", "--broker-list", bootstrap, "--input-topic", "input",
            "--input-partition", str(number), "--output-topic", "output", "--consumer-group", f"copier-{number}",
            "--transactional-id", f"copier-{number}", "--transaction-size", "500", "--transaction-timeout", "10000",
            "--enable-random-aborts", "--use-group-metadata", flags=("-Xmx128m", "-XX:+UseSerialGC"),
        )  # fmt: skip
        self._process = self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        self.starts += 1
        with self._log.open("ab") as log:
            return subprocess.Popen(self._command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def finished(self) -> bool:
        code = self._process.poll()
        if code not in {None, 0}:
            assert self.starts < 2 * KILLS, self._log.read_text()[-4000:]
            self._process = self._start()
        return code == 0

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture
def copiers(filled: RunningBroker, tmp_path: Path) -> Iterator[list[Copier]]:
    started = [Copier(filled.bootstrap, number, tmp_path / f"copier-{number}.log") for number in range(PARTITIONS)]
    yield started
    for copier in started:
        copier.end()


def _reader(running: RunningBroker) -> Consumer:
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": running.bootstrap,
        "group.id": "reader",
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
        **RECONNECT,
    }
    return Consumer(settings, logger=quiet)


def _read_all(running: RunningBroker, topic: str) -> list[list[int]]:
    """The numbers in each partition, in the order of the log."""
    found: list[list[int]] = [[] for _ in range(PARTITIONS)]
    consumer = _reader(running)
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        left = set(range(PARTITIONS))
        while left:
            message = consumer.poll(30)
            assert message is not None, f"nothing comes though partitions {left} have not ended"
            partition, value = message.partition(), message.value()
            assert partition is not None
            if message.error() is not None:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                left.discard(partition)
            else:
                assert value is not None
                found[partition].append(int(value))
    finally:
        consumer.close()
    return found


@pytest.mark.timeout(600)
def test_message_copier_while_the_broker_is_killed(filled: RunningBroker, copiers: list[Copier]) -> None:
    """Every message is copied once and in order, though the copiers abort a third of their transactions by chance."""
    reader = _reader(filled)
    for kill in range(1, KILLS + 1):
        wanted = kill * MESSAGES // (KILLS + 1)
        wait_until(
            lambda n=wanted: _written(reader) >= n,  # type: ignore[misc]
            f"{wanted} records in the output topic before kill {kill}",
            seconds=COPY_SECONDS_MAX,
        )
        filled.kill()
        filled.restart()
    wait_until(
        lambda: sum(copier.finished() for copier in copiers) == len(copiers),
        "the copiers have finished",
        seconds=COPY_SECONDS_MAX,
    )
    reader.close()
    copied = _read_all(filled, "output")
    assert copied == [list(range(number, MESSAGES, PARTITIONS)) for number in range(PARTITIONS)]


def _written(reader: Consumer) -> int:
    """Where the partitions of the output topic end, by the last stable offset."""
    places = [confluent_kafka.TopicPartition("output", number) for number in range(PARTITIONS)]
    try:
        return sum(reader.get_watermark_offsets(place, timeout=30.0)[1] for place in places)
    except KafkaException:
        return -1  # it has not noticed yet that the broker is back


def test_transactions_tool(ottla_broker: RunningBroker, unique: Callable[[str], str]) -> None:
    """An open transaction is listed, described and seen at its partition; its abort lets readers go on."""
    topic, name = unique("transactions"), unique("id")
    _new_topic(ottla_broker, topic, 1)
    settings = {"bootstrap.servers": ottla_broker.bootstrap, "transactional.id": name, "linger.ms": 0}
    producer = Producer(settings, logger=quiet)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    assert producer.flush(30) == 0

    def tool(*arguments: str) -> list[list[str]]:
        printed = run_tool(f"{TOOLS}.TransactionsCommand", "--bootstrap-server", ottla_broker.bootstrap, *arguments)
        return [re.split(r"\s*\t\s*", line.strip()) for line in printed.splitlines() if line.strip()]

    listed = {row[0]: row for row in tool("list")[1:]}
    assert listed[name][3] == "Ongoing"
    (header, described) = tool("describe", "--transactional-id", name)
    state = dict(zip(header, described, strict=True))
    assert state["TransactionState"] == "Ongoing"
    assert state["TopicPartitions"] == f"{topic}-0"
    place = ("--topic", topic, "--partition", "0")
    (header, seen) = tool("describe-producers", *place)
    at_partition = dict(zip(header, seen, strict=True))
    assert at_partition["ProducerId"] == state["ProducerId"]
    assert at_partition["CurrentTransactionStartOffset"] == "0"
    # The coordinator knows this transaction, so it is not one that hangs.
    assert tool("find-hanging", "--broker-id", "1")[1:] == []

    tool("abort", *place, "--start-offset", "0")

    (header, seen) = tool("describe-producers", *place)
    assert dict(zip(header, seen, strict=True))["CurrentTransactionStartOffset"] == "None"
    tool("forceTerminateTransaction", "--transactionalId", name)
    (header, described) = tool("describe", "--transactional-id", name)
    assert dict(zip(header, described, strict=False))["TransactionState"] in {"CompleteAbort", "Empty"}
