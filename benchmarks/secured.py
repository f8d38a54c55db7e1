"""The same work over TLS, and over SASL_SSL with an authorizer: `SECURED` beside the plain workloads.

Both brokers have three listeners: PLAINTEXT, over which topics are made; TLS; and LOGIN, where a user logs in by SCRAM
and may do what a thousand rules and one for the user allow. Clients are librdkafka's, whose encryption counts too; the
broker's own processor seconds are beside the rates. A connection is made, logged in and asked for API versions.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks import generator, wire
from benchmarks.brokers import Broker, KafkaBroker, OttlaBroker
from benchmarks.workloads import MEGABYTES, RECORDS, THROUGHPUT, BrokerCpu, Metric
from compat.peer.kafka import free_port
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from ottla.client.connection import Connection
from ottla.client.security import parse_security
from ottla.testing.tls import Certificates

USER, PASSWORD = "bench", "bench-secret"
TLS, LOGIN = "TLS", "LOGIN"
OTHER_RULES = 1_000
PATIENCE_S = 60.0
AT_ONCE = 8
SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule"
_KINDS: dict[str, type[OttlaBroker] | type[KafkaBroker]] = {"ottla": OttlaBroker, "kafka": KafkaBroker}


@dataclass(frozen=True)
class SecuredBroker:
    broker: Broker
    ports: Mapping[str, int]
    """Of the listeners TLS and LOGIN."""
    ca: Path

    def client(self, listener: str) -> dict[str, str]:
        """Settings of a client, in librdkafka's names."""
        settings = {"security.protocol": "SSL", "ssl.ca.location": str(self.ca)}
        if listener == LOGIN:
            settings |= {"security.protocol": "SASL_SSL", "sasl.mechanisms": "SCRAM-SHA-512"}
            settings |= {"sasl.username": USER, "sasl.password": PASSWORD}
        return settings

    def generated(self, listener: str, prefix: str) -> dict[str, object]:
        """The same as arguments of the load generator."""
        words = {f"{prefix}__{name.replace('.', '__')}": value for name, value in self.client(listener).items()}
        return {"brokers": f"127.0.0.1:{self.ports[listener]}", **words}


@contextlib.contextmanager
def secured_broker(kind: str, folder: Path) -> Iterator[SecuredBroker]:
    certificates = Certificates(folder / "certificates")
    ports = {TLS: free_port(), LOGIN: free_port()}
    protocols = f"PLAINTEXT:PLAINTEXT,{TLS}:SSL,{LOGIN}:SASL_SSL" + (",CONTROLLER:PLAINTEXT" if kind == "kafka" else "")
    settings = {
        "listener.security.protocol.map": protocols,
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.truststore.type": "PEM",
        **certificates.broker_settings(),
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        f"listener.name.{LOGIN.lower()}.scram-sha-512.sasl.jaas.config": f"{SCRAM_LOGIN} required;",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    listeners = [f"{name}://127.0.0.1:{port}" for name, port in ports.items()]
    broker = _KINDS[kind](folder, settings=settings, more_listeners=listeners)
    broker.prepare()
    broker.launch()
    try:
        wire.wait_for_first_record(broker.port, "ready")
        _let_in(broker)
        yield SecuredBroker(broker, ports, certificates.ca)
    finally:
        broker.stop()


def _let_in(broker: Broker) -> None:
    """The user, its rules, and many that are about others."""
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{broker.port}"})
    credential = UserScramCredentialUpsertion(
        USER, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), PASSWORD.encode()
    )
    admin.alter_user_scram_credentials([credential])[USER].result(PATIENCE_S)
    mine = [_rule(f"User:{USER}", kind, "*") for kind in (ResourceType.TOPIC, ResourceType.GROUP)]
    others = [_rule(f"User:other-{n}", ResourceType.TOPIC, f"topic-{n}") for n in range(OTHER_RULES)]
    for done in admin.create_acls([*mine, *others]).values():
        done.result(PATIENCE_S)


def _rule(principal: str, kind: ResourceType, name: str) -> AclBinding:
    return AclBinding(
        kind, name, ResourcePatternType.LITERAL, principal, "*", AclOperation.ALL, AclPermissionType.ALLOW
    )


