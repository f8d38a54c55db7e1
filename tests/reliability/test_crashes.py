"""Kills at awkward moments, torn files, and the difference that a graceful stop makes."""

import random
import threading
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.chance import SEED

from ottla.model.errors import ErrorCode
from ottla.protocol.records import NewRecord, encode_batch
from ottla.testing import RunningBroker
from ottla.testing.load import RECONNECT, quiet, read_log
from ottla.testing.requests import create_topic, produce
from ottla.testing.waiting import wait_until
from ottla.testing.wire import WireConnection

SECONDS_MAX = 30.0
NOT_CLEAN = "Unclean shutdown: recovering"


def _send(running: RunningBroker, topic: str, values: list[bytes], partition: int = 0) -> None:
    failures: list[object] = []
    producer = Producer({"bootstrap.servers": running.bootstrap, "linger.ms": 0, **RECONNECT}, logger=quiet)
    for value in values:
        producer.produce(topic, value, partition=partition, on_delivery=lambda e, _: failures.append(e) if e else None)
        assert producer.flush(SECONDS_MAX) == 0
    assert failures == []


def _values(running: RunningBroker, topic: str) -> list[bytes]:
    return [value for _, _, value in read_log(running.bootstrap, topic, 1)]


def _new_topic(running: RunningBroker, topic: str) -> None:
    with WireConnection(running.host, running.port) as connection:
        assert create_topic(connection, topic) == ErrorCode.NONE


class _TopicChanges:
    """Creates and deletes topics without pause, and keeps what was promised about each."""

    def __init__(self, bootstrap: str) -> None:
        self.created: set[str] = set()
        self.deleted: set[str] = set()
        self.undecided: set[str] = set()
        self._stopping = threading.Event()
        self._admin = AdminClient({"bootstrap.servers": bootstrap, **RECONNECT}, logger=quiet)
        self._thread = threading.Thread(target=self._change, daemon=True)
        self._thread.start()

    def _change(self) -> None:
        number = 0
        while not self._stopping.is_set():
            number += 1
            name = f"changing-{number}"
            if not self._done(name, lambda n: self._admin.create_topics([NewTopic(n, 3)], request_timeout=2)):
                continue
            self.created.add(name)
            if number % 2:
                self.created.discard(name)
                if self._done(name, lambda n: self._admin.delete_topics([n], request_timeout=2)):
                    self.deleted.add(name)

    def _done(self, name: str, change: Callable[[str], dict[str, object]]) -> bool:
        try:
            change(name)[name].result(SECONDS_MAX)  # type: ignore[attr-defined]
        except KafkaException:
            self.undecided.add(name)  # the broker went away: it may or may not have happened
            return False
        return True

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(SECONDS_MAX)


def test_topics_created_and_deleted_under_kills_are_whole_or_gone(ottla_fresh_broker: RunningBroker) -> None:
    running = ottla_fresh_broker
    chance = random.Random(SEED)
    changes = _TopicChanges(running.bootstrap)
    for _ in range(4):
        target = len(changes.created) + chance.randrange(3, 12)
        wait_until(lambda t=target: len(changes.created) >= t, "topics come and go")  # type: ignore[misc]
        running.kill()
        running.restart()
    changes.stop()

    admin = AdminClient({"bootstrap.servers": running.bootstrap}, logger=quiet)
    listed = set(admin.list_topics(timeout=SECONDS_MAX).topics)
    assert not changes.created - listed, f"seed {SEED}: created, acknowledged and not there"
    assert not changes.deleted & listed, f"seed {SEED}: deleted, acknowledged and still there"
    for name in sorted(listed):
        for partition in range(3):
            _send(running, name, [b"x"], partition)

    def directories() -> set[str]:
        return {path.name.rpartition("-")[0] for path in running.log_dirs[0].iterdir() if path.is_dir()}

    in_service = {name for name in directories() if not name.startswith("__")}
    assert {name for name in in_service if name in changes.deleted} == set(), f"seed {SEED}: deleted, on disk"


def test_committed_offsets_survive_a_kill(ottla_fresh_broker: RunningBroker) -> None:
    running = ottla_fresh_broker
    _new_topic(running, "read")
    _send(running, "read", [b"x"] * 30)
    position = TopicPartition("read", 0)
    for offset in (7, 19, 30):
        consumer = Consumer({"bootstrap.servers": running.bootstrap, "group.id": "g", **RECONNECT}, logger=quiet)
        consumer.commit(offsets=[TopicPartition("read", 0, offset)], asynchronous=False)
        running.kill()
        running.restart()
        assert consumer.committed([position], timeout=SECONDS_MAX)[0].offset == offset
        consumer.close()


