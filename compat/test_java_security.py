"""The Java client and Apache Kafka's own tools over TLS and every way to log in: the right way, and wrong ones."""

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from compat.peer.kafka import PeerError, run_tool
from compat.peer.program import own_java_command
from tests.security.sasl_kit import AUDIENCE, ISSUER, Issuer, TokenEndpoint, set_password, token_endpoint

from ottla.testing.running import RunningBroker, broker
from ottla.testing.tls import Certificates

pytestmark = [pytest.mark.usefixtures("kafka_libs"), pytest.mark.one_broker("has listeners of its own")]

USER, PASSWORD = "alice", "alice-secret"
LOGIN = "org.apache.kafka.common.security"
OAUTH = f"{LOGIN}.oauthbearer"
MODULES = {
    "PLAIN": f"{LOGIN}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{LOGIN}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{LOGIN}.scram.ScramLoginModule",
}
TOPICS = "org.apache.kafka.tools.TopicCommand"
TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
Properties = dict[str, str]


class World(NamedTuple):
    broker: RunningBroker
    certificates: Certificates
    strangers: Certificates
    issuer: Issuer
    tokens: TokenEndpoint
    """Of the issuer whom the broker believes."""
    wrong_tokens: TokenEndpoint
    """Of another."""
    late_tokens: TokenEndpoint
    """Whose tokens have expired."""
    folder: Path

    def tls(self, *, known: bool = True) -> Properties:
        """What makes a client believe the broker, or (not) another."""
        authority = (self.certificates if known else self.strangers).ca
        return {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": str(authority)}

    def mutual(self, certificates: Certificates | None = None, *, expired: bool = False) -> Properties:
        keys = (certificates or self.certificates).pem("java-client", expired=expired)
        return {**self.tls(), "ssl.keystore.type": "PEM", "ssl.keystore.location": str(keys)}

    def login(self, mechanism: str, user: str = USER, password: str = PASSWORD, more: str = "") -> Properties:
        return {
            **self.tls(),
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f'{MODULES[mechanism]} required username="{user}" password="{password}"{more};',
        }

    def oauth(self, endpoint: TokenEndpoint) -> Properties:
        return {
            **self.tls(),
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.login.callback.handler.class": f"{OAUTH}.OAuthBearerLoginCallbackHandler",
            "sasl.oauthbearer.token.endpoint.url": endpoint.url,
            "sasl.jaas.config": f'{OAUTH}.OAuthBearerLoginModule required clientId="{USER}" clientSecret="{PASSWORD}";',
        }

    def file(self, properties: Properties) -> Path:
        path = self.folder / "client.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        return path


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("java-security")
    certificates, strangers = Certificates(folder / "ours"), Certificates(folder / "strangers", "unknown")
    (folder / "issuer").mkdir()
    (folder / "other").mkdir()
    issuer, other = Issuer(folder / "issuer"), Issuer(folder / "other")
    settings = {
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in ("PLAINTEXT", "TLS", "MTLS", "LOGIN")),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,TLS:SSL,MTLS:SSL,LOGIN:SASL_SSL",
        **certificates.broker_settings(),
        "listener.name.mtls.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "listener.name.login.plain.sasl.jaas.config": f'{MODULES["PLAIN"]} required user_{USER}="{PASSWORD}";',
        "sasl.oauthbearer.jwks.endpoint.url": issuer.url,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "delegation.token.secret.key": "a key of all brokers",
    }
    with (
        broker(settings, data_dir=folder / "data") as running,
        token_endpoint(issuer, USER, PASSWORD) as right,
        token_endpoint(other, USER, PASSWORD) as wrong,
        token_endpoint(issuer, USER, PASSWORD, life=-100) as late,
    ):
        set_password(running.bootstrap_of("PLAINTEXT"), USER, PASSWORD)
        yield World(running, certificates, strangers, issuer, right, wrong, late, folder)


class Case(NamedTuple):
    name: str
    listener: str
    properties: Callable[[World], Properties]
    refusal: str = ""
    """The exception that Java has for it; none if the client is let in."""


