"""Clients with and without rights: confluent-kafka over PLAIN logins, producing, consuming, administering."""

import asyncio
import itertools
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from ottla.client.connection import Connection
from ottla.client.security import parse_security
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    RequestTopicPartitions,
)
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.testing import RunningBroker, broker

PATIENCE_S = 30.0
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
USERS = ("admin", "alice", "bob")
_numbers = itertools.count()


@pytest.fixture(scope="module")
def guarded() -> Iterator[RunningBroker]:
    users = " ".join(f'user_{name}="{name}-secret"' for name in USERS)
    with broker(
        {
            "listeners": "CLIENTS://127.0.0.1:0",
            "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "inter.broker.listener.name": "CLIENTS",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.clients.plain.sasl.jaas.config": (
                f'{PLAIN_MODULE} required username="admin" password="admin-secret" {users};'
            ),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:admin",
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.num.partitions": 1,
            "group.initial.rebalance.delay.ms": 0,
        }
    ) as running:
        yield running


Settings = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def login(guarded: RunningBroker) -> Settings:
    def settings(user: str, **more: Any) -> dict[str, Any]:
        return {
            "bootstrap.servers": guarded.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": f"{user}-secret",
            "allow.auto.create.topics": False,
            **{name.replace("_", "."): value for name, value in more.items()},
        }

    return settings


@pytest.fixture(scope="module")
def admin(login: Settings) -> AdminClient:
    settings = login("admin")
    del settings["allow.auto.create.topics"]
    return AdminClient(settings)


@pytest.fixture
def topic(admin: AdminClient) -> Iterator[str]:
    """A topic of its own for each test, which ends without any rules."""
    name = f"news-{next(_numbers)}"
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(PATIENCE_S)
    yield name
    everything = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    for future in admin.delete_acls([everything]).values():
        future.result(PATIENCE_S)


def rule(kind: ResourceType, name: str, operation: AclOperation, user: str = "alice") -> AclBinding:
    return AclBinding(kind, name, ResourcePatternType.LITERAL, f"User:{user}", "*", operation, AclPermissionType.ALLOW)


def allow(admin: AdminClient, *rules: AclBinding) -> None:
    for future in admin.create_acls(list(rules)).values():
        future.result(PATIENCE_S)


def withdraw(admin: AdminClient, given: AclBinding) -> None:
    wanted = AclBindingFilter(
        given.restype, given.name, given.resource_pattern_type, given.principal, given.host, given.operation,
        given.permission_type,
    )  # fmt: skip
    assert [len(future.result(PATIENCE_S)) for future in admin.delete_acls([wanted]).values()] == [1]


def produce(settings: dict[str, Any], topic: str) -> KafkaError | None:
    """What the client is told of one record; None: it was taken."""
    told: list[KafkaError | None] = []
    producer = Producer({**settings, "message.timeout.ms": 20_000})
    producer.produce(topic, b"a record", on_delivery=lambda error, _message: told.append(error))
    assert producer.flush(PATIENCE_S) == 0
    return told[0]


