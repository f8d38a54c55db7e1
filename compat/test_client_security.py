"""Our client against Apache Kafka behind TLS: every SASL mechanism, and sessions that Kafka ends."""

import asyncio
import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from compat.peer.kafka import Kafka
from compat.sessions import SESSION_MS, outlives_sessions
from tests.unit.client.tls import Certificates, make_certificates

from ottla.client.errors import AuthenticationFailed, NotTrusted
from ottla.client.settings import client_settings

pytestmark = [pytest.mark.compat, pytest.mark.timeout(180)]

_LOGIN = "org.apache.kafka.common.security"
# The name of a listener says nothing of its protocol: this one is called PLAINTEXT, and is not.
_SECURED = {
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:SASL_SSL",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "connections.max.reauth.ms": str(SESSION_MS),
    "listener.name.plaintext.plain.sasl.jaas.config": (
        f'{_LOGIN}.plain.PlainLoginModule required username="admin" password="a" user_admin="a" user_anna="pencil";'
    ),
    "listener.name.plaintext.scram-sha-256.sasl.jaas.config": f"{_LOGIN}.scram.ScramLoginModule required;",
    "listener.name.plaintext.scram-sha-512.sasl.jaas.config": f"{_LOGIN}.scram.ScramLoginModule required;",
    "listener.name.plaintext.oauthbearer.sasl.jaas.config": (
        f'{_LOGIN}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="admin";'
    ),
}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def bootstrap(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("kafka")
    store = folder / "server-store.pem"
    store.write_text(certificates.server_key.read_text() + certificates.server.read_text())
    settings = {
        **_SECURED,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.authority),
    }
    node = Kafka(folder, settings=settings)
    users = [f"--add-scram={kind}=[name=anna,password=pencil]" for kind in ("SCRAM-SHA-256", "SCRAM-SHA-512")]
    node.format(extra=users)
    node.start()
    try:
        yield node.bootstrap
    finally:
        node.stop()


def token(subject: str) -> str:
    def part(document: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()

    now = int(time.time())
    return f"{part({'alg': 'none'})}.{part({'sub': subject, 'iat': now, 'exp': now + 600})}."


def brokers_seen(bootstrap: str, certificates: Certificates, settings: dict[str, str]) -> int:
    async def scenario() -> int:
        base = {"bootstrap.servers": bootstrap, "security.protocol": "SASL_SSL"}
        found = client_settings({**base, "ssl.ca.location": str(certificates.authority), **settings})
        async with found.cluster(patience_s=60.0) as cluster:
            await cluster.retrying(lambda: cluster.metadata([]))
            return len(cluster.brokers)

    return asyncio.run(scenario())


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_users_with_passwords(bootstrap: str, certificates: Certificates, mechanism: str) -> None:
    settings = {"sasl.mechanism": mechanism, "sasl.username": "anna", "sasl.password": "pencil"}
    assert brokers_seen(bootstrap, certificates, settings) == 1
    with pytest.raises(AuthenticationFailed, match="refused the credentials"):
        brokers_seen(bootstrap, certificates, {**settings, "sasl.password": "pen"})


def test_tokens(bootstrap: str, certificates: Certificates) -> None:
    settings = {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token": token("anna")}
    assert brokers_seen(bootstrap, certificates, settings) == 1
    with pytest.raises(AuthenticationFailed):
        brokers_seen(bootstrap, certificates, {**settings, "sasl.oauthbearer.token": "nonsense"})


def test_a_certificate_of_an_unknown_authority(bootstrap: str, certificates: Certificates, tmp_path: Path) -> None:
    settings = {
        "sasl.mechanism": "PLAIN",
        "sasl.username": "anna",
        "sasl.password": "pencil",
        "ssl.ca.location": str(make_certificates(tmp_path).authority),
    }
    with pytest.raises(NotTrusted, match="not trusted"):
        brokers_seen(bootstrap, certificates, settings)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_connection_outlives_the_sessions_that_kafka_ends(
    bootstrap: str, certificates: Certificates, mechanism: str
) -> None:
    settings = {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(certificates.authority),
        "sasl.mechanism": mechanism,
        "sasl.username": "anna",
        "sasl.password": "pencil",
    }
    assert asyncio.run(outlives_sessions(settings))
