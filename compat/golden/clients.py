"""Unmodified clients doing their usual work through the recorder, so that their own bytes are among the golden ones."""

import asyncio
import time
import uuid
from collections.abc import Callable

import aiokafka
import confluent_kafka
import confluent_kafka.admin
import kafka
import kafka.admin
from compat.peer.kafka import run_tool

WAIT_S = 30


def _confluent(bootstrap: str) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([confluent_kafka.admin.NewTopic("librdkafka", 2, 1)]).values():
        future.result(WAIT_S)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        settings = {"bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": True}
        producer = confluent_kafka.Producer(settings)
        for number in range(3):
            producer.produce("librdkafka", b"value " * 9, b"key", partition=number % 2, headers={"codec": codec})
        producer.flush(WAIT_S)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap, "group.id": "librdkafka", "auto.offset.reset": "earliest",
            "enable.auto.commit": False, "group.instance.id": "one",
            "partition.assignment.strategy": "cooperative-sticky",
        }
    )  # fmt: skip
    consumer.subscribe(["librdkafka"])
    seen = 0
    while seen < 15:
        seen += len(consumer.consume(15, 1))
    consumer.commit(asynchronous=False)
    consumer.offsets_for_times([confluent_kafka.TopicPartition("librdkafka", 0, int(time.time() * 1000) - 60_000)])
    consumer.close()
    admin.list_consumer_groups(request_timeout=WAIT_S).result()
    for future in admin.describe_consumer_groups(["librdkafka"], request_timeout=WAIT_S).values():
        future.result()


def _kafka_python(bootstrap: str) -> None:
    admin = kafka.admin.KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([kafka.admin.NewTopic("kafka-python", 1, 1)])
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)
    for number in range(3):
        producer.send("kafka-python", b"value", b"key %d" % number, headers=[("h", b"1")]).get(WAIT_S)
    producer.close()
    consumer = kafka.KafkaConsumer(
        "kafka-python", bootstrap_servers=bootstrap, group_id="kafka-python", auto_offset_reset="earliest",
        enable_auto_commit=False,
    )  # fmt: skip
    for number, _record in enumerate(consumer, 1):
        if number == 3:
            break
    consumer.commit()
    consumer.close()
    admin.close()


async def _use_aiokafka(bootstrap: str) -> None:
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
    await producer.start()
    for number in range(3):
        await producer.send_and_wait("librdkafka", b"value", b"key %d" % number, partition=0)
    await producer.stop()
    consumer = aiokafka.AIOKafkaConsumer(
        "librdkafka", bootstrap_servers=bootstrap, group_id="aiokafka", auto_offset_reset="earliest"
    )
    await consumer.start()
    await consumer.getone()
    await consumer.commit()
    await consumer.stop()


def _aiokafka(bootstrap: str) -> None:
    asyncio.run(_use_aiokafka(bootstrap))


def _java(bootstrap: str) -> None:
    server = ("--bootstrap-server", bootstrap)
    run_tool("org.apache.kafka.tools.TopicCommand", *server, "--create", "--topic", "java", "--partitions", "1")
    run_tool("org.apache.kafka.tools.TopicCommand", *server, "--describe", "--topic", "java")
    run_tool("org.apache.kafka.tools.ConsoleProducer", *server, "--topic", "java", stdin="one\ntwo\nthree\n")
    group = f"java-{uuid.uuid4().hex[:6]}"
    reading = ("--topic", "java", "--from-beginning", "--max-messages", "3", "--group", group)
    run_tool("org.apache.kafka.tools.consumer.ConsoleConsumer", *server, *reading)
    groups = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    run_tool(groups, *server, "--describe", "--group", group)
    run_tool("org.apache.kafka.tools.GetOffsetShell", *server, "--topic", "java")


CLIENTS: dict[str, Callable[[str], None]] = {
    "librdkafka": _confluent,
    "kafka-python": _kafka_python,
    "aiokafka": _aiokafka,
    "java": _java,
}
