"""Sign-in against real brokers with their own users, and at an identity provider with real keys."""

import asyncio
import base64
import hashlib
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
from confluent_kafka.admin import AdminClient
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from tests.console.browsing import Browser
from tests.console.test_access_gate import application as gated

from ottla.client.settings import client_settings
from ottla.console.access.broker_login import BrokerAway, login_settings, merged, try_login
from ottla.console.access.gate import AccessSettings, Gate
from ottla.console.access.oidc import Oidc, OidcFailed, OidcSettings
from ottla.console.access.users import parse_access
from ottla.http.address import HttpAddress
from ottla.http.application import Served, application
from ottla.http.thread import HttpThread
from ottla.testing import RunningBroker, broker

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_PASSWORD = "scram, with = and ü"


# The brokers' own users.


@pytest.fixture(scope="module")
def secured() -> Iterator[RunningBroker]:
    """`peter` is a user of PLAIN, `susan` of SCRAM; only peter may see the topic `his`."""
    with broker(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0,SASL://127.0.0.1:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.sasl.plain.sasl.jaas.config": f'{PLAIN_MODULE} required user_peter="peter-secret";',
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "connection.failed.authentication.delay.ms": 0,
        }
    ) as running:
        _prepare(running.bootstrap_of("PLAINTEXT"))
        yield running


def _prepare(bootstrap: str) -> None:
    from confluent_kafka.admin import (
        AclBinding,
        AclOperation,
        AclPermissionType,
        NewTopic,
        ResourcePatternType,
        ResourceType,
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialUpsertion,
    )

    admin = AdminClient({"bootstrap.servers": bootstrap})
    change = UserScramCredentialUpsertion(
        "susan", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), SCRAM_PASSWORD.encode()
    )
    admin.alter_user_scram_credentials([change])["susan"].result(30)
    admin.create_topics([NewTopic("his", 1, 1)])["his"].result(30)
    binding = AclBinding(
        ResourceType.TOPIC, "his", ResourcePatternType.LITERAL, "User:peter", "*", AclOperation.ALL,
        AclPermissionType.ALLOW,
    )  # fmt: skip
    admin.create_acls([binding])[binding].result(30)


def base_settings(secured: RunningBroker) -> dict[str, str]:
    """The console's own: with a login that must not be mixed with a user's."""
    jaas = f'{PLAIN_MODULE} required username="peter" password="peter-secret";'
    return {
        "bootstrap.servers": secured.bootstrap_of("SASL"),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": jaas,
    }


@pytest.mark.parametrize(
    ("name", "password", "mechanism"),
    [
        ("peter", "peter-secret", "PLAIN"),
        ("susan", SCRAM_PASSWORD, "SCRAM-SHA-256"),
        ("susan", "wrong", None),
        ("nobody", "x", None),
        ("", "x", None),
        ("pe\x00ter", "x", None),
    ],
)
def test_the_brokers_users(secured: RunningBroker, name: str, password: str, mechanism: str | None) -> None:
    login = asyncio.run(try_login(base_settings(secured), name, password))
    assert (None if login is None else login["sasl.mechanism"]) == mechanism


def test_the_brokers_acls_decide(secured: RunningBroker) -> None:
    base = base_settings(secured)

    async def topics_of(login: dict[str, str] | None) -> list[str | None]:
        async with client_settings(merged(base, login)).cluster() as cluster:
            return [topic.name for topic in (await cluster.metadata()).topics]

    assert asyncio.run(topics_of(login_settings(base, "PLAIN", "peter", "peter-secret"))) == ["his"]
    assert asyncio.run(topics_of(login_settings(base, "SCRAM-SHA-256", "susan", SCRAM_PASSWORD))) == []


def test_brokers_that_are_away_are_no_wrong_password() -> None:
    with pytest.raises(BrokerAway):
        asyncio.run(try_login({"bootstrap.servers": "127.0.0.1:1"}, "peter", "x"))


def test_a_listener_that_lets_everybody_in_makes_nobody_a_user(secured: RunningBroker) -> None:
    open_listener = {"bootstrap.servers": secured.bootstrap_of("PLAINTEXT")}
    try:
        login = asyncio.run(try_login(open_listener, "peter", "anything"))
    except BrokerAway:
        login = None
    assert login is None


