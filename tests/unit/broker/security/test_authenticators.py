"""What the authenticators count, and that a login finds the settings and the metadata as they are at that moment."""

import asyncio

from msgspec.structs import replace
from tests.metrics_moved import MOVED_BY, moved

from ottla.broker.security.authenticators import Authenticators
from ottla.broker.security.sasl.login import Login
from ottla.broker.security.sasl.scram_credentials import SHA_256, credential_of, salted_password, write_credential
from ottla.broker.session import Principal, Session
from ottla.client import sasl as client
from ottla.cluster.image import ClusterImage, user_entity
from ottla.config.load import settings_from
from ottla.model.errors import ErrorCode
from ottla.telemetry.declared import logins
from ottla.telemetry.prometheus import render
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
        authenticators.accepted(session, 0.0, can_renew=True)
    else:
        asyncio.run(authenticators.refused(session, answer.why))
    return session


def test_a_login_sees_the_newest_password_and_is_counted() -> None:
    image = with_password("old")
    authenticators, telemetry = Authenticators(lambda: SETTINGS, lambda: image), Telemetry()
    authenticators.counts.show(telemetry, lambda: 0.0)
    assert log_in(authenticators, "old").principal == Principal("User", "alice")
    image = with_password("new")
    assert log_in(authenticators, "old").principal != Principal("User", "alice")
    assert log_in(authenticators, "new").principal == Principal("User", "alice")
    counted = {sample.metric: (sample.labels, sample.value) for sample in telemetry.snapshot()}
    assert counted[logins.LOGINS] == (("SASL_PLAINTEXT",), 2)
    assert counted[logins.LOGINS_FAILED] == (("SASL_PLAINTEXT",), 1)


def test_a_session_that_is_renewed_counts_apart_and_is_timed() -> None:
    authenticators, telemetry, now = Authenticators(lambda: SETTINGS, lambda: with_password("x")), Telemetry(), [0.0]
    authenticators.counts.show(telemetry, lambda: now[0])
    before = render(telemetry.tables())
    session = log_in(authenticators, "x")
    login = session.login
    assert isinstance(login, Login)
    login.logins += 1  # as its second login leaves it
    now[0] = 0.25
    authenticators.accepted(session, now[0], can_renew=True)
    asyncio.run(authenticators.refused(session, "another password"))
    authenticators.counts.accepted("TLS", can_renew=False)
    told = {(sample.metric, sample.labels): sample.value for sample in telemetry.snapshot()}
    ours, tls = ("SASL_PLAINTEXT",), ("TLS",)
    assert (told[logins.LOGINS, ours], told[logins.LOGINS_FAILED, ours]) == (1, 0)
    assert (told[logins.RENEWALS, ours], told[logins.RENEWALS_FAILED, ours]) == (1, 1)
    assert (told[logins.LOGINS_FOR_GOOD, ours], told[logins.LOGINS_FOR_GOOD, tls]) == (0, 1)
    assert (told[logins.RENEWAL_TIME_AVG, ours], told[logins.RENEWAL_TIME_MAX, ours]) == (250, 250)
    here = "tests/unit/broker/security/test_authenticators.py::test_a_session_that_is_renewed_counts_apart_and_is_timed"
    assert moved(before, render(telemetry.tables())) >= set(MOVED_BY[here])


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
