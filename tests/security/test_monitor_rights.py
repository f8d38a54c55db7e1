"""`ottla monitor` logs in like any client, and the rights that docs/monitoring.md names are enough for it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from tests.security.test_acl_clients import PLAIN_MODULE

from ottla.cli.main import main
from ottla.testing import RunningBroker, broker

pytestmark = pytest.mark.one_broker("has a listener of its own")
CLUSTER = "kafka-cluster"
NEEDED = (
    (ResourceType.BROKER, CLUSTER, AclOperation.DESCRIBE),
    (ResourceType.TOPIC, "*", AclOperation.DESCRIBE),
    (ResourceType.GROUP, "*", AclOperation.DESCRIBE),
    (ResourceType.TOPIC, "ottla-monitor", AclOperation.CREATE),
    (ResourceType.TOPIC, "ottla-monitor", AclOperation.ALTER),
    (ResourceType.TOPIC, "ottla-monitor", AclOperation.READ),
    (ResourceType.TOPIC, "ottla-monitor", AclOperation.WRITE),
    (ResourceType.GROUP, "ottla-monitor", AclOperation.READ),
)


@pytest.fixture(scope="module")
def guarded() -> Iterator[RunningBroker]:
    users = " ".join(f'user_{name}="{name}-secret"' for name in ("admin", "monitor", "stranger"))
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
        }
    ) as running:
        admin = AdminClient(
            {
                "bootstrap.servers": running.bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "admin",
                "sasl.password": "admin-secret",
            }
        )
        rules = [
            AclBinding(kind, name, ResourcePatternType.LITERAL, "User:monitor", "*", what, AclPermissionType.ALLOW)
            for kind, name, what in NEEDED
        ]
        for told in admin.create_acls(rules).values():
            told.result(30)
        yield running


def config_of(user: str, folder: Path, password: str | None = None) -> str:
    path = folder / f"{user}.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f"sasl.username={user}\nsasl.password={password or f'{user}-secret'}\n"
    )
    return str(path)


def test_with_these_rights_everything_works(
    guarded: RunningBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--bootstrap-server", guarded.bootstrap, "--command-config", config_of("monitor", tmp_path), "--json"]
    patient = ["--write-timeout-ms", "60000", "--latency-max-ms", "60000"]
    code = main(["monitor", "--once", "--duration", "0.5", "--no-topic-probe", *patient, *where])
    (found,) = json.loads(capsys.readouterr().out)
    assert (code, found["faults"], found["commits"]["done"]) == (0, [], 1)
    assert main(["top", "--once", "--delay", "0.1", *where]) == 0
    seen = json.loads(capsys.readouterr().out)
    assert seen["failures"] == []
    assert [each["group"] for each in seen["groups"]] == ["ottla-monitor"]
    assert seen["brokers"][0]["free_share"] is not None


def test_without_rights_it_says_what_is_refused(
    guarded: RunningBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--bootstrap-server", guarded.bootstrap, "--command-config", config_of("stranger", tmp_path)]
    assert main(["monitor", "--once", "--duration", "0.5", *where]) == 1
    assert "authori" in capsys.readouterr().err.lower()


def test_a_wrong_password_ends_it(guarded: RunningBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--bootstrap-server", guarded.bootstrap, "--command-config", config_of("monitor", tmp_path, "wrong")]
    assert main(["monitor", "--listen", "0", *where]) == 1
    assert "refused the credentials" in capsys.readouterr().err
