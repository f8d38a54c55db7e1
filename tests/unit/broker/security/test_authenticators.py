"""What the authenticators count, and that a login finds the settings and the metadata as they are at that moment."""

import asyncio

from msgspec.structs import replace

from ottla.broker.security.authenticators import Authenticators
from ottla.broker.security.sasl.scram_credentials import SHA_256, credential_of, salted_password, write_credential
from ottla.broker.session import Principal, Session
from ottla.client import sasl as client
from ottla.cluster.image import ClusterImage, user_entity
from ottla.config.load import settings_from
from ottla.model.errors import ErrorCode
from ottla.telemetry import catalogue
from ottla.telemetry.registry import Telemetry

SETTINGS = settings_from(
    {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:9092",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "connection.failed.authentication.delay.ms": "0",
    }
)


def with_password(password: str, iterations: int = 4096) -> ClusterImage:
    salted = salted_password(SHA_256, password, b"salt", iterations)
    text = write_credential(credential_of(SHA_256, salted, b"salt", iterations))
    return replace(ClusterImage(), entity_configs={user_entity("alice"): {"SCRAM-SHA-256": text}})


def log_in(authenticators: Authenticators, password: str) -> Session:
    login = authenticators.begin("SASL_PLAINTEXT")
    session = Session("SASL_PLAINTEXT", "h", login=login)
    assert login.choose(session, "SCRAM-SHA-256", 0, bare=False)
    exchange = client.scram("sha256", "alice", password, "nonce")
    answer = login.token(session, next(exchange), 0, 0)
    answer = login.token(session, exchange.send(answer.reply), 0, 0)
    if answer.error is ErrorCode.NONE:
        authenticators.accepted(session)
    else:
        asyncio.run(authenticators.refused(session, answer.why))
    return session


def test_a_login_sees_the_newest_password_and_is_counted() -> None:
    image = with_password("old")
    authenticators, telemetry = Authenticators(lambda: SETTINGS, lambda: image), Telemetry()
    authenticators.show(telemetry)
    assert log_in(authenticators, "old").principal == Principal("User", "alice")
    image = with_password("new")
    assert log_in(authenticators, "old").principal != Principal("User", "alice")
    assert log_in(authenticators, "new").principal == Principal("User", "alice")
    counted = {sample.metric: (sample.labels, sample.value) for sample in telemetry.snapshot()}
    assert counted[catalogue.LOGINS] == (("SASL_PLAINTEXT",), 2)
    assert counted[catalogue.LOGINS_FAILED] == (("SASL_PLAINTEXT",), 1)


def test_who_does_not_exist_is_asked_for_as_many_iterations_as_those_who_do() -> None:
    def asked(image: ClusterImage, user: str) -> bytes:
        login = Authenticators(lambda: SETTINGS, lambda: image).begin("SASL_PLAINTEXT")
        session = Session("SASL_PLAINTEXT", "h", login=login)
        assert login.choose(session, "SCRAM-SHA-256", 0, bare=False)
        first = login.token(session, next(client.scram("sha256", user, "guess", "nonce")), 0, 0).reply
        return first.rpartition(b",i=")[2]

    more = with_password("old", iterations=12_000)
    assert asked(more, "alice") == asked(more, "nobody") == b"12000"
    assert asked(ClusterImage(), "nobody") == b"4096"


def test_a_credential_that_cannot_be_read_lets_nobody_in() -> None:
    image = replace(ClusterImage(), entity_configs={user_entity("alice"): {"SCRAM-SHA-256": "nonsense"}})
    assert log_in(Authenticators(lambda: SETTINGS, lambda: image), "x").principal != Principal("User", "alice")
