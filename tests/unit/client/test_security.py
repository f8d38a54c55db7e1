"""Security settings by their Kafka names, the SASL exchanges against their RFCs, and TLS against a real broker."""

import asyncio
import base64
import hashlib
import hmac
import http.server
import json
import pickle
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.unit.client.conftest import scripted_broker
from tests.unit.client.tls import KEY_PASSWORD, Certificates, make_certificates, running_proxy

from ottla.client import sasl
from ottla.client.cluster import Cluster
from ottla.client.connection import Connection
from ottla.client.errors import AuthenticationFailed, InvalidSetting, NotTrusted, Unreachable
from ottla.client.security import PLAINTEXT, OAuth, Sasl, Security, Tls, parse_security, ssl_context
from ottla.client.settings import client_settings
from ottla.protocol.frames import RequestHeader
from ottla.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ottla.protocol.schema import TopLevel
from ottla.testing import broker as started_broker

# Settings.


def test_without_settings_nothing_is_secured() -> None:
    assert parse_security({}) == PLAINTEXT
    assert parse_security({"security.protocol": "plaintext"}) == PLAINTEXT


def test_librdkafkas_names_of_tls() -> None:
    found = parse_security(
        {
            "security.protocol": "ssl",
            "ssl.ca.location": "ca.pem",
            "ssl.certificate.location": "me.pem",
            "ssl.key.location": "me.key",
            "ssl.key.password": "s3cret",
            "ssl.endpoint.identification.algorithm": "none",
        }
    )
    assert found.tls == Tls("ca.pem", None, "me.pem", None, "me.key", None, "s3cret", check_hostname=False)
    assert found.sasl is None