def test_a_session_with_the_brokers_user(secured: RunningBroker) -> None:
    settings = AccessSettings(broker_login={"one": base_settings(secured), "two": {"bootstrap.servers": "127.0.0.1:1"}})
    gate = Gate(settings, failure_seconds=0)
    client = Browser(gated(gate))
    assert "<option>two</option>" in client.get("/sign-in").text
    assert client.post("/sign-in", {"name": "susan", "password": "x", "cluster": "one"}).status_code == 401
    assert client.post("/sign-in", {"name": "susan", "password": "x", "cluster": "two"}).status_code == 503
    answer = client.post("/sign-in", {"name": "susan", "password": SCRAM_PASSWORD, "cluster": "one"})
    assert answer.status_code == 303
    session = gate.sessions.find(client.cookies[gate.cookie], gate.now())
    assert session is not None
    assert (session.login or {})["sasl.username"] == "susan"
    assert SCRAM_PASSWORD not in repr(session)
    assert client.get("/c/one/see").json()["name"] == "susan"
    assert client.get("/c/two/see").status_code == 403, "a password is for the cluster that it was typed for"
    program = {"Authorization": "Basic " + base64.b64encode(b"peter:peter-secret").decode()}
    assert Browser(client.app).get("/api/c/one/see", program).json()["name"] == "peter"


# An identity provider.


class IdentityProvider:
    """Believes everybody, checks PKCE, and lies in its tokens when a test wants that."""

    def __init__(self) -> None:
        self.url = ""
        self.keys = [self._new_key()]
        self.published = list(self.keys)
        self.claims: dict[str, Any] = {}
        self.signs_with: Any = None
        self.issuer_says: str | None = None
        self._codes: dict[str, dict[str, str]] = {}
        self.reads = 0

    def _new_key(self) -> RSAKey:
        return RSAKey.generate_key(2048, {"kid": uuid.uuid4().hex})

    def rotate(self) -> None:
        self.keys.append(self._new_key())
        self.published = list(self.keys)

    def served(self) -> Served:
        return application(
            [
                Route("/.well-known/openid-configuration", self._configuration),
                Route("/keys", self._keys),
                Route("/token", self._token, methods=["POST"]),
            ]
        )

    async def _configuration(self, request: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.issuer_says or self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/keys",
            }
        )

    async def _keys(self, request: Request) -> Response:
        self.reads += 1
        return JSONResponse(KeySet([RSAKey.import_key(key.as_dict(private=False)) for key in self.published]).as_dict())

    def authorize(self, url: str) -> dict[str, str]:
        """What a browser comes back with, once its user has signed in there."""
        asked = dict(parse_qsl(urlsplit(url).query))
        assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
        code = uuid.uuid4().hex
        self._codes[code] = asked
        return {"code": code, "state": asked["state"]}

    async def _token(self, request: Request) -> Response:
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        asked = self._codes.pop(form["code"], None)
        if asked is None:
            return JSONResponse({"error": "invalid_grant"}, 400)
        digest = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=")
        expected = "Basic " + base64.b64encode(b"console:the+secret").decode()
        if digest.decode() != asked["code_challenge"] or request.headers["authorization"] != expected:
            return JSONResponse({"error": "invalid_grant"}, 400)
        now = int(time.time())
        claims = {
            "iss": self.url, "aud": "console", "sub": "123", "iat": now, "exp": now + 300, "nonce": asked["nonce"],
            "preferred_username": "olga", "groups": ["kafka-admins", "others"], **self.claims,
        }  # fmt: skip
        key = self.signs_with or self.keys[-1]
        return JSONResponse({"id_token": jwt.encode({"alg": "RS256", "kid": key.kid}, claims, key)})


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    made = IdentityProvider()
    server = HttpThread(made.served, HttpAddress("127.0.0.1", 0))
    server.start()
    made.url = server.url
    with closing(server):
        yield made


def settings_of(provider: IdentityProvider) -> OidcSettings:
    return OidcSettings(provider.url, "console", "the secret", "http://localhost/oidc/callback")


def browser(provider: IdentityProvider, **more: Any) -> tuple[Browser, Gate]:
    file = parse_access({"groups": {"kafka-admins": "admin", "kafka-viewers": "viewer"}})
    gate = Gate(AccessSettings(file, oidc=settings_of(provider), **more), failure_seconds=0)
    return Browser(gated(gate)), gate


def come_back(client: Browser, provider: IdentityProvider, path: str = "/oidc/start?next=/c/x/see") -> Any:
    started = client.get(path)
    assert started.status_code == 303
    query = provider.authorize(started.headers["location"])
    return client.get(f"/oidc/callback?code={query['code']}&state={query['state']}")


