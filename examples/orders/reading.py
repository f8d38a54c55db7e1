"""Topics and Parquet read back by other programs than the one that wrote them: librdkafka and Arrow."""

import json
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pyarrow.dataset as ds
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from examples.orders.truth import Revenue, Sale, WindowKey

READ_SECONDS_MAX = 20.0


def read_topic(bootstrap: str, topic: str) -> Iterator[Message]:
    """Every committed record that is there now."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "orders-check",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    try:
        partitions = sorted(consumer.list_topics(topic, timeout=READ_SECONDS_MAX).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        open_partitions = set(partitions)
        last_seen = time.monotonic()
        while open_partitions:
            # `consume` waits until it has as many as were asked for, so it is not given long.
            messages = consumer.consume(5_000, timeout=0.1)
            if messages:
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen > READ_SECONDS_MAX:
                raise TimeoutError(f"{topic}: nothing came for {READ_SECONDS_MAX:g} s")
            for message in messages:
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    open_partitions.discard(message.partition())
                else:
                    raise KafkaException(error)
    finally:
        consumer.close()


def count_committed(bootstrap: str, topic: str) -> int:
    return sum(1 for _ in read_topic(bootstrap, topic))


def sales_in_topic(bootstrap: str, topic: str) -> Iterator[Sale]:
    for message in read_topic(bootstrap, topic):
        fields = json.loads(message.value() or b"")
        yield Sale(
            id=fields["id"], customer=fields["customer"], name=fields["name"], country=fields["country"],
            item=fields["item"], quantity=fields["quantity"], total_cents=fields["total_cents"], at=_time(fields["at"]),
        )  # fmt: skip


def sales_in_parquet(folder: Path) -> Iterator[Sale]:
    if not folder.exists():
        return
    for row in ds.dataset(folder, format="parquet", partitioning="hive").to_table().to_pylist():
        yield Sale(
            id=row["id"], customer=row["customer"], name=row["name"], country=row["country"], item=row["item"],
            quantity=row["quantity"], total_cents=row["total_cents"], at=row["at"],
        )  # fmt: skip


def revenue_in_topic(bootstrap: str, topic: str) -> Iterator[tuple[WindowKey, Revenue]]:
    for message in read_topic(bootstrap, topic):
        fields = json.loads(message.value() or b"")
        key = (_time(fields["window_start"]), fields["country"])
        yield key, Revenue(fields["orders"], fields["total_cents"])


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
