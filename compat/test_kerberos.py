"""Logins by Kerberos (GSSAPI) with a real KDC: Java's client and Kafka's tools, our own client and tools, and brokers
among themselves. Skipped where MIT's KDC or the library is not installed."""

import asyncio
import contextlib
import random
import re
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from compat.peer import kerberos
from compat.peer.kafka import PeerError, run_tool
from compat.peer.kerberos import REALM
from compat.peer.kerberos_world import SERVICE, World, kerberos_world
from compat.peer.program import own_java_command
from compat.sessions import SESSION_MS, outlives_sessions
from tests.security.hostile_kit import answers
from tests.unit.broker.security.sasl.test_mechanisms import mutated

from ottla.cli.main import main
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ottla.testing.cluster import RunningCluster
from ottla.testing.process import resident_bytes
from ottla.testing.running import RunningBroker, broker
from ottla.testing.waiting import wait_until
from ottla.testing.wire import WireConnection
from ottla.testing.zookeeper import zookeeper

WHY_NOT = kerberos.missing()
pytestmark = [
    pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or ""),
    pytest.mark.one_broker("has listeners of its own"),
]

TOPICS = "org.apache.kafka.tools.TopicCommand"
TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
HOSTILE = 500
PATIENCE_S = 60.0
HOSTILE_BYTES_MAX = 16 << 20
INVALID = "invalid credentials with SASL mechanism GSSAPI"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with kerberos_world(tmp_path_factory.mktemp("kerberos")) as found:
        yield found


@pytest.fixture(scope="module")
def guarded(world: World) -> Iterator[RunningBroker]:
    with_tokens = {
        "sasl.enabled.mechanisms": "GSSAPI,SCRAM-SHA-256",
        "delegation.token.secret.key": "a key of all brokers",
        "listener.name.krb_tls.gssapi.connections.max.reauth.ms": str(SESSION_MS),
    }
    with broker({**world.ottla_settings(), **with_tokens}, data_dir=world.folder / "data") as running:
        yield running


def run_java(world: World, classes: Path, *arguments: str) -> None:
    command = own_java_command("Check", *arguments, classes=classes)
    command[1:1] = world.java_flags
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip().endswith("passed")


@pytest.mark.parametrize("user", ["alice", "carol/admin", "ERIN"])
def test_java_client(world: World, guarded: RunningBroker, java_classes: Path, user: str) -> None:
    run_java(world, java_classes, guarded.bootstrap, "secured", str(world.properties(user)))


def test_java_client_over_tls(world: World, guarded: RunningBroker, java_classes: Path) -> None:
    """With sessions of two seconds, so that it logs in again while it works."""
    over_tls = str(world.properties("alice", tls=True))
    run_java(world, java_classes, guarded.bootstrap_of("KRB_TLS"), "secured", over_tls)


def test_java_client_with_a_ticket_for_another_service(
    world: World, guarded: RunningBroker, java_classes: Path
) -> None:
    other = str(world.properties("alice", service="other"))
    run_java(world, java_classes, guarded.bootstrap, "refused", other, "SaslAuthenticationException")
    assert "Failed authentication with /127.0.0.1 on listener KRB" in guarded.log_text()


def test_kafkas_tools(world: World, guarded: RunningBroker, kafka_libs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", " ".join(world.java_flags))
    arguments = ("--bootstrap-server", guarded.bootstrap, "--command-config", str(world.properties("alice")))
    run_tool(TOPICS, *arguments, "--create", "--topic", "by-java")
    assert "by-java" in run_tool(TOPICS, *arguments, "--list").split()
    nobody = ("--bootstrap-server", guarded.bootstrap, "--command-config", str(world.properties("bob")))
    with pytest.raises(PeerError, match="TopicAuthorizationException"):
        run_tool(TOPICS, *nobody, "--create", "--topic", "by-bob")
    other = ("--bootstrap-server", guarded.bootstrap, "--command-config")
    with pytest.raises(PeerError, match="SaslAuthenticationException"):
        run_tool(TOPICS, *other, str(world.properties("alice", service="other")), "--list")


def test_delegation_tokens_of_who_logged_in_by_kerberos(
    world: World, guarded: RunningBroker, kafka_libs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process has the ticket, many have the token: what delegation tokens were made for."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", " ".join(world.java_flags))
    server = ("--bootstrap-server", guarded.bootstrap, "--command-config")
    printed = run_tool(TOKENS, *server, str(world.properties("alice")), "--create", "--max-life-time-period", "-1")
    (token_id, hmac) = re.findall(r"^(\S{22})\s+(\S{88})\s+User:alice\s", printed, re.MULTILINE)[0]
    by_token = tmp_path / "token.properties"
    by_token.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="{token_id}" password="{hmac}" tokenauth="true";\n'
    )
    run_tool(TOPICS, *server, str(by_token), "--create", "--topic", "by-token")


