"""What a consumer with read_committed sees: the only judge of what was written."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from ottla.testing.load import quiet

STALL_SECONDS_MAX = 120.0


class Record(NamedTuple):
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int

    def content(self) -> tuple[object, ...]:
        """What is the same in a copy, wherever that is."""
        return self.key, self.value, self.headers, self.timestamp_ms

    def said(self, name: str) -> str | None:
        """What a dead letter says in one of its headers."""
        value = dict(self.headers).get(f"ottla.error.{name}")
        return None if value is None else value.decode()


def committed(bootstrap: str, topic: str, partition: int | None = None) -> Iterator[Record]:
    """Every record of a topic, or of one of its partitions, that is visible now, as it comes."""
    settings = {
        "bootstrap.servers": bootstrap, "group.id": "judge", "isolation.level": "read_committed",
        "enable.auto.commit": False, "enable.partition.eof": True, "auto.offset.reset": "error",
    }  # fmt: skip
    with closing(Consumer(settings, logger=quiet)) as consumer:
        numbers = [*consumer.list_topics(topic, 30).topics[topic].partitions] if partition is None else [partition]
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in numbers])
        left = set(numbers)
        while left:
            message = consumer.poll(STALL_SECONDS_MAX)
            assert message is not None, f"nothing came for {STALL_SECONDS_MAX:g} s"
            error = message.error()
            if error is None:
                yield Record(
                    message.partition(), message.offset(), message.key(), message.value(),
                    tuple(message.headers() or ()), message.timestamp()[1],
                )  # fmt: skip
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                left.discard(message.partition())


def hash_of(records: Iterable[Record], *, offsets: bool = False) -> tuple[int, str]:
    """Of records in their order: key, value, headers, time; with their offsets where these stay. And how many."""
    found, count = hashlib.sha256(), 0
    for record in records:
        fields = [record.key, record.value]
        for name, value in record.headers:
            fields += (name.encode(), value)
        # How long each field is comes before the bytes, so that no two records look alike; null is no length.
        lengths = [-1 if one is None else len(one) for one in fields]
        found.update(repr((record.offset if offsets else 0, record.timestamp_ms, lengths)).encode())
        found.update(b"".join(one for one in fields if one))
        count += 1
    return count, found.hexdigest()


def content_hash(bootstrap: str, topic: str, partition: int, *, offsets: bool = False) -> tuple[int, str]:
    return hash_of(committed(bootstrap, topic, partition), offsets=offsets)


Partition = tuple[str, str, int]
"""Bootstrap servers, topic, number."""


def content_hashes(wanted: Sequence[Partition], *, offsets: bool = False) -> list[tuple[int, str]]:
    """Of many partitions, in two processes: looking at a record costs far more than getting it."""
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        asked = [pool.submit(content_hash, *one, offsets=offsets) for one in wanted]
        return [one.result() for one in asked]


def read_committed(bootstrap: str, topic: str, partition: int | None = None) -> list[Record]:
    """In the order of partitions and offsets."""
    return sorted(committed(bootstrap, topic, partition))


def values(bootstrap: str, topic: str) -> list[str]:
    """The values of a topic, sorted: equal to what was expected, or something is lost or doubled."""
    return sorted((record.value or b"").decode() for record in committed(bootstrap, topic))
