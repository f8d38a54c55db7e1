"""A broker with every SASL mechanism, an issuer of tokens, and clients that all do the same things through it."""

import asyncio
import base64
import json
import ssl
import time
import uuid
import warnings
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qs

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as AioTokenProvider
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AioNewTopic
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ottla.http.address import HttpAddress
from ottla.http.application import Served, application
from ottla.http.thread import HttpThread
from ottla.testing import RunningBroker, broker
from ottla.testing.tls import Certificates

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
    from kafka.net.sasl.oauth import AbstractTokenProvider as KafkaPythonTokenProvider

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
USER = "alice"
PASSWORD = "alice-secret, with = and ü"
SECONDS_MAX = 30.0
DENIED_SECONDS_MAX = 20.0
ISSUER = "https://issuer.example"
AUDIENCE = "kafka"
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


class Denied(Exception):
    """The client was not let in, and said so."""


class Login(NamedTuple):
    """What a client shows; without a mechanism it shows nothing but a certificate, if it has one."""

    bootstrap: str
    mechanism: str | None
    password: str = PASSWORD
    token: str = ""
    ca: Path | None = None
    """Whom it trusts: with this it speaks TLS."""
    keys: Path | None = None
    """A PEM with its own key and certificate."""

    @property
    def protocol(self) -> str:
        transport = "PLAINTEXT" if self.ca is None else "SSL"
        return transport if self.mechanism is None else f"SASL_{transport}"

    def context(self) -> ssl.SSLContext | None:
        if self.ca is None:
            return None
        context = ssl.create_default_context(cafile=str(self.ca))
        if self.keys is not None:
            context.load_cert_chain(self.keys)
        return context


class Issuer:
    """Signs tokens, and publishes its keys in a file."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "jwks.json"
        self.keys: list[RSAKey] = []
        self.rotate()

    @property
    def url(self) -> str:
        return self._file.as_uri()

    def rotate(self) -> None:
        """Sign with a new key from now on; the old ones stay published."""
        self.keys.append(RSAKey.generate_key(2048, {"kid": uuid.uuid4().hex}))
        public = KeySet([RSAKey.import_key(key.as_dict(private=False)) for key in self.keys])
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(public.as_dict()))
        new.rename(self._file)

    def token(self, user: str = USER, *, life: float = 3600, key: RSAKey | None = None, **claims: Any) -> str:
        now = int(time.time())
        content = {"iss": ISSUER, "aud": AUDIENCE, "sub": user, "iat": now - 3600, "exp": int(now + life)} | claims
        key = key or self.keys[-1]
        return jwt.encode({"alg": "RS256", "kid": key.kid}, content, key)


class TokenEndpoint:
    """Gives a token to whoever shows the client's id and secret, and counts them."""

    def __init__(self, issuer: Issuer, client_id: str, client_secret: str, life: float) -> None:
        self.given, self.scopes = 0, set[str]()
        self.url = ""
        self._issuer, self._client_id, self._life = issuer, client_id, life
        self._expected = "Basic " + base64.b64encode(f"{client_id}:{client_secret}".encode()).decode()

    def served(self) -> Served:
        return application([Route("/token", self._token, methods=["POST"])])

    async def _token(self, request: Request) -> Response:
        if request.headers.get("authorization") != self._expected:
            return JSONResponse({"error": "invalid_client"}, 401)
        form = parse_qs((await request.body()).decode())
        assert form["grant_type"] == ["client_credentials"]
        self.scopes |= set(form.get("scope", ()))
        self.given += 1
        token = self._issuer.token(self._client_id, life=self._life)
        return JSONResponse({"access_token": token, "expires_in": self._life, "token_type": "Bearer"})


@contextmanager
def token_endpoint(
    issuer: Issuer, client_id: str, client_secret: str, *, life: float = 3600
) -> Iterator[TokenEndpoint]:
    endpoint = TokenEndpoint(issuer, client_id, client_secret, life)
    server = HttpThread(endpoint.served, HttpAddress("127.0.0.1", 0))
    server.start()
    endpoint.url = f"{server.url}/token"
    with closing(server):
        yield endpoint


