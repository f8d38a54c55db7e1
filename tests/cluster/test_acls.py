"""A right that is given or withdrawn through one broker counts on all of them, soon."""

import time
from collections.abc import Callable

from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from ottla.testing.cluster import cluster
from ottla.testing.zookeeper import ZooKeeperEnsemble

PATIENCE_S = 30.0
SOON_S = 5.0
"""It is a few milliseconds on a quiet machine; the promise is a second, and this one is busy."""
TOPIC = "guarded"


def rule(operation: AclOperation) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC, TOPIC, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", operation,
        AclPermissionType.ALLOW,
    )  # fmt: skip


def outcomes(bootstrap: str, partitions: int) -> list[int]:
    """What becomes of a record for each partition: 0, or the code of the error. A client that was refused once goes on
    refusing by itself, so each time it is a new one."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "message.timeout.ms": 20_000})
    told: dict[int, int] = {}
    for number in range(partitions):
        producer.produce(
            TOPIC,
            b"r",
            partition=number,
            on_delivery=lambda error, _message, number=number: told.update({number: error.code() if error else 0}),
        )
    assert producer.flush(PATIENCE_S) == 0
    return [told[number] for number in range(partitions)]


def test_rights_change_on_every_broker_within_a_moment(ensemble: ZooKeeperEnsemble) -> None:
    settings: dict[str, str | bool] = {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        # Everybody is anonymous here, the brokers too: what no rule is about is everybody's, as theirs must be.
        "allow.everyone.if.no.acl.found": True,
    }
    with cluster(3, settings=settings, zookeeper=ensemble) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        spread = [[number + 1] for number in range(3)]
        admin.create_topics([NewTopic(TOPIC, 3, replica_assignment=spread)])[TOPIC].result(PATIENCE_S)
        assert outcomes(running.bootstrap, 3) == [0, 0, 0]
        # The topic stays in sight, or the client would refuse by itself, without asking any broker.
        seen, written = rule(AclOperation.DESCRIBE), rule(AclOperation.WRITE)
        for given, expected in ((seen, KafkaError.TOPIC_AUTHORIZATION_FAILED), (written, 0)):
            admin.create_acls([given])[given].result(PATIENCE_S)
            _soon(lambda: outcomes(running.bootstrap, 3), [expected] * 3)
        wanted = AclBindingFilter(
            ResourceType.TOPIC, TOPIC, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", AclOperation.WRITE,
            AclPermissionType.ALLOW,
        )  # fmt: skip
        admin.delete_acls([wanted])[wanted].result(PATIENCE_S)
        _soon(lambda: outcomes(running.bootstrap, 3), [KafkaError.TOPIC_AUTHORIZATION_FAILED] * 3)


def _soon(look: Callable[[], list[int]], expected: list[int]) -> None:
    began = time.monotonic()
    while (found := look()) != expected:
        assert time.monotonic() - began < SOON_S, f"{found} and not {expected}"
