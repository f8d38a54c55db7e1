"""A listener's certificate is replaced through the protocol while clients are at work."""

import os
import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from tests.security.conftest import PATIENCE_S, Credentials

from ottla.cli.main import main
from ottla.testing import RunningBroker, broker
from ottla.testing.tls import Certificates
from ottla.tls.authority import LOCAL_HOSTS

PASSWORD = "listener.name.rotated.ssl.keystore.password"
LOCATION = "listener.name.rotated.ssl.keystore.location"
RECORDS = 3_000


@pytest.fixture
def admin(secured: RunningBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": secured.bootstrap_of("PLAIN")})


def alter(admin: AdminClient, value: str, name: str = LOCATION) -> None:
    alter_all(admin, {name: value})


def alter_all(admin: AdminClient, settings: dict[str, str]) -> None:
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=entries)
    (done,) = admin.incremental_alter_configs([resource]).values()
    done.result(PATIENCE_S)


def shown(secured: RunningBroker, ca: Path) -> bytes:
    """The certificate that a new connection sees."""
    context = ssl.create_default_context(cafile=str(ca))
    sock = socket.create_connection(secured.listeners["ROTATED"], PATIENCE_S)
    with context.wrap_socket(sock, server_hostname="localhost") as tls:
        return tls.getpeercert(binary_form=True) or b""


def renewed(certificates: Certificates) -> Path:
    """The same names, another key, in the same file."""
    path = certificates.pem("rotated", LOCAL_HOSTS)
    stamp = os.stat(path).st_mtime_ns + 1_000_000_000
    os.utime(path, ns=(stamp, stamp))
    return path


def test_certificates_are_rotated_under_load(
    secured: RunningBroker, certificates: Certificates, admin: AdminClient, unique: Callable[[str], str]
) -> None:
    settings = {
        "bootstrap.servers": secured.bootstrap_of("ROTATED"),
        **Credentials(ca=certificates.ca).librdkafka(),
    }
    topic = unique("rotated")
    failed: list[str] = []
    producer = Producer({**settings, "error_cb": lambda error: failed.append(str(error))})
    done = threading.Event()

    def delivered(error: KafkaError | None, _message: object) -> None:
        if error is not None:
            failed.append(str(error))

    def produce() -> None:
        for number in range(RECORDS):
            producer.produce(topic, str(number), on_delivery=delivered)
            producer.poll(0.0005)
        producer.flush(PATIENCE_S)
        done.set()

    worker = threading.Thread(target=produce)
    worker.start()
    seen = {shown(secured, certificates.ca)}
    while len(seen) < 4:
        alter(admin, str(renewed(certificates)))  # the same value: the file was written anew
        certificate = shown(secured, certificates.ca)
        assert certificate not in seen
        seen.add(certificate)
    worker.join(PATIENCE_S)
    assert done.is_set()
    assert failed == [], "a connection that is there goes on"
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    got: list[bytes] = []
    while len(got) < RECORDS:
        got += [message.value() or b"" for message in consumer.consume(RECORDS, 1.0)]
    consumer.close()
    assert got == [str(number).encode() for number in range(RECORDS)]


def test_a_store_of_somebody_else_is_refused_and_the_old_one_stays(
    secured: RunningBroker, certificates: Certificates, admin: AdminClient
) -> None:
    before = shown(secured, certificates.ca)
    impostor = certificates.pem("impostor", LOCAL_HOSTS)
    for value, words in (
        (str(impostor), "is for CN=impostor, the old one for CN=rotated; ssl.allow.dn.changes=true allows that"),
        ("/nowhere.pem", "/nowhere.pem: No such file or directory"),
    ):
        with pytest.raises(KafkaException) as caught:
            alter(admin, value)
        assert words in str(caught.value)
    with pytest.raises(KafkaException, match=r"listener\.name\.NAME\.ssl\.keystore\.location"):
        alter(admin, str(impostor), "ssl.keystore.location")
    assert shown(secured, certificates.ca) == before


@pytest.fixture
def command_config(certificates: Certificates, tmp_path: Path) -> Path:
    path = tmp_path / "client.properties"
    lines = {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(certificates.ca),
        "ssl.keystore.location": str(certificates.pkcs12("operator", "hunter2")),
        "ssl.keystore.password": "hunter2",
    }
    path.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    return path


def test_the_tool_does_it_too_and_shows_no_secrets(
    secured: RunningBroker, certificates: Certificates, command_config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = shown(secured, certificates.ca)
    tool = [
        "configs", "--bootstrap-server", secured.bootstrap_of("MTLS"), "--command-config", str(command_config),
        "--entity-type", "brokers", "--entity-name", "1",
    ]  # fmt: skip
    assert main([*tool, "--alter", "--add-config", f"{LOCATION}={renewed(certificates)}"]) == 0
    assert shown(secured, certificates.ca) != before
    capsys.readouterr()
    assert main([*tool, "--describe", "--all"]) == 0
    said = capsys.readouterr().out
    assert LOCATION in said
    assert "listener.name.mtls.ssl.keystore.password" in said
    assert "in the store" not in said
    assert "hunter2" not in secured.log_text()
    assert "in the store" not in secured.log_text()


def test_a_password_that_is_set_while_the_broker_runs_is_kept_encrypted(
    certificates: Certificates, tmp_path: Path
) -> None:
    """And read again by the next process, even if the secret is another by then; without a secret it is refused."""
    listeners = {
        "listeners": "ROTATED://127.0.0.1:0",
        "listener.security.protocol.map": "ROTATED:SSL",
        **certificates.broker_settings("rotated"),
    }
    store = certificates.pkcs12("rotated", "open sesame", LOCAL_HOSTS)
    with broker(listeners, data_dir=tmp_path) as running:
        admin = AdminClient(
            {"bootstrap.servers": running.bootstrap, **Credentials(ca=certificates.ca).librdkafka()}
        )  # fmt: skip
        before = shown(running, certificates.ca)
        change = {LOCATION: str(store), PASSWORD: "open sesame"}
        with pytest.raises(KafkaException, match=r"give all brokers a password\.encoder\.secret"):
            alter_all(admin, change)
        running.restart({"password.encoder.secret": "first"})
        alter_all(admin, change)
        now = shown(running, certificates.ca)
        assert now != before
        kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        assert b"keyFactoryAlgorithm" in kept
        assert b"open sesame" not in kept
        running.restart({"password.encoder.secret": "second", "password.encoder.old.secret": "first"})
        assert shown(running, certificates.ca) == now
        running.restart({"password.encoder.old.secret": ""})
        assert shown(running, certificates.ca) == now
        running.restart({"password.encoder.secret": "third"})
        assert shown(running, certificates.ca) == before, "what it cannot read it does without"
        assert f"Dynamic password config {PASSWORD} could not be decoded" in running.log_text()
        assert "open sesame" not in running.log_text()
