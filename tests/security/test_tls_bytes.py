"""Large records and large answers over TLS, byte for byte, and small ones beside them without a wait."""

import hashlib
import random
import threading
import time
from collections.abc import Callable

from confluent_kafka import Consumer, Producer, TopicPartition
from tests.security.conftest import PATIENCE_S, Credentials

from ottla.testing import RunningBroker
from ottla.testing.tls import Certificates

RECORDS = 60
RECORD_BYTES = 900_000


def test_large_produces_and_fetches(
    secured: RunningBroker, certificates: Certificates, unique: Callable[[str], str]
) -> None:
    chance = random.Random(3)
    values = [chance.randbytes(RECORD_BYTES) for _ in range(RECORDS)]
    settings = {
        "bootstrap.servers": secured.bootstrap_of("TLS"),
        **Credentials(ca=certificates.ca).librdkafka(),
        "message.max.bytes": 1_000_000,
    }
    topic, other = unique("large"), unique("small")
    producer = Producer(settings)
    for value in values:
        producer.produce(topic, value, partition=0)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0

    stop, waits = threading.Event(), []

    def bystander() -> None:
        small = Producer({**settings, "linger.ms": 0})
        while not stop.is_set():
            began = time.monotonic()
            small.produce(other, b"small")
            assert small.flush(PATIENCE_S) == 0
            waits.append(time.monotonic() - began)

    worker = threading.Thread(target=bystander)
    worker.start()
    consumer = Consumer(
        {**settings, "group.id": topic, "fetch.message.max.bytes": 50_000_000, "fetch.max.bytes": 60_000_000}
    )
    got: list[bytes] = []
    for _ in range(3):
        consumer.assign([TopicPartition(topic, 0, 0)])
        got = []
        while len(got) < RECORDS:
            got += [message.value() or b"" for message in consumer.consume(RECORDS, 1.0)]
    stop.set()
    worker.join(PATIENCE_S)
    consumer.close()
    assert [hashlib.sha256(value).digest() for value in got] == [hashlib.sha256(value).digest() for value in values]
    assert waits
    assert sorted(waits)[len(waits) // 2] < 1.0, "half of the small ones waited for large answers"