def test_signing_in_at_an_identity_provider(provider: IdentityProvider) -> None:
    client, gate = browser(provider)
    assert "/oidc/start?next=" in client.get("/sign-in?next=/c/x/see").text
    answer = come_back(client, provider)
    assert answer.status_code == 200
    assert 'content="0;url=/c/x/see"' in answer.text
    assert "SameSite=strict" in answer.headers["set-cookie"] or any(
        "SameSite=strict" in value for name, value in answer.all_headers if name == "set-cookie"
    )
    assert client.get("/c/x/see").json()["name"] == "olga"
    session = gate.sessions.find(client.cookies[gate.cookie], gate.now())
    assert session is not None
    assert (session.role.name, session.way, session.login) == ("admin", "oidc", None)
    assert "ottla-oidc" not in client.cookies


def test_groups_say_which_role(provider: IdentityProvider) -> None:
    for groups, status in ((["kafka-viewers"], 200), ("others kafka-viewers", 200), (["others"], 403), (7, 403)):
        provider.claims = {"groups": groups}
        client, _ = browser(provider)
        assert come_back(client, provider).status_code == status
    client, _ = browser(provider, oidc_role=parse_access({}).roles["viewer"])
    assert come_back(client, provider).status_code == 200


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ({"nonce": "another"}, "nonce"),
        ({"nonce": None}, "nonce"),
        ({"aud": "somebody else"}, "is for"),
        ({"aud": ["console", "other"]}, "azp"),
        ({"azp": "other"}, "azp"),
        ({"iss": "https://evil.example"}, "is from"),
        ({"exp": 1, "iat": 0}, "expired"),
        ({"sub": ""}, "whom it is about"),
    ],
)
def test_tokens_that_lie(provider: IdentityProvider, claims: dict[str, Any], words: str) -> None:
    provider.claims = claims
    client, gate = browser(provider)
    answer = come_back(client, provider)
    assert (answer.status_code, words in answer.text) == (401, True)
    assert gate.cookie not in client.cookies


def test_tokens_that_somebody_else_signed(provider: IdentityProvider) -> None:
    stranger = RSAKey.generate_key(2048, {"kid": str(provider.keys[0].kid)})
    provider.signs_with = stranger
    client, _ = browser(provider)
    assert "signature does not fit" in come_back(client, provider).text
    provider.signs_with = RSAKey.generate_key(2048, {"kid": "unknown"})
    assert "is not known" in come_back(client, provider).text


def test_a_new_key_is_read_when_a_token_names_it(provider: IdentityProvider) -> None:
    now = [time.time()]
    oidc = Oidc(settings_of(provider), now=lambda: now[0])

    async def go() -> str:
        url, sign_in = await oidc.begin("/")
        person, _ = await oidc.finish(provider.authorize(url), sign_in.state)
        return person.name

    assert asyncio.run(go()) == "olga"
    provider.rotate()
    now[0] += 61
    assert asyncio.run(go()) == "olga"
    assert provider.reads == 2


def test_only_the_browser_that_began_comes_back_and_only_once(provider: IdentityProvider) -> None:
    client, _ = browser(provider)
    started = client.get("/oidc/start")
    query = provider.authorize(started.headers["location"])
    back = f"/oidc/callback?code={query['code']}&state={query['state']}"
    assert Browser(client.app).get(back).status_code == 401, "login CSRF: another browser"
    assert client.get(back).status_code == 401, "it was used up"
    assert client.get("/oidc/callback?state=invented&code=x").status_code == 401
    started = client.get("/oidc/start")
    state = provider.authorize(started.headers["location"])["state"]
    refused = client.get(f"/oidc/callback?state={state}&error=access_denied&error_description=%3Cscript%3E")
    assert refused.status_code == 401
    assert "<script>" not in refused.text
    started = client.get("/oidc/start")
    state = provider.authorize(started.headers["location"])["state"]
    assert "answers 400" in client.get(f"/oidc/callback?state={state}&code=stolen").text
    assert client.get("/oidc/start?next=//evil").status_code == 303


def test_providers_that_cannot_be_believed(provider: IdentityProvider) -> None:
    with pytest.raises(OidcFailed, match="https"):
        Oidc(OidcSettings("http://issuer.example", "x"))
    with pytest.raises(OidcFailed, match="https"):
        Oidc(OidcSettings("http://localhost.evil", "x"))
    provider.issuer_says = "https://evil.example"
    client, _ = browser(provider)
    assert client.get("/oidc/start").status_code == 502
    away = Oidc(OidcSettings("http://127.0.0.1:1", "x"))
    with pytest.raises(OidcFailed, match="cannot be asked"):
        asyncio.run(away.begin("/"))


def test_secrets_are_not_shown(provider: IdentityProvider) -> None:
    assert "the secret" not in repr(settings_of(provider))