def consume(settings: dict[str, Any], topic: str) -> KafkaError | bytes:
    """The first record, or the first error, of a consumer in the group `readers`."""
    consumer = Consumer({**settings, "group.id": "readers", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([topic])
        ends = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends:
            message = consumer.poll(1.0)
            if message is not None:
                error = message.error()
                value = message.value()
                if error is not None or value is not None:
                    return error if error is not None else value
        raise AssertionError("neither a record nor an error")
    finally:
        consumer.close()


def code(found: object) -> int | None:
    return found.code() if isinstance(found, KafkaError) else None


def test_producing_needs_write(admin: AdminClient, login: Settings, topic: str) -> None:
    assert code(produce(login("alice"), topic)) == KafkaError.TOPIC_AUTHORIZATION_FAILED
    allow(admin, rule(ResourceType.TOPIC, topic, AclOperation.WRITE))
    assert produce(login("alice"), topic) is None
    assert produce(login("alice", enable_idempotence=True), topic) is None, "Write on any topic suffices"
    assert code(produce(login("bob"), topic)) == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_consuming_needs_read_on_topic_and_group(admin: AdminClient, login: Settings, topic: str) -> None:
    assert produce(login("admin"), topic) is None
    allow(admin, rule(ResourceType.TOPIC, topic, AclOperation.READ))
    assert code(consume(login("alice"), topic)) == KafkaError.GROUP_AUTHORIZATION_FAILED
    allow(
        admin,
        rule(ResourceType.GROUP, "readers", AclOperation.READ),
        rule(ResourceType.GROUP, "readers", AclOperation.READ, "bob"),
    )
    assert consume(login("alice"), topic) == b"a record"
    assert code(consume(login("bob"), topic)) == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_transactions_need_write_on_their_id(admin: AdminClient, login: Settings, topic: str) -> None:
    allow(admin, rule(ResourceType.TOPIC, topic, AclOperation.WRITE))
    producer = Producer(login("alice", transactional_id="x"))
    with pytest.raises(KafkaException) as refused:
        producer.init_transactions(PATIENCE_S)
    assert refused.value.args[0].code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    allow(admin, rule(ResourceType.TRANSACTIONAL_ID, "x", AclOperation.WRITE))
    producer = Producer(login("alice", transactional_id="x"))
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, b"in a transaction")
    producer.commit_transaction(PATIENCE_S)


def test_administering_needs_rights_on_the_cluster(admin: AdminClient, login: Settings, topic: str) -> None:
    settings = login("alice")
    del settings["allow.auto.create.topics"]
    alice = AdminClient(settings)
    new = f"{topic}-new"

    def refused(future: Any) -> int:
        with pytest.raises(KafkaException) as error:
            future.result(PATIENCE_S)
        found: int = error.value.args[0].code()
        return found

    assert refused(alice.create_topics([NewTopic(new, 1, 1)])[new]) == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert refused(alice.delete_topics([topic])[topic]) == KafkaError.TOPIC_AUTHORIZATION_FAILED
    mine = rule(ResourceType.TOPIC, topic, AclOperation.ALL)
    assert refused(alice.create_acls([mine])[mine]) == KafkaError.CLUSTER_AUTHORIZATION_FAILED
    settings_of = ConfigResource(ConfigResource.Type.TOPIC, topic)
    assert refused(alice.describe_configs([settings_of])[settings_of]) == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert topic not in alice.list_topics(timeout=PATIENCE_S).topics
    allow(admin, rule(ResourceType.BROKER, "kafka-cluster", AclOperation.CREATE))
    alice.create_topics([NewTopic(new, 1, 1)])[new].result(PATIENCE_S)
    allow(admin, rule(ResourceType.TOPIC, topic, AclOperation.DESCRIBE))
    assert topic in alice.list_topics(timeout=PATIENCE_S).topics


def test_a_right_that_is_withdrawn_is_gone_at_once(admin: AdminClient, login: Settings, topic: str) -> None:
    """When the administrator is answered it is in force on this broker: the very next request is refused."""
    given = [rule(ResourceType.TOPIC, topic, operation) for operation in (AclOperation.WRITE, AclOperation.READ)]
    allow(admin, *given, rule(ResourceType.GROUP, "g", AclOperation.READ))
    told: list[KafkaError | None] = []
    producer = Producer(login("alice", linger_ms=0))
    consumer = Consumer(login("alice", group_id="g", fetch_wait_max_ms=100, auto_offset_reset="earliest"))
    consumer.assign([TopicPartition(topic, 0, 0)])

    def send() -> int | None:
        producer.produce(topic, b"r", on_delivery=lambda error, _message: told.append(error))
        assert producer.flush(PATIENCE_S) == 0
        return code(told[-1])

    assert send() is None
    first = consumer.poll(PATIENCE_S)
    assert first is not None
    assert first.error() is None
    for each in given:
        withdraw(admin, each)
    assert send() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    ends = time.monotonic() + PATIENCE_S
    while (message := consumer.poll(1.0)) is None or code(message.error()) != KafkaError.TOPIC_AUTHORIZATION_FAILED:
        assert time.monotonic() < ends, "the consumer was never refused"
    consumer.close()


def test_a_pattern_of_a_group_finds_only_topics_that_its_member_may_see(
    guarded: RunningBroker, login: Settings, admin: AdminClient, topic: str
) -> None:
    """Evaluated by the broker (KIP-848), and again when rights change: at the next heartbeat."""
    other = f"{topic}-other"
    admin.create_topics([NewTopic(other, 1, 1)])[other].result(PATIENCE_S)
    allow(
        admin,
        rule(ResourceType.GROUP, topic, AclOperation.READ),
        rule(ResourceType.TOPIC, topic, AclOperation.READ),
    )
    settings = login("alice")
    del settings["allow.auto.create.topics"]

    async def scenario() -> tuple[int, int, int]:
        security = parse_security({name: value for name, value in settings.items() if name.startswith("s")})
        connection = await Connection.open(guarded.host, guarded.port, security=security)
        member, epoch = str(uuid.uuid4()), 0
        owned: list[RequestTopicPartitions] = []

        async def beat(*, joins: bool = False) -> int:
            """How many topics it is given."""
            nonlocal epoch, owned
            request = ConsumerGroupHeartbeatRequest(
                group_id=topic,
                member_id=member,
                member_epoch=epoch,
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=[],
                subscribed_topic_regex=f"{topic}.*",
                topic_partitions=[] if joins else owned,
            )
            answer = await connection.call(request, ConsumerGroupHeartbeatResponse)
            assert answer.error_code == 0, answer.error_message
            epoch = answer.member_epoch
            if answer.assignment is not None:
                owned = [
                    RequestTopicPartitions(topic_id=each.topic_id, partitions=each.partitions)
                    for each in answer.assignment.topic_partitions
                ]
            return len(owned)

        async def found() -> bool:
            """The coordinator; whoever asks first has its topic made."""
            request = FindCoordinatorRequest(key_type=0, coordinator_keys=[topic])
            answer = await connection.call(request, FindCoordinatorResponse, min_version=4)
            return answer.coordinators[0].error_code == 0

        try:
            while not await found():
                pass
            first = await beat(joins=True)
            allow(admin, rule(ResourceType.TOPIC, other, AclOperation.DESCRIBE))
            await beat()
            second = await beat()
            withdraw(admin, rule(ResourceType.TOPIC, other, AclOperation.DESCRIBE))
            await beat()
            return first, second, await beat()
        finally:
            await connection.close()

    assert asyncio.run(scenario()) == (1, 2, 1)
