"""Apache Kafka's own programs for transactions against a running broker."""

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import pytest
from compat.peer.kafka import java_command, run_tool
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.protocol.records import NewRecord, encode_batch
from ottla.testing import RunningBroker, broker
from ottla.testing.load import RECONNECT, quiet
from ottla.testing.waiting import wait_until
from ottla.testing.wire import WireConnection

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


def _tool(running: RunningBroker, *arguments: str) -> list[dict[str, str]]:
    """The rows of the table that kafka-transactions.sh prints, by its headings."""
    printed = run_tool(f"{TOOLS}.TransactionsCommand", "--bootstrap-server", running.bootstrap, *arguments)
    rows = [re.split(r"\s*\t\s*", line.strip()) for line in printed.splitlines() if line.strip()]
    return [dict(zip(rows[0], row, strict=False)) for row in rows[1:]]  # empty columns at the end are left out


def test_a_hanging_transaction_is_found_and_ended(unique: Callable[[str], str]) -> None:
    """An old client's late batch opens a transaction that no coordinator knows, where that is not checked."""
    topic = unique("hanging")
    with broker({"transaction.partition.verification.enable": False}) as running:
        _new_topic(running, topic, 1)
        an_hour_ago = int(time.time() * 1000) - 3_600_000
        batch = encode_batch(
            [NewRecord(None, b"late", an_hour_ago)],
            producer_id=4242, producer_epoch=7, base_sequence=0, transactional=True,
        )  # fmt: skip
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])
        request = ProduceRequest(transactional_id="gone", acks=-1, timeout_ms=10_000, topic_data=[data])
        with WireConnection(running.host, running.port) as connection:
            answer = connection.call(request, 9, ProduceResponse)
        assert answer.responses[0].partition_responses[0].error_code == 0
        (found,) = _tool(running, "find-hanging", "--broker-id", "1")
        assert (found["Topic"], found["ProducerId"], found["ProducerEpoch"]) == (topic, "4242", "7")

        _tool(running, "abort", "--topic", topic, "--partition", "0", "--start-offset", found["StartOffset"])

        assert _tool(running, "find-hanging", "--broker-id", "1") == []
        reader = _reader(running)
        low, stable = reader.get_watermark_offsets(confluent_kafka.TopicPartition(topic, 0), timeout=30.0)
        assert (low, stable) == (0, 2)
        reader.close()


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

    (listed,) = [row for row in _tool(ottla_broker, "list") if row["TransactionalId"] == name]
    assert listed["TransactionState"] == "Ongoing"
    (described,) = _tool(ottla_broker, "describe", "--transactional-id", name)
    assert described["TransactionState"] == "Ongoing"
    assert described["TopicPartitions"] == f"{topic}-0"
    place = ("--topic", topic, "--partition", "0")
    (seen,) = _tool(ottla_broker, "describe-producers", *place)
    assert seen["ProducerId"] == described["ProducerId"]
    assert seen["CurrentTransactionStartOffset"] == "0"
    # The coordinator knows this transaction, so it is not one that hangs.
    assert _tool(ottla_broker, "find-hanging", "--broker-id", "1") == []

    _tool(ottla_broker, "abort", *place, "--start-offset", "0")

    (seen,) = _tool(ottla_broker, "describe-producers", *place)
    assert seen["CurrentTransactionStartOffset"] == "None"
    _tool(ottla_broker, "forceTerminateTransaction", "--transactionalId", name)
    (described,) = _tool(ottla_broker, "describe", "--transactional-id", name)
    assert described["TransactionState"] in {"CompleteAbort", "Empty"}
