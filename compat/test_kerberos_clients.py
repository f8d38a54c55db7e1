"""Clients that log in by Kerberos, against Ottla and against Apache Kafka: what works with one works with the other.

kcat is librdkafka with Cyrus SASL, which confluent-kafka's wheels lack; kafka-python and aiokafka use the ticket that
kinit has left; our own tools log in to Kafka. Skipped where MIT's KDC or the library is not installed."""

import contextlib
import gc
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from compat.peer import kerberos
from compat.peer.kafka import Kafka, free_port
from compat.peer.kerberos import REALM
from compat.peer.kerberos_world import World, kerberos_world
from tests.security.sasl_kit import AioKafka, Client, Denied, KafkaPython, Login

from ottla.cli.main import main
from ottla.testing.running import broker

WHY_NOT = kerberos.missing()
pytestmark = [
    pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or ""),
    pytest.mark.one_broker("has listeners of its own"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # sockets of kafka-python's
]

Names = Callable[[str], str]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with kerberos_world(tmp_path_factory.mktemp("kerberos")) as found:
        yield found


@pytest.fixture(scope="module", params=["Ottla", "Apache Kafka"])
def bootstrap(request: pytest.FixtureRequest, world: World) -> Iterator[str]:
    running = _ottla(world) if request.param == "Ottla" else _kafka(world)
    with running as address:
        yield address


@contextlib.contextmanager
def _ottla(world: World) -> Iterator[str]:
    with broker(world.ottla_settings(), data_dir=world.folder / "ottla") as running:
        yield running.bootstrap


@contextlib.contextmanager
def _kafka(world: World) -> Iterator[str]:
    settings = world.settings()
    settings["listener.security.protocol.map"] += ",CONTROLLER:PLAINTEXT"
    settings["super.users"] += ";User:ANONYMOUS"  # itself, over its own listeners
    settings |= {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"}
    addresses = [f"localhost:{free_port()}" for _ in range(2)]
    listeners = [f"KRB://{addresses[0]}", f"KRB_TLS://{addresses[1]}"]
    node = Kafka(world.folder / "kafka", settings=settings, more_listeners=listeners)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", " ".join(world.java_flags))
        node.start()
    try:
        yield addresses[0]
    finally:
        node.stop()


def run_kcat(kcat: str, world: World, bootstrap: str, user: str, *words: str, stdin: str = "") -> tuple[int, str]:
    """Its exit code and what it said. It has kinit get the ticket, from the user's keytab."""
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.keytab": str(world.keytabs[user]),
        "sasl.kerberos.principal": f"{user}@{REALM}",
    }
    named = [word for name, value in settings.items() for word in ("-X", f"{name}={value}")]
    done = subprocess.run(
        [kcat, "-b", bootstrap, *named, *words], input=stdin, capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("user", ["alice", "carol/admin", "ERIN"])
def test_kcat(kcat: str, world: World, bootstrap: str, user: str, unique: Names) -> None:
    topic = unique("kcat")
    code, said = run_kcat(kcat, world, bootstrap, user, "-P", "-t", topic, stdin="one\ntwo\n")
    assert code == 0, said
    code, said = run_kcat(kcat, world, bootstrap, user, "-C", "-t", topic, "-e", "-q", "-c", "2")
    assert (code, said.splitlines()) == (0, ["one", "two"])


def test_kcat_of_somebody_without_rights(kcat: str, world: World, bootstrap: str, unique: Names) -> None:
    _, said = run_kcat(kcat, world, bootstrap, "bob", "-L", "-t", unique("kcat"), "-m", "20")
    assert "Topic authorization failed" in said


@pytest.mark.parametrize("client", [KafkaPython(), AioKafka()], ids=lambda client: client.name)
def test_python_clients_with_a_ticket(world: World, bootstrap: str, client: Client, unique: Names) -> None:
    world.kinit("alice")
    client.exercise(Login(bootstrap, "GSSAPI"), unique("python"))
    world.realm.run("kdestroy")
    with pytest.raises(Denied):
        client.exercise(Login(bootstrap, "GSSAPI"), unique("python"))
    gc.collect()  # kafka-python leaves sockets behind where it is refused; else another test would hear of them


@pytest.mark.parametrize("user", ["alice", "carol/admin", "ERIN", "bob", "dave/other"])
def test_our_tools(world: World, bootstrap: str, user: str, unique: Names, capsys: pytest.CaptureFixture[str]) -> None:
    topic = unique("tools")
    config = ["--bootstrap-server", bootstrap, "--command-config", str(world.properties(user))]
    code = main(["topics", *config, "--create", "--topic", topic])
    said = capsys.readouterr()
    if user in ("bob", "dave/other"):
        assert code != 0
        assert "uthorization failed" in said.err
    else:
        assert code == 0, said.err


def test_our_tools_with_a_ticket_for_another_service(
    world: World, bootstrap: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config: Path = world.properties("alice", service="other")
    assert main(["topics", "--bootstrap-server", bootstrap, "--command-config", str(config), "--list"]) != 0
    assert "invalid credentials with SASL mechanism GSSAPI" in capsys.readouterr().err
