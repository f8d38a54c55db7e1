"""`ottla monitor` and `ottla top` watch an Apache Kafka as they do our own brokers."""

import asyncio
import json
from collections.abc import Callable

import pytest
from compat.peer.kafka import Kafka
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.cli.main import main
from ottla.monitoring.clients import monitor_client
from ottla.monitoring.lag.rules import Rules, Status
from ottla.monitoring.lag.watching import Watch, WatchSettings
from ottla.testing.waiting import wait_until


def test_records_get_through_apache_kafka(apache_kafka: Kafka, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--bootstrap-server", apache_kafka.bootstrap, "--json"]
    patient = ["--write-timeout-ms", "30000", "--latency-max-ms", "60000"]
    assert main(["monitor", "--once", "--duration", "3", *patient, *where]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["produced"] == found["consumed"] > 10
    assert found["topics"]["creation_ms"] > 0
    assert found["commits"]["done"] == 1
    assert main(["top", "--once", "--delay", "0.5", *where]) == 0
    seen = json.loads(capsys.readouterr().out)
    assert seen["failures"] == []
    assert "ottla-monitor" in [each["topic"] for each in seen["topics"]]
    assert seen["brokers"][0]["free_share"] > 0


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_of_apache_kafka_that_stalls_is_told_from_one_that_stopped(
    protocol: str, apache_kafka: Kafka, unique: Callable[[str], str]
) -> None:
    topic = group = unique(f"stalls-{protocol}")
    admin = AdminClient({"bootstrap.servers": apache_kafka.bootstrap})
    admin.create_topics([NewTopic(topic, 1)])[topic].result(60)
    producer = Producer({"bootstrap.servers": apache_kafka.bootstrap})
    for _ in range(100):
        producer.produce(topic, b"x")
    assert producer.flush(60) == 0
    settings = {"bootstrap.servers": apache_kafka.bootstrap, "group.id": group, "enable.auto.commit": False}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest", "group.protocol": protocol})
    consumer.subscribe([topic])
    wait_until(lambda: consumer.poll(0.5) is not None, "it reads", seconds=60)
    consumer.commit(offsets=[TopicPartition(topic, 0, 3)], asynchronous=False)

    async def judge() -> tuple[Status, Status]:
        watch = Watch(
            WatchSettings("c", monitor_client(apache_kafka.bootstrap, {}), Rules(intervals=4), allow=f"^{group}$")
        )
        try:
            for _ in range(4):
                await watch.once()
                await asyncio.sleep(0.2)
            stalled = watch.judged[0].partitions[0]
            await asyncio.to_thread(consumer.close)
            for _ in range(100):
                await watch.once()
                await asyncio.sleep(0.2)
                if watch.judged[0].partitions[0].status is Status.STOP:
                    break
            return stalled.status, watch.judged[0].partitions[0].status
        finally:
            await watch.close()

    assert asyncio.run(judge()) == (Status.STALL, Status.STOP)