SASL, TLS = "SaslAuthenticationException", "SslAuthenticationException"
CASES = [
    Case("tls", "TLS", lambda world: world.tls()),
    Case("tls-stranger", "TLS", lambda world: world.tls(known=False), TLS),
    Case("mtls", "MTLS", lambda world: world.mutual()),
    Case("mtls-none", "MTLS", lambda world: world.tls(), TLS),
    Case("mtls-stranger", "MTLS", lambda world: world.mutual(world.strangers), TLS),
    Case("mtls-expired", "MTLS", lambda world: world.mutual(expired=True), TLS),
    *(
        case
        for mechanism in MODULES
        for case in (
            Case(mechanism, "LOGIN", lambda world, mechanism=mechanism: world.login(mechanism)),  # type: ignore[misc]
            Case(
                f"{mechanism}-wrong",
                "LOGIN",
                lambda world, mechanism=mechanism: world.login(mechanism, password="another"),  # type: ignore[misc]
                SASL,
            ),
            Case(
                f"{mechanism}-unknown",
                "LOGIN",
                lambda world, mechanism=mechanism: world.login(mechanism, user="nobody"),  # type: ignore[misc]
                SASL,
            ),
        )
    ),
    Case("oauthbearer", "LOGIN", lambda world: world.oauth(world.tokens)),
    Case("oauthbearer-wrong", "LOGIN", lambda world: world.oauth(world.wrong_tokens), SASL),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_java_client(case: Case, world: World, java_classes: Path) -> None:
    properties = world.file(case.properties(world))
    scenario = ("refused", str(properties), case.refusal) if case.refusal else ("secured", str(properties))
    done = run_java(world, java_classes, case.listener, *scenario)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip().endswith("passed")


def run_java(world: World, classes: Path, listener: str, *scenario: str) -> "subprocess.CompletedProcess[str]":
    command = own_java_command("Check", world.broker.bootstrap_of(listener), *scenario, classes=classes)
    return subprocess.run(
        [command[0], *oauth_flags(world), *command[1:]], capture_output=True, text=True, timeout=180, check=False
    )


def oauth_flags(world: World) -> list[str]:
    """Java asks nobody for tokens whom it was not told of so."""
    urls = ",".join(each.url for each in (world.tokens, world.wrong_tokens, world.late_tokens))
    return [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={urls}"]


def test_java_client_with_a_token_that_has_expired_does_not_even_try(world: World, java_classes: Path) -> None:
    properties = world.file(world.oauth(world.late_tokens))
    done = run_java(world, java_classes, "LOGIN", "secured", str(properties))
    assert done.returncode != 0
    assert "passed" not in done.stdout


TOOL_CASES = [case for case in CASES if not case.refusal or case.name.endswith(("wrong", "none", "stranger"))]


@pytest.mark.parametrize("case", TOOL_CASES, ids=lambda case: case.name)
def test_tools(case: Case, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", " ".join(oauth_flags(world)))
    properties = str(world.file(case.properties(world)))
    arguments = ("--bootstrap-server", world.broker.bootstrap_of(case.listener), "--command-config", properties)
    if case.refusal:
        with pytest.raises(PeerError, match=case.refusal):
            run_tool(TOPICS, *arguments, "--list")
        return
    topic = f"tools-{case.name.lower()}"
    run_tool(TOPICS, *arguments, "--create", "--topic", topic, "--partitions", "2")
    assert topic in run_tool(TOPICS, *arguments, "--list").split()
    assert "PartitionCount: 2" in run_tool(TOPICS, *arguments, "--describe", "--topic", topic)


def test_the_console_and_administration_of_users(world: World) -> None:
    """Producer, consumer, kafka-configs: a user is made with Kafka's own tool and logs in."""
    server = ("--bootstrap-server", world.broker.bootstrap_of("LOGIN"))
    admin = (*server, "--command-config", str(world.file(world.login("SCRAM-SHA-512"))))
    run_tool(TOPICS, *admin, "--create", "--topic", "console")
    entity = ("--entity-type", "users", "--entity-name", "made")
    credential = "SCRAM-SHA-256=[iterations=8192,password=made-secret]"
    run_tool("kafka.admin.ConfigCommand", *admin, "--alter", *entity, "--add-config", credential)
    assert "iterations=8192" in run_tool("kafka.admin.ConfigCommand", *admin, "--describe", *entity)
    made = ("--command-config", str(world.file(world.login("SCRAM-SHA-256", "made", "made-secret"))))
    run_tool("org.apache.kafka.tools.ConsoleProducer", *server, *made, "--topic", "console", stdin="hello\n")
    read = run_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer", *server, *made, "--topic", "console", "--from-beginning",
        "--max-messages", "1",
    )  # fmt: skip
    assert read.strip() == "hello"


def test_delegation_tokens(world: World, java_classes: Path) -> None:
    """Made, used by the Java client, renewed, expired, each with Kafka's own tool."""
    server = ("--bootstrap-server", world.broker.bootstrap_of("LOGIN"))
    admin = (*server, "--command-config", str(world.file(world.login("SCRAM-SHA-512"))))
    printed = run_tool(TOKENS, *admin, "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    (token_id, hmac) = re.findall(r"^(\S{22})\s+(\S{88})\s+User:alice\s", printed, re.MULTILINE)[0]
    assert token_id in run_tool(TOKENS, *admin, "--describe", "--owner-principal", "User:alice")

    def outcome(mechanism: str, password: str, *scenario: str) -> str:
        login = world.login(mechanism, token_id, password, ' tokenauth="true"')
        done = run_java(world, java_classes, "LOGIN", scenario[0], str(world.file(login)), *scenario[1:])
        return done.stdout.strip().rpartition("\n")[2] or done.stderr

    assert outcome("SCRAM-SHA-256", hmac, "secured") == "passed"
    assert outcome("SCRAM-SHA-512", hmac, "secured") == "passed"
    assert outcome("SCRAM-SHA-256", "x" + hmac[1:], "refused", SASL) == "passed"
    by_token = world.file(world.login("SCRAM-SHA-256", token_id, hmac, ' tokenauth="true"'))
    with pytest.raises(PeerError, match="UnsupportedByAuthenticationException"):
        run_tool(TOKENS, *server, "--command-config", str(by_token), "--create", "--max-life-time-period", "-1")
    admin = (*server, "--command-config", str(world.file(world.login("SCRAM-SHA-512"))))
    run_tool(TOKENS, *admin, "--renew", "--renew-time-period", "-1", "--hmac", hmac)
    run_tool(TOKENS, *admin, "--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    assert outcome("SCRAM-SHA-256", hmac, "refused", SASL) == "passed"