def sasl_settings(issuer: Issuer, **more: str) -> dict[str, str]:
    prefix = "listener.name.sasl"
    return {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        f"{prefix}.plain.sasl.jaas.config": f'{PLAIN_MODULE} required user_{USER}="{PASSWORD}" user_bob="bob-secret";',
        "sasl.oauthbearer.jwks.endpoint.url": issuer.url,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        **more,
    }


def over_tls(settings: Mapping[str, str], certificates: Certificates) -> dict[str, str]:
    """The same, with a listener SASL_TLS more: the same mechanisms over TLS."""
    plain = "plain.sasl.jaas.config"
    return {
        **settings,
        "listeners": f"{settings['listeners']},SASL_TLS://127.0.0.1:0",
        "listener.security.protocol.map": f"{settings['listener.security.protocol.map']},SASL_TLS:SASL_SSL",
        f"listener.name.sasl_tls.{plain}": settings[f"listener.name.sasl.{plain}"],
        **certificates.broker_settings(),
    }


@contextmanager
def sasl_broker(folder: Path, **more: str) -> Iterator[tuple[RunningBroker, Issuer]]:
    issuer = Issuer(folder)
    with _with_password(sasl_settings(issuer, **more)) as running:
        yield running, issuer


@contextmanager
def sasl_broker_with_tls(folder: Path, certificates: Certificates) -> Iterator[tuple[RunningBroker, Issuer]]:
    issuer = Issuer(folder)
    with _with_password(over_tls(sasl_settings(issuer), certificates)) as running:
        yield running, issuer


@contextmanager
def _with_password(settings: Mapping[str, str]) -> Iterator[RunningBroker]:
    with broker(settings) as running:
        set_password(running.bootstrap_of("PLAINTEXT"), USER, PASSWORD)
        yield running


