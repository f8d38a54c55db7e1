"""What happens at a broker moves its metrics: all that are told of it, looked at before and after."""

import contextlib
import re
import urllib.request

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.metrics_moved import ONE_BROKER, moved, wait_until_moved

from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.fetch import FetchResponse
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from ottla.protocol.records import NewRecord, encode_batch
from ottla.testing import RunningBroker
from ottla.testing import broker as broker_with
from ottla.testing.requests import fetch_request
from ottla.testing.waiting import wait_until
from ottla.testing.wire import WireConnection

SETTINGS: dict[str, str | int | bool] = {
    "metrics.listener": "127.0.0.1:0",
    "message.max.bytes": 20_000,
    "log.cleaner.backoff.ms": 100,
    "log.flush.interval.messages": 1000,
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
    "group.initial.rebalance.delay.ms": 1_000,
}


def scrape(broker: RunningBroker) -> str:
    url = re.findall(r"HTTP listener started on (\S+)", broker.log_text())[-1]
    with urllib.request.urlopen(f"{url}/metrics", timeout=30) as answer:
        return str(answer.read().decode())


def consume(broker: RunningBroker, group: str, protocol: str) -> Consumer:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": group, "group.protocol": protocol,
         "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )  # fmt: skip
    consumer.subscribe(["news"])
    wait_until(lambda: consumer.poll(1.0) is not None, f"{group} reads something")
    consumer.commit(asynchronous=False)
    return consumer


def transact(broker: RunningBroker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "mover"})
    producer.init_transactions(30)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.produce("news", b"in a transaction")
        producer.flush(30)
        end(30)


def send_what_is_refused(broker: RunningBroker) -> None:
    batch = encode_batch([NewRecord(None, b"x" * 100, 1)])
    broken, old, gap = bytearray(batch), bytearray(batch), encode_batch([NewRecord(None, b"y", 1)], base_offset=3)
    broken[-1] ^= 0xFF
    old[16] = 1
    with WireConnection(broker.host, broker.port) as connection:
        for topic, records in (
            ("news", broken), ("news", old), ("news", gap), ("compacted", bytearray(batch)),
            ("news", encode_batch([NewRecord(None, b"z" * 30_000, 1)])),
        ):  # fmt: skip
            data = TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=0, records=bytearray(records))]
            )
            connection.call(ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[data]), 9, ProduceResponse)


def rebalance_by_hand(broker: RunningBroker) -> list[str]:
    """A group between two states, a fetch session, and a request behind one that waits."""
    texts = []
    with WireConnection(broker.host, broker.port) as connection, WireConnection(broker.host, broker.port) as waiting:
        fetch = fetch_request("news", 0, 0)
        fetch.session_epoch = 0
        connection.call(fetch, 12, FetchResponse)
        late = fetch_request("news", 1, 1 << 40, min_bytes=1 << 20, max_wait_ms=3_000)
        late.topics[0].partitions[0].fetch_offset = 0
        waiting.send(waiting.frame(late, 12) + waiting.frame(ApiVersionsRequest("me", "1"), 3))
        protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
        join = JoinGroupRequest(
            group_id="by-hand", session_timeout_ms=30_000, rebalance_timeout_ms=30_000, protocol_type="consumer",
            protocols=protocols,
        )  # fmt: skip
        connection.send(connection.frame(join, 2))
        texts.append(scrape(broker))
        connection.read_answer(JoinGroupRequest.API_KEY, 2)
        texts.append(scrape(broker))
    return texts


def test_one_broker() -> None:
    with broker_with(settings=SETTINGS) as broker:
        before = scrape(broker)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        topics = [
            NewTopic("news", 2, 1),
            NewTopic("zipped", 1, 1, config={"compression.type": "zstd", "flush.messages": "1"}),
            NewTopic("compacted", 1, 1, config={"cleanup.policy": "compact", "segment.ms": "10",
                                                "min.cleanable.dirty.ratio": "0.01"}),
            NewTopic("dirty", 1, 1, config={"cleanup.policy": "compact", "segment.ms": "10",
                                            "min.cleanable.dirty.ratio": "1.0"}),
        ]  # fmt: skip
        for future in admin.create_topics(topics).values():
            future.result(30)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
        for number in range(200):
            producer.produce("news", b"x" * 50, str(number % 5))
            producer.produce("zipped", b"x" * 50)
            producer.produce("compacted", b"x" * 50, str(number % 5))
            producer.produce("dirty", b"x" * 50, str(number % 5))
            if number % 20 == 0:
                producer.flush(30)
        assert producer.flush(30) == 0
        send_what_is_refused(broker)
        consumers = [consume(broker, "classic", "classic"), consume(broker, "newer", "consumer")]
        transact(broker)
        texts = [scrape(broker)]
        texts += rebalance_by_hand(broker)
        admin.delete_records([TopicPartition("news", 0, 1)])[TopicPartition("news", 0, 1)].result(30)

        found = set[str]().union(*(moved(before, text) for text in texts))

        def seen() -> set[str]:
            found.update(moved(before, scrape(broker)))
            return found

        wait_until(lambda: "kafka_log_logcleaner_max_clean_time_secs" in seen(), "the compacted topic is cleaned")
        for consumer in consumers:
            consumer.close()
        wait_until(lambda: "kafka_server_groupmetadatamanager_numgroupsempty" in seen(), "a group is empty")
        for future in admin.delete_consumer_groups(["classic", "newer"]).values():
            with contextlib.suppress(KafkaException):
                future.result(30)
        wait_until_moved(ONE_BROKER, seen)
