"""Clients that have a quota are held to it, by the broker and whatever they do themselves; others are not held up.

Windows are short here, so that there is no burst of ten seconds' worth before anything can be seen.
"""

import contextlib
import select
import time
from collections.abc import Callable, Iterator
from functools import partial

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from ottla import testing
from ottla.cli.main import main
from ottla.model.errors import ErrorCode
from ottla.protocol.codec import decode
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.messages.fetch import FetchResponse
from ottla.protocol.messages.produce import ProduceResponse
from ottla.testing import RunningBroker
from ottla.testing.cluster import RunningCluster
from ottla.testing.requests import FETCH_VERSION, PRODUCE_VERSION, create_topic, fetch_request, produce_request
from ottla.testing.waiting import wait_until
from ottla.testing.wire import WireConnection

RATE = 200_000
VALUE = bytes(9_800)
SETTLING_SECONDS = 2.0
MEASURED_SECONDS = 6.0


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with testing.broker({"quota.window.num": 2, "controller.quota.window.num": 12}) as running:
        yield running


@pytest.fixture
def held(broker: RunningBroker, unique: Callable[[str], str]) -> Iterator[str]:
    """A client id that may produce and consume RATE bytes a second."""
    name = unique("held")
    whose = ["configs", "--bootstrap-server", broker.bootstrap, "--alter", "--client", name]
    quotas = f"producer_byte_rate={RATE},consumer_byte_rate={RATE}"
    assert main([*whose, "--add-config", quotas]) == 0
    yield name
    assert main([*whose, "--delete-config", "producer_byte_rate,consumer_byte_rate"]) == 0


@pytest.fixture
def topic(broker: RunningBroker, unique: Callable[[str], str]) -> str:
    name = unique("quotas")
    with WireConnection(broker.host, broker.port) as connection:
        assert create_topic(connection, name) == 0
    return name


@pytest.fixture
def full_topic(broker: RunningBroker, topic: str) -> str:
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "batch.size": 10_000})
    for _ in range(300):
        producer.produce(topic, VALUE)
    assert producer.flush(30) == 0
    return topic


def rate_of(step: Callable[[], int]) -> float:
    """Bytes a second that this brings, once what a client may use at once is used up."""
    begun = time.monotonic()
    while time.monotonic() - begun < SETTLING_SECONDS:
        step()
    measured, begun = 0, time.monotonic()
    while time.monotonic() - begun < MEASURED_SECONDS:
        measured += step()
    return measured / (time.monotonic() - begun)


def is_near_the_bound(rate: float) -> bool:
    return 0.7 * RATE <= rate <= 1.3 * RATE


@contextlib.contextmanager
def bystander(broker: RunningBroker) -> Iterator[Callable[[], float]]:
    """Another client; returns how long a request of it takes."""
    with WireConnection(broker.host, broker.port) as connection:

        def ask() -> float:
            begun = time.monotonic()
            connection.call(ApiVersionsRequest(), 2, ApiVersionsResponse)
            return time.monotonic() - begun

        yield ask


def test_a_producer_of_librdkafka(broker: RunningBroker, topic: str, held: str) -> None:
    told: list[float] = []
    delivered = [0]
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "client.id": held,
            "batch.size": 20_000,
            "queue.buffering.max.messages": 200,
            "throttle_cb": lambda event: told.append(event.throttle_time),
        }
    )

    def step() -> int:
        before = delivered[0]
        try:
            producer.produce(topic, VALUE, on_delivery=lambda error, _: delivered.append(error) if error else count())
        except BufferError:
            producer.poll(0.05)
        producer.poll(0)
        return delivered[0] - before

    def count() -> None:
        delivered[0] += len(VALUE)

    with bystander(broker) as ask:
        rate = rate_of(step)
        wait_until(lambda: ask() < 1.0, "another client is not held up")
    assert is_near_the_bound(rate), rate
    assert len(delivered) == 1, "nothing failed"
    assert told
    assert max(told) > 0
    producer.purge()


