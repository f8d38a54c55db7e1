"""What a consumer with read_committed sees: the only judge of what was written."""

from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, TopicPartition

from ottla.testing.load import quiet

STALL_SECONDS_MAX = 120.0


class Seen(NamedTuple):
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp_ms: int


def read_committed(bootstrap: str, topic: str) -> list[Seen]:
    """Every record of a topic that is visible now, partition by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "judge",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        },
        logger=quiet,
    )
    try:
        partitions = consumer.list_topics(topic, 30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        ended: set[int] = set()
        seen: list[Seen] = []
        while len(ended) < len(partitions):
            message = consumer.poll(STALL_SECONDS_MAX)
            assert message is not None, f"nothing came for {STALL_SECONDS_MAX:g} s"
            error = message.error()
            if error is None:
                seen.append(
                    Seen(
                        message.partition(), message.offset(), message.key(), message.value(),
                        message.headers() or [], message.timestamp()[1],
                    )
                )  # fmt: skip
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            else:
                raise AssertionError(str(error))
        return sorted(seen)
    finally:
        consumer.close()


def values(bootstrap: str, topic: str) -> list[str]:
    """The values of a topic, sorted: equal to what was expected, or something is lost or doubled."""
    return sorted((record.value or b"").decode() for record in read_committed(bootstrap, topic))