def set_password(bootstrap: str, user: str, password: str) -> None:
    """Over an open listener, for both SCRAM mechanisms."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        change = UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4096), password.encode())
        admin.alter_user_scram_credentials([change])[user].result(SECONDS_MAX)


class Client(Protocol):
    """Produce, consume in a group, a transaction, administration. Denied if the broker does not let it in."""

    name: str

    def exercise(self, login: Login, topic: str) -> None: ...


# -- confluent-kafka


class Confluent:
    name = "confluent-kafka"

    def exercise(self, login: Login, topic: str) -> None:
        errors: list[KafkaError] = []
        settings = {**confluent_settings(login), "error_cb": errors.append}
        admin = AdminClient(settings)
        created = admin.create_topics([NewTopic(topic, 1)], request_timeout=DENIED_SECONDS_MAX)[topic]
        while not created.done():
            admin.poll(0.1)
            if errors:  # it would try again until the end of days
                raise Denied(str(errors))
        try:
            created.result()
        except KafkaException as error:
            raise Denied(str(error)) from error
        producer = Producer({**settings, "transactional.id": topic})
        producer.init_transactions(SECONDS_MAX)
        producer.begin_transaction()
        producer.produce(topic, b"one")
        producer.commit_transaction(SECONDS_MAX)
        consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
        consumer.subscribe([topic])
        assert _polled(consumer).value() == b"one"
        consumer.commit(asynchronous=False)
        consumer.close()
        assert topic in {group.group_id for group in admin.list_consumer_groups().result(SECONDS_MAX).valid}


def confluent_settings(login: Login) -> dict[str, Any]:
    settings: dict[str, Any] = {"bootstrap.servers": login.bootstrap, "security.protocol": login.protocol}
    if login.ca is not None:
        settings["ssl.ca.location"] = str(login.ca)
    if login.keys is not None:
        settings |= {"ssl.certificate.location": str(login.keys), "ssl.key.location": str(login.keys)}
    if login.mechanism is not None:
        settings["sasl.mechanism"] = login.mechanism
    if login.mechanism == "OAUTHBEARER":
        settings["oauth_cb"] = lambda _: (login.token, time.time() + 600)
    elif login.mechanism is not None:
        settings |= {"sasl.username": USER, "sasl.password": login.password}
    return settings


def _polled(consumer: Consumer) -> Message:
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            return message
    raise AssertionError("no record came")


# -- kafka-python


class _FixedToken(KafkaPythonTokenProvider):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    def token(self) -> str:
        return self._token


class KafkaPython:
    name = "kafka-python"

    def exercise(self, login: Login, topic: str) -> None:
        settings = self._settings(login)
        try:
            admin = KafkaAdminClient(**settings)
        except Exception as error:
            raise Denied(repr(error)) from error
        try:
            admin.create_topics({topic: {"num_partitions": 1}})
            producer = KafkaProducer(**settings, transactional_id=topic)
            producer.init_transactions()
            producer.begin_transaction()
            producer.send(topic, b"one").get(SECONDS_MAX)
            producer.commit_transaction()
            producer.close()
            consumer = KafkaConsumer(topic, **settings, group_id=topic, auto_offset_reset="earliest")
            assert next(consumer).value == b"one"
            consumer.commit()
            consumer.close()
        finally:
            admin.close()

    def _settings(self, login: Login) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "bootstrap_servers": login.bootstrap,
            "bootstrap_timeout_ms": 1_500,
            "security_protocol": login.protocol,
            "ssl_context": login.context(),
        }
        if login.mechanism is not None:
            settings["sasl_mechanism"] = login.mechanism
        if login.mechanism == "OAUTHBEARER":
            settings["sasl_oauth_token_provider"] = _FixedToken(login.token)
        elif login.mechanism is not None:
            settings |= {"sasl_plain_username": USER, "sasl_plain_password": login.password}
        return settings


# -- aiokafka


class _AioToken(AioTokenProvider):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    async def token(self) -> str:
        return self._token


class AioKafka:
    name = "aiokafka"

    def exercise(self, login: Login, topic: str) -> None:
        asyncio.run(asyncio.wait_for(self._exercise(login, topic), SECONDS_MAX * 2))

    async def _exercise(self, login: Login, topic: str) -> None:
        settings = self._settings(login)
        admin = AIOKafkaAdminClient(**settings)
        try:
            await asyncio.wait_for(admin.start(), DENIED_SECONDS_MAX)
        except Exception as error:
            await admin.close()
            raise Denied(repr(error)) from error
        try:
            try:
                await admin.create_topics([AioNewTopic(topic, 1, 1)])
            except AttributeError as error:  # it goes on after a refused token, and has no brokers then
                raise Denied(repr(error)) from error
            async with AIOKafkaProducer(**settings, transactional_id=topic) as producer, producer.transaction():
                await producer.send_and_wait(topic, b"one")
            consumer = AIOKafkaConsumer(topic, **settings, group_id=topic, auto_offset_reset="earliest")
            async with consumer:
                assert (await consumer.getone()).value == b"one"
                await consumer.commit()
        finally:
            await admin.close()

    def _settings(self, login: Login) -> Mapping[str, Any]:
        settings: dict[str, Any] = {
            "bootstrap_servers": login.bootstrap,
            "security_protocol": login.protocol,
            "ssl_context": login.context(),
        }
        if login.mechanism is not None:
            settings["sasl_mechanism"] = login.mechanism
        if login.mechanism == "OAUTHBEARER":
            settings["sasl_oauth_token_provider"] = _AioToken(login.token)
        elif login.mechanism is not None:
            settings |= {"sasl_plain_username": USER, "sasl_plain_password": login.password}
        return settings


CLIENTS: tuple[Client, ...] = (Confluent(), KafkaPython(), AioKafka())