Run = Callable[[SecuredBroker, float], Mapping[str, float]]


@dataclass(frozen=True)
class SecuredWorkload:
    """Something done to a secured broker; as the plain ones in all else."""

    name: str
    label: str
    group: str
    metrics: tuple[Metric, ...]
    run_secured: Run


def _topic(broker: Broker) -> str:
    topic = f"bench-{time.monotonic_ns()}"
    wire.create_topics(broker.port, [topic], 1)
    wire.wait_for_first_record(broker.port, topic, partitions=range(1))
    return topic


def _measured(secured: SecuredBroker, work: Callable[[str], Mapping[str, float]]) -> Mapping[str, float]:
    topic = _topic(secured.broker)
    with BrokerCpu(secured.broker) as cpu:
        figures = work(topic)
    wire.delete_topic(secured.broker.port, topic)
    os.sync()
    return cpu.added_to(figures)


def _produce(listener: str, records: int, size: int, **properties: object) -> Run:
    def run(secured: SecuredBroker, share: float) -> Mapping[str, float]:
        arguments = {**secured.generated(listener, "P"), "partitions": 1, "size": size, **properties}
        count = max(1_000, int(records * share))
        return _measured(
            secured, lambda topic: generator.run("produce", topic=topic, records=count, **arguments)
        )  # fmt: skip

    return run


def _consume(listener: str, records: int, size: int) -> Run:
    def run(secured: SecuredBroker, share: float) -> Mapping[str, float]:
        topic = _topic(secured.broker)
        count = max(1_000, int(records * share))
        plain = {"brokers": f"127.0.0.1:{secured.broker.port}", "topic": topic, "partitions": 1}
        generator.run("produce", records=count, size=size, **plain)
        with BrokerCpu(secured.broker) as cpu:
            figures = generator.run(
                "consume", topic=topic, partitions=1, records=count, **secured.generated(listener, "C")
            )  # fmt: skip
        wire.delete_topic(secured.broker.port, topic)
        os.sync()
        return cpu.added_to(figures)

    return run


def _connections(listener: str, count: int) -> Run:
    def run(secured: SecuredBroker, share: float) -> Mapping[str, float]:
        wanted = max(50, int(count * share))
        security = parse_security(secured.client(listener))

        async def some(number: int) -> None:
            for _ in range(number):
                connection = await Connection.open("127.0.0.1", secured.ports[listener], security=security)
                await connection.close()

        async def all_of_them() -> None:
            await asyncio.gather(*(some(wanted // AT_ONCE) for _ in range(AT_ONCE)))

        began = time.monotonic()
        with BrokerCpu(secured.broker) as cpu:
            asyncio.run(all_of_them())
        made = wanted // AT_ONCE * AT_ONCE
        rate = made / (time.monotonic() - began)
        return cpu.added_to({"requests_per_second": rate, "requests": made})

    return run


CONNECTIONS = (Metric("requests_per_second", "connections/s", "requests/s", THROUGHPUT),)
LARGE, SINGLE = 600_000, 40_000
_GROUPS = {TLS: "over TLS", LOGIN: "over SASL_SSL (SCRAM), with an authorizer"}


def _rows(listener: str, name: str) -> tuple[SecuredWorkload, ...]:
    group = _GROUPS[listener]
    one_by_one = {"P__linger__ms": 0, "P__batch__num__messages": 1, "P__acks": 1}
    return (
        SecuredWorkload(
            f"{name}-produce-1kb", "produce, 1 kB, acks=all", group, MEGABYTES,
            _produce(listener, LARGE, 1000, P__acks="all"),
        ),
        SecuredWorkload(f"{name}-consume-1kb", "consume, 1 kB", group, MEGABYTES, _consume(listener, LARGE, 1000)),
        SecuredWorkload(
            f"{name}-one-record", "one record a request, 100 B", group, RECORDS,
            _produce(listener, SINGLE, 100, **one_by_one),
        ),
        SecuredWorkload(
            f"{name}-connections", "new connections, eight at a time", group, CONNECTIONS, _connections(listener, 800)
        ),
    )  # fmt: skip


SECURED = (*_rows(TLS, "tls"), *_rows(LOGIN, "sasl-ssl"))
