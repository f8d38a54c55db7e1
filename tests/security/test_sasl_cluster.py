"""A cluster whose brokers log in to each other, from nothing: first user, brokers, clients, tools."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.security.sasl_kit import SECONDS_MAX, _polled

from ottla.cli.admin import users
from ottla.testing.cluster import RunningCluster
from ottla.testing.waiting import wait_until
from ottla.testing.wire import WireConnection
from ottla.testing.zookeeper import zookeeper

pytestmark = pytest.mark.one_broker("starts three")

ADMIN, APP = "admin-secret", "app-secret"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
SETTINGS = {
    "listeners": "SASL://127.0.0.1:0",
    "listener.security.protocol.map": "SASL:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "listener.name.sasl.scram-sha-512.sasl.jaas.config": f'{SCRAM} username="admin" password="{ADMIN}";',
    "listener.name.sasl.scram-sha-512.connections.max.reauth.ms": "4000",
}


class World:
    def __init__(self, folder: Path, cluster: RunningCluster) -> None:
        self.folder = folder
        self.cluster = cluster

    def settings(self, user: str = "admin", password: str = ADMIN) -> dict[str, str]:
        return {
            "bootstrap.servers": self.cluster.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": password,
        }

    def command_config(self) -> str:
        path = self.folder / "admin.properties"
        path.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
            f'sasl.jaas.config={SCRAM} username="admin" password="{ADMIN}";\n'
        )
        return str(path)

    def tool(self, name: str, *arguments: str, said: str = "") -> str:
        done = subprocess.run(
            [Path(sys.executable).with_name("ottla"), name, "--bootstrap-server", self.cluster.bootstrap, *arguments],
            input=said,
            text=True,
            capture_output=True,
            timeout=120,
            check=False,
            env={**os.environ, "APP_PASSWORD": APP},
        )
        assert done.returncode == 0, done.stderr
        assert ADMIN not in done.stdout + done.stderr
        assert APP not in done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("sasl-cluster")
    with zookeeper(1) as ensemble, pytest.MonkeyPatch.context() as patch:
        config = folder / "server.properties"
        given = {**SETTINGS, "zookeeper.connect": ensemble.connect, "log.dirs": str(folder / "none")}
        config.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        patch.setenv("ADMIN_PASSWORD", ADMIN)
        assert users.main(["--offline", str(config), "add", "admin", "--password-from", "env:ADMIN_PASSWORD"]) == 0
        cluster = RunningCluster(folder, brokers=3, zookeeper=ensemble, settings=SETTINGS)
        try:
            cluster.start()
            yield World(folder, cluster)
        finally:
            cluster.close()


def test_brokers_log_in_to_each_other_and_replicate(world: World) -> None:
    admin = AdminClient(world.settings())
    admin.create_topics([NewTopic("replicated", 3, 3)])["replicated"].result(SECONDS_MAX)

    def in_sync() -> bool:
        partitions = admin.list_topics("replicated", timeout=SECONDS_MAX).topics["replicated"].partitions
        return len(partitions) == 3 and all(len(each.isrs) == 3 for each in partitions.values())

    wait_until(in_sync, "three replicas in sync", seconds=60)
    producer = Producer({**world.settings(), "transactional.id": "t", "acks": "all"})
    producer.init_transactions(SECONDS_MAX)
    for number in range(30):
        producer.begin_transaction()
        producer.produce("replicated", str(number).encode(), partition=number % 3)
        producer.commit_transaction(SECONDS_MAX)
    consumer = Consumer(
        {
            **world.settings(),
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe(["replicated"])
    found = sorted(int(_polled(consumer).value() or b"") for _ in range(30))
    consumer.close()
    assert found == list(range(30))
    wait_until(in_sync, "still in sync", seconds=60)


def test_who_does_not_log_in_gets_nothing_from_any_broker(world: World) -> None:
    for broker in world.cluster.running:
        with WireConnection(broker.host, broker.port) as wire:
            wire.send(b"\0\0\0\x0a\0\x03\0\x09\0\0\0\x01\xff\xff")
            assert wire.closed_by_peer()


def test_a_user_who_is_added_can_log_in_everywhere_and_one_who_is_removed_nowhere(world: World) -> None:
    config = world.command_config()
    world.tool("users", "--command-config", config, "add", "app", "--password-from", "env:APP_PASSWORD")
    listed = json.loads(world.tool("users", "--command-config", config, "--json", "list"))
    assert [entry["user"] for entry in listed] == ["admin", "app"]

    def let_in(address: str) -> bool:
        settings = {**world.settings("app", APP), "bootstrap.servers": address}
        errors: list[object] = []
        admin = AdminClient({**settings, "error_cb": errors.append})
        listed = admin.list_consumer_groups(request_timeout=SECONDS_MAX)
        while not listed.done() and not errors:
            admin.poll(0.05)
        return listed.done() and not errors

    assert all(let_in(broker.bootstrap) for broker in world.cluster.running)
    world.tool("users", "--command-config", config, "remove", "app")
    assert not any(let_in(broker.bootstrap) for broker in world.cluster.running)


def test_tools_log_in_with_a_command_config(world: World) -> None:
    config = world.command_config()
    world.tool("topics", "--command-config", config, "--create", "--topic", "tools")
    assert "Topic: tools" in world.tool("topics", "--command-config", config, "--describe", "--topic", "tools")
    world.tool("console-producer", "--producer.config", config, "--topic", "tools", said="hello\n")
    read = world.tool(
        "console-consumer", "--consumer.config", config, "--topic", "tools", "--from-beginning", "--max-messages", "1"
    )
    assert read == "hello\n"


def test_no_secret_is_in_any_log(world: World) -> None:
    for broker in world.cluster.brokers.values():
        assert ADMIN not in broker.log_text()
