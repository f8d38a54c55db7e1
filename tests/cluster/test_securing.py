"""A cluster that runs moves from PLAINTEXT to SASL_SSL with access lists, broker by broker, as docs/security.md has it.

Clients read and write all the time. Nothing is lost, nothing is written twice, and in the end nobody comes in who may
not. The passwords of the brokers and of the clients change on the way, and the certificates of all brokers, under the
same load.
"""

import contextlib
import os
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from tests.cluster.conftest import SETTINGS
from tests.cluster.gaps import TimedLedger
from tests.cluster.traffic import GroupReader, Seen

from ottla.cli.main import main
from ottla.testing.cluster import RunningCluster, cluster
from ottla.testing.ledger import Stamp, audit
from ottla.testing.load import LoadProducer, quiet, read_log
from ottla.testing.running import RunningBroker, SettingValue
from ottla.testing.tls import Certificates
from ottla.testing.waiting import wait_until
from ottla.testing.zookeeper import ZooKeeperEnsemble
from ottla.tls.authority import LOCAL_HOSTS

PARTITIONS = 3
RECORDS_PER_SECOND = 100
SESSION_MS = 3_000
PATIENCE_S = 60.0
GROUP = "readers"
SCRAM = "SCRAM-SHA-512"
JAAS = "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config"
KEY_STORE = "listener.name.sasl_ssl.ssl.keystore.location"
PASSWORDS = {"broker": "b1", "broker-2": "b2", "app": "a1", "stranger": "s1"}


def login(user: str) -> str:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return f'{module} required username="{user}" password="{PASSWORDS[user]}";'


class World:
    """The cluster and its clients, who come in as they can at that moment."""

    def __init__(self, running: RunningCluster, certificates: Certificates, topic: str) -> None:
        self.cluster, self.certificates, self.topic = running, certificates, topic
        self.ledger = TimedLedger()
        self.producers: list[LoadProducer] = []
        self.readers: list[GroupReader] = []
        self._numbers = 0

    def secured(self, user: str, password: str | None = None) -> dict[str, str | int | float | bool]:
        return {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.certificates.ca),
            "sasl.mechanism": SCRAM,
            "sasl.username": user,
            "sasl.password": password or PASSWORDS[user],
        }

    def begin(self, client: Mapping[str, str | int | float | bool]) -> tuple[LoadProducer, GroupReader]:
        """A producer and a member of the group more."""
        producer = LoadProducer(
            self.cluster.bootstrap, self.topic, PARTITIONS, number=self._numbers, ledger=self.ledger,
            records_per_second=RECORDS_PER_SECOND, value_bytes=60, client_settings=dict(client),
        ).start()  # fmt: skip
        reader = GroupReader(self.cluster.bootstrap, self.topic, GROUP, members=1, client_settings=dict(client))
        self._numbers += 1
        self.producers.append(producer)
        self.readers.append(reader)
        return producer, reader

    def roll(self, settings: Callable[[RunningBroker], Mapping[str, SettingValue]]) -> None:
        """Restart one broker after the other with these settings, each when all replicas are in sync."""
        for broker in self.cluster.brokers.values():
            broker.restart(settings(broker))
            self.cluster.wait_until_settled()
            self.goes_on()

    def goes_on(self) -> None:
        """Every partition takes records, and somebody reads what comes now."""
        aim = self.ledger.total + 100
        wait_until(lambda: self.ledger.total >= aim, "records are acknowledged", seconds=PATIENCE_S)
        read = self.read
        wait_until(lambda: self.read > read, "records are read", seconds=PATIENCE_S)

    @property
    def read(self) -> int:
        return sum(len(reader.seen) for reader in self.readers)

    def finish(self) -> None:
        for producer in self.producers:
            producer.stop()
        records = list(
            read_log(self.cluster.bootstrap, self.topic, PARTITIONS, {**self.secured("broker-2"), "group.id": "audit"})
        )
        assert not self.ledger.refusals, self.ledger.refusals[:5]
        result = audit(self.ledger.promised(), iter(records))
        assert result.clean, str(result)
        expected: Seen = {(partition, offset): Stamp.of_value(value) for partition, offset, value in records}

        def all_seen() -> Seen:
            return {key: stamp for reader in self.readers for key, stamp in list(reader.seen.items())}

        wait_until(lambda: len(all_seen()) >= len(expected), "the group has read all of it", seconds=PATIENCE_S)
        for reader in self.readers:
            reader.stop()
        assert all_seen() == expected
        assert not [conflict for reader in self.readers for conflict in reader.conflicts]

    def abandon(self) -> None:
        """Whatever happened, no client is left."""
        for stop in (*(each.stop for each in self.producers), *(each.stop for each in self.readers)):
            with contextlib.suppress(Exception):
                stop()


@pytest.fixture
def world(ensemble: ZooKeeperEnsemble, tmp_path: Path, unique: Callable[[str], str]) -> Iterator[World]:
    with cluster(3, settings=SETTINGS, zookeeper=ensemble) as running:
        topic = unique("securing")
        running.create_topic(
            NewTopic(topic, PARTITIONS, replication_factor=3, config={"min.insync.replicas": "2"})
        )  # fmt: skip
        running.wait_until_settled(topic)
        found = World(running, Certificates(tmp_path / "certificates"), topic)
        try:
            yield found
        finally:
            found.abandon()


