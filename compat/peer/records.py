"""Writing and reading whole topics, for tests that compare what went in with what came out."""

import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing.load import RECONNECT, quiet
from ottla.testing.waiting import wait_until

READ_SECONDS_MAX = 60.0


class Seen(NamedTuple):
    """A record as a consumer sees it."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int | None


def new_topic(bootstrap: str, name: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
    """With as many replicas as the brokers' own default says."""
    admin = AdminClient({"bootstrap.servers": bootstrap}, logger=quiet)
    admin.create_topics([NewTopic(name, partitions, config=dict(config or {}))])[name].result(30)


def produce(bootstrap: str, topic: str, values: Iterable[bytes], *, partitions: int) -> None:
    """To the partitions in turn; returns when all of it is acknowledged."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "acks": "all"}, logger=quiet)
    failed: list[KafkaError] = []
    for number, value in enumerate(values):
        producer.produce(
            topic,
            value,
            key=b"%d" % number,
            headers=[("number", b"%d" % number)],
            partition=number % partitions,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
        producer.poll(0)
    assert producer.flush(READ_SECONDS_MAX) == 0, f"{topic}: not acknowledged in time"
    assert not failed, failed


def read_committed(bootstrap: str, topic: str) -> dict[int, list[Seen]]:
    """What a read_committed consumer finds in each partition, up to where they end now."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            **RECONNECT,
        },
        logger=quiet,
    )
    try:
        partitions = sorted(consumer.list_topics(topic, timeout=READ_SECONDS_MAX).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
        return _read_to_the_end(consumer, partitions)
    finally:
        consumer.close()


def _read_to_the_end(consumer: Consumer, partitions: list[int]) -> dict[int, list[Seen]]:
    found: dict[int, list[Seen]] = {number: [] for number in partitions}
    left = set(partitions)
    while left:
        message = consumer.poll(READ_SECONDS_MAX)
        assert message is not None, f"nothing comes though partitions {left} have not ended"
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            left.discard(partition)
            continue
        assert offset is not None
        kind, time = message.timestamp()
        headers = tuple((str(name), _bytes(value)) for name, value in message.headers() or ())
        timestamp = None if kind == TIMESTAMP_NOT_AVAILABLE else time
        found[partition].append(Seen(offset, _bytes(message.key()), _bytes(message.value()), headers, timestamp))
    return found


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def counts_by_key(records: Mapping[int, list[Seen]]) -> dict[str, list[int]]:
    """Values that are numbers of 8 bytes, as Java's serializer writes them, in their order for each key."""
    found: dict[str, list[int]] = defaultdict(list)
    for partition in records.values():
        for record in partition:
            assert record.key is not None
            assert record.value is not None
            found[record.key.decode()].append(struct.unpack(">q", record.value)[0])
    return dict(found)


def wait_for_records(bootstrap: str, topic: str, count: int, *, seconds: float) -> None:
    """Until a topic has at least so many committed records, control batches and all; then look closer."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "watcher", "isolation.level": "read_committed", **RECONNECT},
        logger=quiet,
    )
    try:
        partitions = sorted(consumer.list_topics(topic, timeout=READ_SECONDS_MAX).topics[topic].partitions)

        def ends() -> int:
            places = [TopicPartition(topic, number) for number in partitions]
            return sum(consumer.get_watermark_offsets(each, timeout=READ_SECONDS_MAX)[1] for each in places)

        wait_until(lambda: ends() >= count, f"{count} records in {topic}", seconds=seconds)
    finally:
        consumer.close()