def test_a_consumer_of_librdkafka(broker: RunningBroker, full_topic: str, held: str) -> None:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "client.id": held,
            "group.id": held,
            "max.partition.fetch.bytes": 20_000,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(full_topic, 0, 0)])

    def step() -> int:
        message = consumer.poll(0.05)
        assert message is None or message.error() is None
        return len(message.value()) if message is not None else 0

    with bystander(broker) as ask:
        rate = rate_of(step)
        wait_until(lambda: ask() < 1.0, "another client is not held up")
    consumer.close()
    assert is_near_the_bound(rate), rate


def test_a_producer_of_kafka_python(broker: RunningBroker, topic: str, held: str) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, client_id=held, batch_size=1, max_block_ms=60_000)

    def step() -> int:
        producer.send(topic, VALUE).get(30)
        return len(VALUE)

    rate = rate_of(step)
    producer.close()
    assert is_near_the_bound(rate), rate


def test_a_consumer_of_kafka_python(broker: RunningBroker, full_topic: str, held: str) -> None:
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap, client_id=held, max_partition_fetch_bytes=20_000, max_poll_records=1
    )
    place = TopicPartition(full_topic, 0)
    consumer.assign([place])
    consumer.seek_to_beginning(place)

    def step() -> int:
        return sum(len(record.value) for records in consumer.poll(100).values() for record in records)

    rate = rate_of(step)
    consumer.close()
    assert is_near_the_bound(rate), rate


def test_an_answer_comes_at_once_and_the_next_when_the_time_is_over(
    broker: RunningBroker, topic: str, held: str
) -> None:
    with WireConnection(broker.host, broker.port) as client, bystander(broker) as ask:
        request = client.frame(produce_request(topic, 0, [bytes(3 * RATE)]), PRODUCE_VERSION, client_id=held)
        begun = time.monotonic()
        client.send(request)
        _, body = client.read_answer(ProduceResponse.API_KEY, PRODUCE_VERSION)
        answered = time.monotonic() - begun
        told_s = decode(ProduceResponse, PRODUCE_VERSION, body).throttle_time_ms / 1000
        assert 0.5 < told_s < 3
        client.send(client.frame(ApiVersionsRequest(), 2, client_id=held))
        assert not select.select([client.socket], [], [], told_s / 3)[0], "muted, whatever it asks, and not closed"
        wait_until(lambda: ask() < 1.0, "another client is not held up")
        client.read_answer(ApiVersionsRequest.API_KEY, 2)
        assert time.monotonic() - begun >= told_s - 0.05
        assert answered < told_s


def test_a_fetch_over_the_bound_is_answered_empty(broker: RunningBroker, full_topic: str, held: str) -> None:
    with WireConnection(broker.host, broker.port) as client:

        def ask(offset: int) -> FetchResponse:
            client.send(client.frame(fetch_request(full_topic, 0, offset), FETCH_VERSION, client_id=held))
            _, body = client.read_answer(FetchResponse.API_KEY, FETCH_VERSION)
            return decode(FetchResponse, FETCH_VERSION, body)

        first = ask(0)
        (part,) = first.responses[0].partitions
        assert 0 < len(part.records or b"") <= RATE, "no more than the window has"
        begun = time.monotonic()
        second = ask(0)
        assert time.monotonic() - begun >= first.throttle_time_ms / 1000 - 0.05
        assert second.responses == []
        assert second.throttle_time_ms > 0
        wait_until(lambda: bool(ask(0).responses), "it gets its records in the end")