def test_a_cluster_that_runs_is_secured_broker_by_broker(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plain_producer, plain_reader = world.begin({})
    world.goes_on()
    _add_users(world, monkeypatch)
    plain_ports = [broker.listeners["PLAINTEXT"] for broker in world.cluster.brokers.values()]

    # 1. The secured listener, beside the old one.
    world.roll(
        lambda broker: {
            "listeners": f"PLAINTEXT://{broker.bootstrap},SASL_SSL://127.0.0.1:0",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": SCRAM,
            "sasl.mechanism.inter.broker.protocol": SCRAM,
            "listener.name.sasl_ssl.scram-sha-512.connections.max.reauth.ms": SESSION_MS,
            JAAS: login("broker"),
            **world.certificates.broker_settings(),
        }
    )
    # 2. Brokers talk over it, those that are restarted already with those that are not.
    world.roll(lambda _: {"inter.broker.listener.name": "SASL_SSL"})
    # The clients move: the new ones come before the old ones go.
    world.cluster.reach_by("SASL_SSL", world.secured("broker"))
    producer, reader = world.begin(world.secured("app"))
    world.goes_on()
    plain_producer.stop()
    plain_reader.stop()
    world.goes_on()
    # 3. What everybody may do, before anybody asks.
    _add_rules(world)
    # 4. The old listener goes, the authorizer comes, and the brokers have another user from now on.
    world.cluster.reach_by("SASL_SSL", world.secured("broker-2"))
    world.roll(
        lambda broker: {
            "listeners": f"SASL_SSL://{broker.bootstrap_of('SASL_SSL')}",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:broker;User:broker-2",
            JAAS: login("broker-2"),
        }
    )
    for port in plain_ports:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(port, PATIENCE_S).close()
    assert _refusal(world, "stranger") == KafkaError.TOPIC_AUTHORIZATION_FAILED
    _change_the_password(world, producer, reader, monkeypatch, tmp_path)
    _renew_the_certificates(world)
    world.finish()


def _renew_the_certificates(world: World) -> None:
    """Of all brokers, one after the other: the same names, another key. New connections see it at once."""
    before = {_certificate(world, broker) for broker in world.cluster.brokers.values()}
    place = world.certificates.pem("broker", LOCAL_HOSTS)
    stamp = os.stat(place).st_mtime_ns + 1_000_000_000  # a file system may tell no finer times
    os.utime(place, ns=(stamp, stamp))
    admin = AdminClient({"bootstrap.servers": world.cluster.bootstrap, **world.secured("broker-2")}, logger=quiet)
    for node_id, broker in world.cluster.brokers.items():
        entry = ConfigEntry(KEY_STORE, str(place), incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.BROKER, str(node_id), incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)
        wait_until(lambda broker=broker: _certificate(world, broker) not in before, "a new certificate")  # type: ignore[misc]
        world.goes_on()


def _certificate(world: World, broker: RunningBroker) -> bytes:
    context = ssl.create_default_context(cafile=str(world.certificates.ca))
    sock = socket.create_connection(broker.listeners["SASL_SSL"], PATIENCE_S)
    with context.wrap_socket(sock, server_hostname="localhost") as tls:
        return tls.getpeercert(binary_form=True) or b""


def _change_the_password(
    world: World, producer: LoadProducer, reader: GroupReader, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """Who is in stays in; who logs in again needs the new one, be it on the same connection."""
    properties = folder / "admin.properties"
    properties.write_text(
        f"security.protocol=SASL_SSL\nssl.truststore.type=PEM\nssl.truststore.location={world.certificates.ca}\n"
        f"sasl.mechanism={SCRAM}\nsasl.jaas.config={login('broker-2')}\n"
    )
    to = ["--bootstrap-server", world.cluster.bootstrap, "--command-config", str(properties)]
    monkeypatch.setenv("PASSWORD", "another one")
    world.goes_on()
    assert main(["users", *to, "rotate", "app", "--password-from", "env:PASSWORD"]) == 0
    for client in (producer, reader):
        client.log_in_as("app", "another one")
    failed = [_failure_to_log_in(world.secured("app"), broker) for broker in world.cluster.brokers.values()]
    assert failed == [True] * 3
    # Longer than any session that began with the old password.
    aim = world.ledger.total + 2 * RECORDS_PER_SECOND * SESSION_MS // 1000
    wait_until(lambda: world.ledger.total >= aim, "records go on being written", seconds=PATIENCE_S)
    world.goes_on()


def _add_users(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for user, password in PASSWORDS.items():
        monkeypatch.setenv("PASSWORD", password)
        to = ["--bootstrap-server", world.cluster.bootstrap]
        command = ["users", *to, "add", user, "--mechanism", SCRAM, "--password-from", "env:PASSWORD"]
        assert main(command) == 0


def _add_rules(world: World) -> None:
    """There is no authorizer yet that brokers could be asked for: rules go where it will look for them."""
    store = ["--authorizer-properties", f"zookeeper.connect={world.cluster.zookeeper_connect}"]
    app = ["--add", "--allow-principal", "User:app", "--topic", world.topic]
    for who in (["--producer"], ["--consumer", "--group", GROUP]):
        assert main(["acls", *store, *app, *who]) == 0


def _refusal(world: World, user: str) -> int | None:
    admin = AdminClient({"bootstrap.servers": world.cluster.bootstrap, **world.secured(user)}, logger=quiet)
    found = admin.list_topics(world.topic, timeout=PATIENCE_S).topics[world.topic].error
    return None if found is None else int(found.code())


def _failure_to_log_in(client: Mapping[str, str | int | float | bool], broker: RunningBroker) -> bool:
    errors: list[KafkaError] = []
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, **client, "error_cb": errors.append}, logger=quiet)

    def told() -> bool:
        admin.poll(0.05)
        return bool(errors)

    wait_until(told, "the client says why it is not let in", seconds=PATIENCE_S)
    return any(error.code() == KafkaError._AUTHENTICATION for error in errors)