def test_javas_names_of_tls_with_pem_stores() -> None:
    found = parse_security(
        {
            "security.protocol": "SSL",
            "ssl.truststore.location": "trust.pem",
            "ssl.truststore.type": "PEM",
            "ssl.keystore.location": "both.pem",
            "ssl.keystore.type": "PEM",
            "ssl.endpoint.identification.algorithm": "",
        }
    )
    assert found.tls is not None
    assert (found.tls.ca_location, found.tls.certificate_location) == ("trust.pem", "both.pem")
    assert not found.tls.check_hostname


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_user_and_password_by_both_ways(mechanism: str) -> None:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    jaas = f'org.apache.kafka.common.security.{module} required username="anna" password="a=b;c";'
    java = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, "sasl.jaas.config": jaas}
    rdkafka = {
        "security.protocol": "sasl_plaintext",
        "sasl.mechanisms": mechanism,
        "sasl.username": "anna",
        "sasl.password": "a=b;c",
    }
    assert parse_security(java) == parse_security(rdkafka) == Security(None, Sasl(mechanism, "anna", "a=b;c"))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"security.protocol": "TLS"}, "kafka.security.protocol is one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ({"ssl.ca.location": "ca.pem"}, "kafka.ssl.ca.location needs kafka.security.protocol=SSL or SASL_SSL"),
        ({"sasl.username": "u", "security.protocol": "SSL"}, "kafka.sasl.username needs kafka.security.protocol=SASL"),
        ({"security.protocol": "SASL_SSL"}, "kafka.sasl.mechanism is missing"),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI", "sasl.kerberos.keytab": "k"},
            "kafka.sasl.kerberos.keytab needs kafka.sasl.kerberos.principal",
        ),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "MAGIC"}, "is one of PLAIN, SCRAM-SHA-256"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "needs kafka.sasl.username and"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}, "needs a token"),
        (
            {"security.protocol": "SSL", "ssl.truststore.location": "t.jks"},
            "a JKS trust store cannot be read here; convert it",
        ),
        (
            {"security.protocol": "SSL", "ssl.keystore.location": "k.p12", "ssl.keystore.type": "PKCS12"},
            "ssl.keystore.location: k.p12: No such file or directory",
        ),
        ({"security.protocol": "SSL", "ssl.key.location": "k"}, "needs the certificate too"),
        ({"security.protocol": "SSL", "ssl.enabled.protocols": "SSLv3"}, "TLSv1.2 and TLSv1.3 can be spoken here"),
        ({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "ldap"}, "is https or none"),
    ],
)
def test_what_cannot_work_is_refused_in_words(settings: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        parse_security(settings, prefix="kafka.")
    assert words in str(caught.value)


def test_secrets_are_not_shown_but_travel_to_executors() -> None:
    secured = Security(Tls(key_password="hush"), Sasl("PLAIN", "anna", "hush", OAuth("hush", client_secret="hush")))
    assert "hush" not in repr(secured)
    assert pickle.loads(pickle.dumps(secured)) == secured


def test_an_unknown_setting_is_named_with_what_it_may_have_meant() -> None:
    with pytest.raises(InvalidSetting, match=r"sasl\.pasword is not a client setting .* did you mean sasl\.password"):
        client_settings({"bootstrap.servers": "a:1", "sasl.pasword": "x"})


# SASL exchanges.


def test_scram_sha_256_says_what_rfc_7677_says() -> None:
    exchange = sasl.scram("sha256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    assert next(exchange) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    server_first = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert exchange.send(server_first) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    with pytest.raises(StopIteration):
        exchange.send(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


@pytest.mark.parametrize(
    ("server_first", "server_final", "words"),
    [
        (b"r=other,s=W22Z,i=4096", b"", "nonce"),
        (b"r=nonce+more,s=W22Z,i=100", b"", "4096 are the least"),
        (b"r=nonce+more,s=W22Z", b"", "does not parse"),
        (b"r=nonce+more,s=W22Z,i=4096", b"e=invalid-proof", "invalid-proof"),
        (b"r=nonce+more,s=W22Z,i=4096", b"v=AAAA", "does not know the password"),
    ],
)
def test_scram_trusts_no_broker_blindly(server_first: bytes, server_final: bytes, words: str) -> None:
    exchange = sasl.scram("sha256", "user", "pencil", "nonce")
    next(exchange)

    def talk() -> None:
        exchange.send(server_first)
        exchange.send(server_final)

    with pytest.raises(AuthenticationFailed) as caught:
        talk()
    assert words in str(caught.value)


def test_scram_escapes_names() -> None:
    assert next(sasl.scram("sha512", "a=b,c", "x", "n")) == b"n,,n=a=3Db=2Cc,r=n"


def test_plain_and_oauthbearer_say_what_their_rfcs_say() -> None:
    assert next(sasl.plain("tim", "tanstaaf")) == b"\0tim\0tanstaaf"  # RFC 4616
    exchange = sasl.oauthbearer("vF9dft4qmT")
    assert next(exchange) == b"n,,\x01auth=Bearer vF9dft4qmT\x01\x01"  # RFC 7628
    assert exchange.send(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(AuthenticationFailed, match="invalid_token"):
        exchange.send(b"")


# A broker that wants to know who one is.


class Doorkeeper:
    """The broker's side of SASL, written from the RFCs: PLAIN and SCRAM-SHA-512 for anna, whose password is pencil."""

    def __init__(self, session_ms: int = 0) -> None:
        self.session_ms = session_ms
        self.authenticated = 0
        self._first = b""

    def __call__(self, _header: RequestHeader, request: TopLevel) -> TopLevel:
        if isinstance(request, SaslHandshakeRequest):
            known = request.mechanism in ("PLAIN", "SCRAM-SHA-512")
            return SaslHandshakeResponse(error_code=0 if known else 33, mechanisms=["PLAIN", "SCRAM-SHA-512"])
        if isinstance(request, SaslAuthenticateRequest):
            return self._authenticate(bytes(request.auth_bytes))
        return ListGroupsResponse()

    def _authenticate(self, said: bytes) -> SaslAuthenticateResponse:
        if said.startswith(b"n,,"):
            nonce = said.split(b"r=")[1]
            self._first = said[3:] + b",r=" + nonce + b"server,s=" + base64.b64encode(b"salt") + b",i=4096"
            return SaslAuthenticateResponse(auth_bytes=self._first.split(b",", 2)[2])
        if said.startswith(b"c="):
            return self._check_proof(said)
        if said == b"\0anna\0pencil":
            return self._accept(b"")
        return SaslAuthenticateResponse(
            error_code=58, error_message="Authentication failed: Invalid username or password"
        )

    def _check_proof(self, said: bytes) -> SaslAuthenticateResponse:
        without, _, proof = said.rpartition(b",p=")
        salted = hashlib.pbkdf2_hmac("sha512", b"pencil", b"salt", 4096)
        stored = hashlib.sha512(hmac.digest(salted, b"Client Key", "sha512")).digest()
        message = self._first + b"," + without
        signature = hmac.digest(stored, message, "sha512")
        client_key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
        if hashlib.sha512(client_key).digest() != stored:
            return SaslAuthenticateResponse(error_code=58, error_message="no")
        server = hmac.digest(hmac.digest(salted, b"Server Key", "sha512"), message, "sha512")
        return self._accept(b"v=" + base64.b64encode(server))

    def _accept(self, said: bytes) -> SaslAuthenticateResponse:
        self.authenticated += 1
        return SaslAuthenticateResponse(auth_bytes=said, session_lifetime_ms=self.session_ms)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_connection_says_who_it_is(mechanism: str) -> None:
    async def scenario() -> int:
        doorkeeper = Doorkeeper()
        async with scripted_broker(doorkeeper) as running:
            who = Security(None, Sasl(mechanism, "anna", "pencil"))
            connection = await Connection.open("127.0.0.1", running.port, security=who)
            await connection.call(ListGroupsRequest(), ListGroupsResponse)
            await connection.close()
        return doorkeeper.authenticated

    assert asyncio.run(scenario()) == 1


def test_a_session_that_ends_is_renewed_on_the_same_connection() -> None:
    async def scenario() -> tuple[int, list[str]]:
        doorkeeper = Doorkeeper(session_ms=1)
        async with scripted_broker(doorkeeper) as running:
            who = Security(None, Sasl("PLAIN", "anna", "pencil"))
            connection = await Connection.open("127.0.0.1", running.port, security=who)
            while doorkeeper.authenticated < 3:
                await connection.call(ListGroupsRequest(), ListGroupsResponse)
            await connection.close()
            return doorkeeper.authenticated, [type(request).__name__ for _, request in running.seen[:2]]

    count, first = asyncio.run(scenario())
    assert count == 3
    assert first == ["SaslHandshakeRequest", "SaslAuthenticateRequest"]


@pytest.mark.parametrize(
    ("who", "words"),
    [
        (Sasl("PLAIN", "anna", "wrong"), "Invalid username or password"),
        (Sasl("SCRAM-SHA-256", "anna", "pencil"), "does not offer SCRAM-SHA-256; it offers PLAIN, SCRAM-SHA-512"),
    ],
)
def test_a_broker_that_refuses_is_not_asked_again(who: Sasl, words: str) -> None:
    async def scenario() -> None:
        async with scripted_broker(Doorkeeper()) as running:
            bootstrap = f"127.0.0.1:{running.port}"
            async with Cluster(bootstrap, security=Security(None, who)) as cluster:
                await cluster.retrying(lambda: cluster.metadata([]))

    with pytest.raises(AuthenticationFailed) as caught:
        asyncio.run(scenario())
    assert words in str(caught.value)


class _TokenIssuer(http.server.BaseHTTPRequestHandler):
    asked: list[tuple[str, str]] = []  # noqa: RUF012 (the server makes a handler per request; the class remembers)

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.asked.append((base64.b64decode(self.headers["Authorization"].split()[1]).decode(), form))
        body = json.dumps({"access_token": f"token-{len(self.asked)}", "expires_in": 3600}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def issuer() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _TokenIssuer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/token"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_token_is_fetched_once_with_id_and_secret(issuer: str) -> None:
    secured = parse_security(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": issuer,
            "sasl.jaas.config": 'org.apache.kafka.OAuthBearerLoginModule required clientId="me" clientSecret="hush";',
            "sasl.oauthbearer.scope": "read",
        }
    )
    assert secured.sasl is not None
    first = next(asyncio.run(sasl.exchange(secured.sasl, "localhost")))
    again = next(asyncio.run(sasl.exchange(secured.sasl, "localhost")))
    assert first == again == b"n,,\x01auth=Bearer token-1\x01\x01"
    assert _TokenIssuer.asked == [("me:hush", "grant_type=client_credentials&scope=read")]


# TLS, against a real broker behind a proxy.


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def tls_port(certificates: Certificates) -> Iterator[int]:
    """Where a broker listens behind TLS; it wants to see the client's certificate too."""
    with (
        running_proxy(certificates, wants_client_certificate=True) as proxy,
        started_broker({"advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}"}) as running,
    ):
        proxy.target = (running.host, running.port)
        yield proxy.port


def controller_through(port: int, settings: dict[str, str]) -> int:
    async def scenario() -> int:
        found = client_settings({"bootstrap.servers": f"127.0.0.1:{port}", "security.protocol": "SSL", **settings})
        async with found.cluster() as cluster:
            return await cluster.controller()

    return asyncio.run(scenario())


def test_files_of_certificates(tls_port: int, certificates: Certificates) -> None:
    settings = {
        "ssl.ca.location": str(certificates.authority),
        "ssl.certificate.location": str(certificates.client),
        "ssl.key.location": str(certificates.client_key),
        "ssl.key.password": KEY_PASSWORD,
    }
    assert controller_through(tls_port, settings) >= 0


def test_the_version_of_tls_can_be_chosen(tls_port: int, certificates: Certificates) -> None:
    settings = {
        "ssl.ca.location": str(certificates.authority),
        "ssl.certificate.location": str(certificates.client),
        "ssl.key.location": str(certificates.client_key),
        "ssl.key.password": KEY_PASSWORD,
        "ssl.enabled.protocols": "TLSv1.2",
    }
    assert controller_through(tls_port, settings) >= 0
    found = parse_security({"security.protocol": "SSL", **settings}).tls
    assert found is not None
    assert ssl_context(found).maximum_version.name == "TLSv1_2"


def test_certificates_written_into_the_settings(tls_port: int, certificates: Certificates) -> None:
    settings = {
        "ssl.truststore.certificates": certificates.authority.read_text(),
        "ssl.truststore.type": "PEM",
        "ssl.keystore.certificate.chain": certificates.client.read_text(),
        "ssl.keystore.key": certificates.client_key.read_text(),
        "ssl.keystore.type": "PEM",
        "ssl.key.password": KEY_PASSWORD,
    }
    assert controller_through(tls_port, settings) >= 0


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        (lambda _: {}, NotTrusted, "ssl.ca.location"),
        (lambda c: {"ssl.ca.location": str(c.server_key)}, InvalidSetting, "cannot be used"),
        (
            lambda c: {"ssl.ca.location": str(c.authority), "ssl.certificate.location": str(c.client),
                       "ssl.key.location": str(c.client_key), "ssl.key.password": "wrong"},
            InvalidSetting, "cannot be used",
        ),
    ],
)  # fmt: skip
def test_tls_that_cannot_work_says_why(
    tls_port: int,
    certificates: Certificates,
    settings: Callable[[Certificates], dict[str, str]],
    error: type[Exception],
    words: str,
) -> None:
    with pytest.raises(error, match=words):
        controller_through(tls_port, settings(certificates))


def test_a_certificate_for_another_host_is_not_trusted(tmp_path: Path) -> None:
    elsewhere = make_certificates(tmp_path, "10.11.12.13")
    with running_proxy(elsewhere) as proxy, pytest.raises(NotTrusted, match="not trusted"):
        controller_through(proxy.port, {"ssl.ca.location": str(elsewhere.authority)})


def test_a_broker_without_tls_is_recognised() -> None:
    with started_broker() as running, pytest.raises(Unreachable, match="does it speak TLS"):
        controller_through(running.port, {})


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("timeout.ms", "is not a client setting any more: use delivery.timeout.ms"),
        ("zookeeper.connect", "use bootstrap.servers"),
        ("retry.timeout", "is not a client setting that is known here: take it out"),
    ],
)
def test_a_guess_is_never_another_setting(name: str, hint: str) -> None:
    with pytest.raises(InvalidSetting, match=hint):
        client_settings({"bootstrap.servers": "h:1", name: "1"})