@pytest.fixture
def tool(guarded: RunningBroker, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What `ottla topics` says with a file of settings."""

    def run(config: Path, *arguments: str) -> str:
        capsys.readouterr()
        with contextlib.suppress(SystemExit):
            main(["topics", "--bootstrap-server", guarded.bootstrap, "--command-config", str(config), *arguments])
        said = capsys.readouterr()
        return said.out + said.err

    return run


@pytest.fixture
def ticket(tmp_path: Path) -> Path:
    """Settings without a keytab: the ticket that kinit has left."""
    path = tmp_path / "ticket.properties"
    path.write_text("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\n")
    return path


def test_our_tools_with_a_keytab_and_with_a_ticket(world: World, tool: Callable[..., str], ticket: Path) -> None:
    assert "Created topic ours" in tool(world.properties("alice"), "--create", "--topic", "ours")
    assert "ours" in tool(world.properties("carol/admin"), "--list").split()
    # Bob is somebody, and may do nothing.
    assert "ours" not in tool(world.properties("bob"), "--list")
    world.kinit("alice")
    assert "ours" in tool(ticket, "--list").split()


def test_our_tools_say_why_there_is_no_ticket(world: World, tool: Callable[..., str], ticket: Path) -> None:
    stale = world.realm.keytab("frank")
    world.realm.run("kadmin.local", "-q", "cpw -randkey frank")
    assert "Decrypt integrity check failed" in tool(world.properties("frank", keytab=stale), "--list")
    assert f"klist -k {stale}" in tool(world.properties("nobody", keytab=stale), "--list")
    assert "not found in Kerberos database" in tool(world.properties("alice", service="unheard"), "--list")
    world.kinit("alice", "-l", "1s")
    wait_until(lambda: "expired" in tool(ticket, "--list"), "the ticket has expired", seconds=30)
    world.realm.run("kdestroy")
    assert "kinit" in tool(ticket, "--list")


def test_a_ticket_for_another_service_opens_no_door(
    world: World, guarded: RunningBroker, tool: Callable[..., str]
) -> None:
    assert INVALID in tool(world.properties("alice", service="other"), "--list")


def test_a_key_that_is_made_anew_counts_at_once(world: World, tool: Callable[..., str]) -> None:
    """The keytab has the old key too, for tickets that are out; who comes now has one for the new key."""
    world.realm.run("kadmin.local", "-q", f"ktadd -k {world.service} {SERVICE}")
    world.kinit("ERIN")
    assert "Created topic rekeyed" in tool(world.properties("ERIN"), "--create", "--topic", "rekeyed")


def test_our_client_stays_connected_beyond_a_session(world: World, guarded: RunningBroker) -> None:
    named = {
        "bootstrap.servers": guarded.bootstrap_of("KRB_TLS"),
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(world.certificates.ca),
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.keytab": str(world.keytabs["alice"]),
        "sasl.kerberos.principal": f"alice@{REALM}",
    }
    assert asyncio.run(outlives_sessions(named))


def shown(running: RunningBroker, token: bytes) -> SaslAuthenticateResponse:
    """What a broker says to the first token of a login."""
    with WireConnection(*running.listeners["KRB"]) as wire:
        assert wire.call(SaslHandshakeRequest(mechanism="GSSAPI"), 1, SaslHandshakeResponse).error_code == 0
        return wire.call(SaslAuthenticateRequest(auth_bytes=token), 2, SaslAuthenticateResponse)


def first_token() -> bytes:
    """Of a login with the ticket that kinit has left."""
    gssapi: Any = pytest.importorskip("gssapi")
    target = gssapi.Name("kafka@localhost", gssapi.NameType.hostbased_service)
    return bytes(gssapi.SecurityContext(name=target, usage="initiate", mech=gssapi.MechType.kerberos).step())


def test_a_recorded_login_cannot_be_played_back(world: World, guarded: RunningBroker) -> None:
    world.kinit("alice")
    token = first_token()
    assert shown(guarded, token).error_code == 0
    again = shown(guarded, token)
    assert again.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert INVALID in (again.error_message or "")
    assert "Request is a replay" in guarded.log_text()


def test_what_was_made_too_long_ago_is_refused(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a broker whose clock may be three seconds off, not five minutes: nobody waits for those here."""
    strict = tmp_path / "krb5.conf"
    strict.write_text(world.realm.config.read_text().replace("[libdefaults]\n", "[libdefaults]\nclockskew = 3\n"))
    world.kinit("alice", "-l", "10s")
    kept = [first_token() for _ in range(200)]
    with monkeypatch.context() as patch:
        patch.setenv("KRB5_CONFIG", str(strict))
        with broker(world.ottla_settings(), data_dir=tmp_path) as running:
            world.kinit("alice")
            wait_until(lambda: shown(running, first_token()).error_code == 0, "what is new is taken", seconds=30)
            wait_until(lambda: shown(running, kept.pop()).error_code != 0, "what is old is refused", seconds=60)
            assert re.search("Ticket expired|Clock skew too great", running.log_text())
            wait_until(lambda: shown(running, first_token()).error_code == 0, "what is new is taken", seconds=30)


def test_mutated_tokens_open_no_door_and_leave_others_unharmed(
    world: World, guarded: RunningBroker, tool: Callable[..., str]
) -> None:
    """Twice: in the first round everything grows that grows once."""
    world.kinit("alice")
    chance, right = random.Random(14), first_token()

    def play() -> int:
        with WireConnection(*guarded.listeners["KRB"]) as wire:
            hello = wire.frame(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
            tokens = [wire.frame(SaslAuthenticateRequest(auth_bytes=mutated(right, chance)), 2) for _ in range(HOSTILE)]
            asked = wire.frame(MetadataRequest(topics=[]), 12)
        inside = struct.pack(">i", guarded.port)  # metadata tell where the broker is
        told = answers(guarded.listeners["KRB"], [hello + token + asked for token in tokens], PATIENCE_S, inside)
        assert not any(inside in answer for answer in told)
        assert "Created topic" in tool(world.properties("alice"), "--create", "--topic", f"after-{chance.random()}")
        return resident_bytes(guarded.pid)

    before = play()
    assert play() - before < HOSTILE_BYTES_MAX
    assert guarded.log_text().count("Failed authentication") > HOSTILE
    assert "Traceback" not in guarded.log_text()


def test_a_principal_that_no_rule_has_a_name_for_is_refused(world: World, tmp_path: Path) -> None:
    rules = {"sasl.kerberos.principal.to.local.rules": "RULE:[1:$1]"}
    with broker({**world.ottla_settings(), **rules}, data_dir=tmp_path) as running:
        to = ["--bootstrap-server", running.bootstrap, "--command-config"]
        assert main(["topics", *to, str(world.properties("alice")), "--list"]) == 0
        assert main(["topics", *to, str(world.properties("dave/other")), "--list"]) != 0
        why = f"no rule of sasl.kerberos.principal.to.local.rules has a name for dave/other@{REALM}"
        assert why in running.log_text()


def test_brokers_among_themselves(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with zookeeper(1) as ensemble:
        running = RunningCluster(tmp_path, brokers=2, zookeeper=ensemble, settings=world.ottla_settings())
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
