"""SASL, access lists and TLS with a real ZooKeeper, from a broker's settings on."""

import asyncio
import datetime
import ipaddress
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from kazoo.protocol.states import KeeperState
from tests.unit.cluster.building import creation
from tests.unit.cluster.worlds import until

from ottla.cluster.store import ABSENT, Session, Write
from ottla.cluster.zookeeper.client import AuthenticationFailed, ConnectionLost, Create, NotAllowed, Set
from ottla.cluster.zookeeper.kazoo_client import KazooZooKeeper
from ottla.cluster.zookeeper.opening import _tls, open_zookeeper
from ottla.config.broker import BrokerSettings
from ottla.config.load import settings_from
from ottla.config.setting import ConfigError
from ottla.testing.ports import free_ports
from ottla.testing.zookeeper import ZooKeeperEnsemble, zookeeper

JAAS = """
Server {
  org.apache.zookeeper.server.auth.DigestLoginModule required user_ottla="a secret" user_other="another";
};
"""


class Secured(NamedTuple):
    ensemble: ZooKeeperEnsemble
    tls_port: int
    files: Path


def _certificate(folder: Path, name: str, host: str, issuer: str | None) -> None:
    """`name`.pem has the key and the certificate, signed by `issuer` or by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    signer, signed_by = key, subject
    if issuer is not None:
        text = (folder / f"{issuer}.pem").read_bytes()
        loaded = serialization.load_pem_private_key(text, None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        signer, signed_by = loaded, x509.load_pem_x509_certificate(text).subject
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signed_by)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=36_500))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))]), critical=False)
    )
    certificate = builder.sign(signer, hashes.SHA256())
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = certificate.public_bytes(serialization.Encoding.PEM)
    (folder / f"{name}.pem").write_bytes(secret + public)
    (folder / f"{name}-certificate.pem").write_bytes(public)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    files = tmp_path_factory.mktemp("security")
    (files / "jaas.conf").write_text(JAAS)
    _certificate(files, "authority", "127.0.0.1", None)
    _certificate(files, "stranger", "127.0.0.1", None)
    _certificate(files, "server", "127.0.0.1", "authority")
    _certificate(files, "broker", "127.0.0.1", "authority")
    (tls_port,) = free_ports(1)
    settings: dict[str, str | int] = {
        "authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "secureClientPort": tls_port,
        "secureClientPortAddress": "127.0.0.1",
        "ssl.keyStore.location": str(files / "server.pem"),
        "ssl.trustStore.location": str(files / "authority-certificate.pem"),
        "ssl.clientAuth": "need",
    }
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("JDK_JAVA_OPTIONS", f"-Djava.security.auth.login.config={files / 'jaas.conf'}")
        with zookeeper(settings=settings) as ensemble:
            yield Secured(ensemble, tls_port, files)


def settings_for(folder: Path, connect: str, **given: str) -> BrokerSettings:
    named = {name.replace("_", "."): value for name, value in given.items()}
    return settings_from(
        {
            "zookeeper.connect": connect,
            "zookeeper.session.timeout.ms": "3000",
            "zookeeper.connection.timeout.ms": "5000",
            "log.dirs": str(folder),
            **named,
        }
    )


def test_what_brokers_write_only_brokers_may_change(secured: Secured, tmp_path: Path) -> None:
    connect = secured.ensemble.connect + "/guarded"
    settings = settings_for(
        tmp_path,
        connect,
        zookeeper_set_acl="true",
        zookeeper_sasl_username="ottla",
        zookeeper_sasl_password="a secret",
    )

    async def scenario() -> None:
        store = await open_zookeeper(settings)
        await store.commit(creation("t", 2))
        await store.commit([Write("/config/users/alice", b'{"secret":"1"}', ABSENT)])
        anybody = KazooZooKeeper(secured.ensemble.connect, chroot="/guarded", session_timeout_ms=3_000)
        await anybody.start(lambda event: None, 20)
        assert (await anybody.get("/brokers/topics/t"))[0]
        with pytest.raises(NotAllowed):
            await anybody.get("/config/users/alice")
        for forbidden in (
            Set("/brokers/topics/t", b"{}"),
            Create("/brokers/topics/t/x", b""),
            Create("/changes/change-", b"", sequential=True),
            Set("/controller_epoch", b"9"),
        ):
            with pytest.raises(NotAllowed):
                await anybody.multi([forbidden])
        await anybody.close()
        second = await open_zookeeper(settings)
        assert second.image == store.image
        await second.commit(creation("u"))
        await until(lambda: "u" in store.image.topics)
        # After a broken connection it authenticates again.
        store._client._kazoo._connection._socket.shutdown(2)  # type: ignore[attr-defined]
        await until(lambda: store.session is Session.SUSPENDED)
        await until(lambda: store.session is Session.CONNECTED)
        await store.commit(creation("v"))
        await store.close()
        await second.close()

    asyncio.run(scenario())


def test_wrong_credentials_are_refused_in_words(secured: Secured, tmp_path: Path) -> None:
    settings = settings_for(
        tmp_path, secured.ensemble.connect, zookeeper_sasl_username="ottla", zookeeper_sasl_password="wrong"
    )
    with pytest.raises(AuthenticationFailed, match="refuses the credentials"):
        asyncio.run(open_zookeeper(settings))


def test_a_refusal_that_comes_before_the_first_question_is_told_as_such(
    secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = KazooZooKeeper.sync

    async def ask_late(client: KazooZooKeeper) -> None:
        await until(lambda: client._state == KeeperState.AUTH_FAILED)
        await ask(client)

    monkeypatch.setattr(KazooZooKeeper, "sync", ask_late)
    test_wrong_credentials_are_refused_in_words(secured, tmp_path)


def tls_settings(secured: Secured, folder: Path, **given: str) -> BrokerSettings:
    return settings_for(
        folder,
        f"127.0.0.1:{secured.tls_port}/tls",
        **{
            "zookeeper_ssl_client_enable": "true",
            "zookeeper_ssl_keystore_location": str(secured.files / "broker.pem"),
            "zookeeper_ssl_truststore_location": str(secured.files / "authority-certificate.pem"),
            "zookeeper_clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
            "zookeeper_connection_timeout_ms": "4000",
            **given,
        },
    )


def test_a_store_over_tls(secured: Secured, tmp_path: Path) -> None:
    async def scenario() -> None:
        store = await open_zookeeper(tls_settings(secured, tmp_path))
        await store.commit(creation("t", 300))
        assert store.session_timeout_ms == 3_000
        await store.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"zookeeper_ssl_truststore_location": "stranger-certificate.pem"}, "certificate verify failed"),
        ({"zookeeper_ssl_keystore_location": "stranger.pem"}, ""),  # the server hangs up, and does not say why
    ],
)
def test_strangers_are_not_believed(secured: Secured, tmp_path: Path, wrong: dict[str, str], words: str) -> None:
    named = {name: str(secured.files / file) for name, file in wrong.items()}
    with pytest.raises(ConnectionLost, match=f"did not answer within 4 s.*{words}"):
        asyncio.run(open_zookeeper(tls_settings(secured, tmp_path, **named)))


def test_the_host_must_be_the_one_that_the_certificate_names(secured: Secured, tmp_path: Path) -> None:
    """The server's is for 127.0.0.1; 127.0.0.2 leads to the same machine."""
    settings = tls_settings(secured, tmp_path)
    context = _tls(settings)
    assert context.check_hostname
    with (
        socket.create_connection(("127.0.0.1", secured.tls_port)) as connection,
        pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"),
    ):
        context.wrap_socket(connection, server_hostname="127.0.0.2")
    given = {"zookeeper_ssl_endpoint_identification_algorithm": ""}
    assert not _tls(tls_settings(secured, tmp_path, **given)).check_hostname


def test_files_that_cannot_be_used_are_named(secured: Secured, tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("")
    for name, words in (
        ("missing.pem", "missing.pem cannot be used: .*No such file"),
        ("empty.pem", "empty.pem cannot be used"),
    ):
        given = {"zookeeper_ssl_truststore_location": str(tmp_path / name)}
        with pytest.raises(ConfigError, match=words):
            asyncio.run(open_zookeeper(tls_settings(secured, tmp_path, **given)))


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    settings = settings_for(tmp_path, f"127.0.0.1:{port}", zookeeper_connection_timeout_ms="300")
    with pytest.raises(ConnectionLost, match=rf"ZooKeeper at 127\.0\.0\.1:{port} did not .* 0\.3 s: .*refused"):
        asyncio.run(open_zookeeper(settings))
