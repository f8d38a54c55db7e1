"""Records that librdkafka sends together, however slow the machine is."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from ottla.testing.waiting import wait_until


def send_as_one_batch(settings: Mapping[str, object], records: Sequence[Mapping[str, Any]]) -> list[KafkaError | None]:
    """What became of each. The batch goes when all of them are in it; flush() would send those that are there."""
    outcomes: dict[int, KafkaError | None] = {}

    def note(number: int, error: KafkaError | None, _: Message) -> None:
        outcomes[number] = error

    def all_told() -> bool:
        producer.poll(0)
        return len(outcomes) == len(records)

    producer = Producer({"linger.ms": 60_000, "batch.num.messages": len(records), **settings})
    for number, record in enumerate(records):
        producer.produce(partition=0, on_delivery=partial(note, number), **record)
    wait_until(all_told, "every record is sent or refused")
    return [outcomes[number] for number in range(len(records))]