def test_a_group_goes_on_after_a_kill_without_a_new_generation(ottla_fresh_broker: RunningBroker) -> None:
    """Members are in the log, so to them the kill is a broken connection and nothing more."""
    running = ottla_fresh_broker
    _new_topic(running, "read")
    revoked: list[object] = []
    consumer = Consumer(
        {"bootstrap.servers": running.bootstrap, "group.id": "g", "session.timeout.ms": 30_000,
         "heartbeat.interval.ms": 100, "auto.offset.reset": "earliest", **RECONNECT}, logger=quiet,
    )  # fmt: skip
    consumer.subscribe(["read"], on_revoke=lambda *args: revoked.append(args))

    def polled(count: int) -> bool:
        for message in consumer.consume(100, timeout=0.1):
            if message.error() is None:
                found.append(message.value())
        return len(found) >= count

    found: list[bytes | None] = []
    _send(running, "read", [b"before"])
    wait_until(lambda: polled(1), "the first record")
    running.kill()
    running.restart()
    _send(running, "read", [b"after"])
    wait_until(lambda: polled(2), "the record after the kill")
    assert found == [b"before", b"after"]
    assert revoked == []
    consumer.close()


@pytest.mark.parametrize("torn", ["half a header", "half a batch", "zeros", "a batch whose CRC is wrong"])
def test_a_torn_tail_is_cut_and_nothing_before_it(torn: str, ottla_fresh_broker: RunningBroker) -> None:
    running = ottla_fresh_broker
    _new_topic(running, "torn")
    before = [f"record {n}".encode() for n in range(50)]
    _send(running, "torn", before)
    running.kill()
    batch = bytes(encode_batch([NewRecord(None, b"never acknowledged" * 10, 1)], base_offset=50))
    tail = {
        "half a header": batch[:30],
        "half a batch": batch[:-20],
        "zeros": bytes(4096),
        "a batch whose CRC is wrong": batch[:-1] + b"\xff",
    }[torn]
    with (running.log_dirs[0] / "torn-0" / "00000000000000000000.log").open("ab") as segment:
        segment.write(tail)
    running.restart()
    assert _values(running, "torn") == before
    _send(running, "torn", [b"after"])
    assert _values(running, "torn") == [*before, b"after"]
    assert "truncating to offset" in running.log_text()


def test_a_graceful_stop_leaves_nothing_to_recover(ottla_fresh_broker: RunningBroker) -> None:
    running = ottla_fresh_broker
    _new_topic(running, "kept")
    _send(running, "kept", [b"1", b"2"])
    assert running.stop() == 0
    assert (running.log_dirs[0] / ".kafka_cleanshutdown").exists()
    running.start()
    assert NOT_CLEAN not in running.log_text()
    assert _values(running, "kept") == [b"1", b"2"]
    assert not (running.log_dirs[0] / ".kafka_cleanshutdown").exists(), "the marker must not vouch for this run"

    running.kill()
    running.start()
    assert NOT_CLEAN in running.log_text()
    assert _values(running, "kept") == [b"1", b"2"]


def test_idempotent_producers_go_on_over_a_graceful_restart(ottla_fresh_broker: RunningBroker) -> None:
    """What the broker remembers of producers is in snapshots: the same producer continues its sequence."""
    running = ottla_fresh_broker
    _new_topic(running, "sequence")
    failures: list[object] = []
    producer = Producer({"bootstrap.servers": running.bootstrap, "enable.idempotence": True, **RECONNECT}, logger=quiet)
    for number in range(4):
        producer.produce("sequence", str(number), on_delivery=lambda e, _: failures.append(e) if e else None)
        assert producer.flush(SECONDS_MAX) == 0
        running.restart()
    assert failures == []
    assert _values(running, "sequence") == [b"0", b"1", b"2", b"3"]


@pytest.mark.one_broker("another broker leads after the restart, and has forgotten nothing")
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_what_a_producer_sends_again_after_a_restart_is_known(how: str, ottla_fresh_broker: RunningBroker) -> None:
    """It had several batches on their way and heard of none; the broker has all of them, and says so in order."""
    running = ottla_fresh_broker
    _new_topic(running, "again")

    def send(sequences: range) -> list[tuple[ErrorCode, int]]:
        with WireConnection(running.host, running.port) as connection:
            answers = [produce(connection, "again", 0, [b"%d" % n], producer=77, sequence=n) for n in sequences]
        return [(ErrorCode(answer.error_code), answer.base_offset) for answer in answers]

    assert send(range(7)) == [(ErrorCode.NONE, n) for n in range(7)]
    running.stop() if how == "stop" else running.kill()
    running.restart()
    assert send(range(2, 9)) == [(ErrorCode.NONE, n) for n in range(2, 9)]
    assert _values(running, "again") == [b"%d" % n for n in range(9)]