def test_a_quota_is_in_force_on_every_broker_at_once(
    ottla_cluster: RunningCluster, unique: Callable[[str], str]
) -> None:
    topic, name = unique("quotas"), unique("held")
    new = NewTopic(topic, num_partitions=3, replica_assignment=[[1], [2], [3]])
    ottla_cluster.admin.create_topics([new])[topic].result()
    first = ottla_cluster.brokers[1]
    whose = ["configs", "--bootstrap-server", first.bootstrap, "--alter", "--client", name]
    with contextlib.ExitStack() as stack:
        clients = {
            number: stack.enter_context(WireConnection(broker.host, broker.port))
            for number, broker in ottla_cluster.brokers.items()
        }

        def told_ms(number: int) -> int:
            client, request = clients[number], produce_request(topic, number - 1, [bytes(20_000)])
            client.send(client.frame(request, PRODUCE_VERSION, client_id=name))
            _, body = client.read_answer(ProduceResponse.API_KEY, PRODUCE_VERSION)
            answer = decode(ProduceResponse, PRODUCE_VERSION, body)
            known = answer.responses[0].partition_responses[0].error_code == 0
            return answer.throttle_time_ms if known else -1

        def is_let_through(number: int) -> bool:
            return told_ms(number) == 0

        def is_held_up(number: int) -> bool:
            return told_ms(number) > 5_000

        for number in clients:
            wait_until(partial(is_let_through, number), f"the topic on broker {number}")
        assert main([*whose, "--add-config", "producer_byte_rate=1000"]) == 0
        for number in clients:
            wait_until(partial(is_held_up, number), f"the quota on broker {number}")
    assert main([*whose, "--delete-config", "producer_byte_rate"]) == 0


@contextlib.contextmanager
def quota(broker: RunningBroker, client_id: str, key: str, value: float) -> Iterator[None]:
    whose = ["configs", "--bootstrap-server", broker.bootstrap, "--alter", "--client", client_id]
    assert main([*whose, "--add-config", f"{key}={value}"]) == 0
    yield
    assert main([*whose, "--delete-config", key]) == 0


def test_who_keeps_the_broker_busy_has_to_wait(broker: RunningBroker, unique: Callable[[str], str]) -> None:
    name = unique("busy")
    with (
        WireConnection(broker.host, broker.port) as client,
        bystander(broker) as ask,
        quota(broker, name, "request_percentage", 0.5),
    ):
        request = client.frame(ApiVersionsRequest("software", "1"), 3, client_id=name)
        answers, longest_ms, begun = 0, 0, time.monotonic()
        while time.monotonic() - begun < 3:
            client.send(request)
            _, body = client.read_answer(ApiVersionsRequest.API_KEY, 3)
            longest_ms = max(longest_ms, decode(ApiVersionsResponse, 3, body).throttle_time_ms)
            answers += 1
        assert 0 < longest_ms <= 1_000
        assert answers < 3_000, "each takes the broker some 50 µs: 0.5 % of it are 100 a second, and the burst"
        wait_until(lambda: ask() < 1.0, "another client is not held up")


def test_topics_are_created_and_waited_for_or_refused_as_the_version_of_the_client_has_it(
    broker: RunningBroker, unique: Callable[[str], str]
) -> None:
    def refused_and_muted() -> bool:
        """False where a debt of 3 s was paid before the next request, on a busy machine: another client tries then."""
        name = unique("creator")
        with quota(broker, name, "controller_mutation_rate", 10), WireConnection(broker.host, broker.port) as new:

            def create() -> CreateTopicsResponse:
                topic = CreatableTopic(name=unique("one"), num_partitions=1, replication_factor=1)
                request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
                new.send(new.frame(request, 7, client_id=name))
                return decode(CreateTopicsResponse, 7, new.read_answer(request.API_KEY, 7)[1])

            old = AdminClient({"bootstrap.servers": broker.bootstrap, "client.id": name})  # its requests: version 4
            for future in old.create_topics([NewTopic(unique("many"), num_partitions=75) for _ in range(2)]).values():
                future.result()
            begun, refused = time.monotonic(), create()
            if refused.topics[0].error_code == 0:
                return False
            assert refused.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
            told_s = refused.throttle_time_ms / 1000
            assert 0 < told_s <= 3, "120 may be created at once, and 150 were"
            assert create().topics[0].error_code == 0, "the connection was muted until the debt was paid"
            assert time.monotonic() - begun >= told_s - 0.05
            return True

    wait_until(refused_and_muted, "a request comes before the debt is paid", seconds=300.0)
