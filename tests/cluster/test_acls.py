"""A right that is given or withdrawn through one broker counts on all of them, soon."""

import contextlib
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
from tests.chance import SOAK

from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.testing.cluster import RunningCluster, cluster
from ottla.testing.wire import WireConnection
from ottla.testing.zookeeper import ZooKeeperEnsemble

PATIENCE_S = 30.0
"""It is a few milliseconds on a quiet machine; the promise is a second, and this one is busy."""
TOPIC = "guarded"
WITHDRAWALS = 200 if SOAK else 3


def rule(operation: AclOperation, who: str = "User:ANONYMOUS") -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC, TOPIC, ResourcePatternType.LITERAL, who, "*", operation, AclPermissionType.ALLOW
    )


def same(given: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        given.restype, given.name, given.resource_pattern_type, given.principal, given.host, given.operation,
        given.permission_type,
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
        wanted = same(written)
        admin.delete_acls([wanted])[wanted].result(PATIENCE_S)
        _soon(lambda: outcomes(running.bootstrap, 3), [KafkaError.TOPIC_AUTHORIZATION_FAILED] * 3)
        _withdraw_again_and_again(running, admin, seen)


def _withdraw_again_and_again(running: RunningCluster, admin: AdminClient, seen: AclBinding) -> None:
    """Through connections that are open, one to each broker: the first request after the withdrawal counts."""
    others = rule(AclOperation.DESCRIBE, "User:somebody else")  # so that there is always a rule about the topic
    admin.create_acls([others])[others].result(PATIENCE_S)
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    took: list[float] = []
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(WireConnection(*each.listeners["PLAINTEXT"])) for each in running.brokers.values()]

        def answers() -> list[int]:
            return [wire.call(request, 12, MetadataResponse).topics[0].error_code for wire in wires]

        for _ in range(WITHDRAWALS):
            admin.create_acls([seen])[seen].result(PATIENCE_S)
            _soon(answers, [0] * 3)
            wanted = same(seen)
            admin.delete_acls([wanted])[wanted].result(PATIENCE_S)
            took.append(_soon(answers, [KafkaError.TOPIC_AUTHORIZATION_FAILED] * 3))
    median = sorted(took)[len(took) // 2]
    print(f"{len(took)} withdrawals: refused everywhere after {1000 * median:.0f} ms, {1000 * max(took):.0f} at most")


def _soon(look: Callable[[], list[int]], expected: list[int]) -> float:
    """How long it took."""
    began = time.monotonic()
    while (found := look()) != expected:
        assert time.monotonic() - began < PATIENCE_S, f"{found} and not {expected}"
    return time.monotonic() - began
