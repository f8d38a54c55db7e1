"""Logins by Kerberos (GSSAPI) with a real KDC: Java's client and Kafka's tools, our own client and tools, and brokers
among themselves. Skipped where MIT's KDC or the library is not installed."""

import contextlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from compat.peer import kerberos
from compat.peer.kafka import run_tool
from compat.peer.kerberos import REALM, Realm
from compat.peer.program import own_java_command

from ottla.cli.main import main
from ottla.testing.cluster import RunningCluster
from ottla.testing.running import RunningBroker, broker
from ottla.testing.waiting import wait_until
from ottla.testing.zookeeper import zookeeper

WHY_NOT = kerberos.missing()
pytestmark = [
    pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or ""),
    pytest.mark.one_broker("has listeners of its own"),
]

MODULE = "com.sun.security.auth.module.Krb5LoginModule"
SERVICE = "kafka/localhost"


def jaas(keytab: Path, principal: str) -> str:
    options = f'useKeyTab=true storeKey=true keyTab="{keytab}" principal="{principal}@{REALM}" serviceName="kafka"'
    return f"{MODULE} required {options};"


def settings(keytab: Path) -> dict[str, str]:
    return {
        "listeners": "KRB://localhost:0",
        "listener.security.protocol.map": "KRB:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal.to.local.rules": f"RULE:[2:$1-$2@$0](.*-admin@{REALM})s/-admin@.*/-the-admin/,DEFAULT",
        "listener.name.krb.gssapi.sasl.jaas.config": jaas(keytab, SERVICE),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:alice;User:kafka;User:carol-the-admin",
    }


class World:
    def __init__(self, realm: Realm, folder: Path) -> None:
        self.realm, self.folder = realm, folder
        self.service = realm.keytab(SERVICE)
        self.keytabs = {name: realm.keytab(name) for name in ("alice", "bob", "carol/admin", "dave/other")}

    def properties(self, user: str) -> Path:
        path = self.folder / f"{user.replace('/', '-')}.properties"
        path.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\n"
            f"sasl.jaas.config={jaas(self.keytabs[user], user)}\n"
        )
        return path

    @property
    def java_flags(self) -> list[str]:
        return [f"-Djava.security.krb5.conf={self.realm.config}"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("kerberos")
    realm = Realm(folder)
    with realm.running(), pytest.MonkeyPatch.context() as patch:
        for name, value in realm.environment.items():
            patch.setenv(name, value)
        yield World(realm, folder)


@pytest.fixture(scope="module")
def guarded(world: World) -> Iterator[RunningBroker]:
    with broker(settings(world.service), data_dir=world.folder / "data") as running:
        yield running


@pytest.mark.parametrize("user", ["alice", "carol/admin"])
def test_java_client(world: World, guarded: RunningBroker, java_classes: Path, user: str) -> None:
    command = own_java_command("Check", guarded.bootstrap, "secured", str(world.properties(user)), classes=java_classes)
    command[1:1] = world.java_flags
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stdout + done.stderr + guarded.log_text()[-2000:]
    assert done.stdout.strip().endswith("passed")


def test_kafkas_tools(world: World, guarded: RunningBroker, kafka_libs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", " ".join(world.java_flags))
    arguments = ("--bootstrap-server", guarded.bootstrap, "--command-config", str(world.properties("alice")))
    run_tool("org.apache.kafka.tools.TopicCommand", *arguments, "--create", "--topic", "by-java")
    assert "by-java" in run_tool("org.apache.kafka.tools.TopicCommand", *arguments, "--list").split()


def test_our_tools_with_a_keytab_and_with_a_ticket(
    world: World, guarded: RunningBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def tool(config: Path, *arguments: str) -> str:
        capsys.readouterr()
        with contextlib.suppress(SystemExit):
            main(["topics", "--bootstrap-server", guarded.bootstrap, "--command-config", str(config), *arguments])
        said = capsys.readouterr()
        return said.out + said.err

    assert "Created topic ours" in tool(world.properties("alice"), "--create", "--topic", "ours")
    assert "ours" in tool(world.properties("carol/admin"), "--list").split()
    # Bob is somebody, and may do nothing.
    assert "ours" not in tool(world.properties("bob"), "--list")
    ticket = tmp_path / "ticket.properties"
    ticket.write_text("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\n")
    world.realm.run("kinit", "-k", "-t", str(world.keytabs["alice"]), "alice")
    assert "ours" in tool(ticket, "--list").split()


def test_a_principal_that_no_rule_has_a_name_for_is_refused(
    world: World, guarded: RunningBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    running = guarded.restart({"sasl.kerberos.principal.to.local.rules": "RULE:[1:$1]"})
    arguments = ["--bootstrap-server", running.bootstrap, "--command-config", str(world.properties("dave/other"))]
    assert main(["topics", *arguments, "--list"]) != 0
    assert "invalid credentials with SASL mechanism GSSAPI" in capsys.readouterr().err
    assert f"no rule of sasl.kerberos.principal.to.local.rules has a name for dave/other@{REALM}" in running.log_text()
    guarded.restart({"sasl.kerberos.principal.to.local.rules": "DEFAULT"})


def test_brokers_among_themselves(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with zookeeper(1) as ensemble:
        own = {**settings(world.service), "sasl.mechanism.inter.broker.protocol": "GSSAPI"}
        running = RunningCluster(tmp_path, brokers=2, zookeeper=ensemble, settings=own)
        with contextlib.closing(running):
            running.start()
            to = ["--bootstrap-server", running.bootstrap, "--command-config", str(world.properties("alice"))]
            assert main(["topics", *to, "--create", "--topic", "replicated", "--replication-factor", "2"]) == 0

            def in_sync(count: int) -> bool:
                capsys.readouterr()
                assert main(["topics", *to, "--describe", "--topic", "replicated"]) == 0
                (isr,) = re.findall(r"Isr: (\S+)", capsys.readouterr().out)
                return len(isr.split(",")) == count

            running.brokers[2].stop()
            wait_until(lambda: in_sync(1), "the one that is gone is not in sync", seconds=60)
            running.brokers[2].start()
            wait_until(lambda: in_sync(2), "it logs in, follows and is in sync again", seconds=60)
