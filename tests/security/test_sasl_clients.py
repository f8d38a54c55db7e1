"""Unmodified clients with every mechanism: who shows the right thing gets all, who does not gets nothing."""

import gc
import uuid
from collections.abc import Iterator

import pytest
from tests.security.sasl_kit import CLIENTS, MECHANISMS, Client, Denied, Issuer, Login, sasl_broker_with_tls

from ottla.testing import RunningBroker
from ottla.testing.tls import Certificates

pytestmark = [
    pytest.mark.one_broker("names its listeners"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # sockets of kafka-python's
]


@pytest.fixture(scope="module")
def world(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[tuple[RunningBroker, Issuer]]:
    with sasl_broker_with_tls(tmp_path_factory.mktemp("issuer"), certificates) as (running, issuer):
        yield running, issuer


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    yield request.param
    gc.collect()  # kafka-python leaves sockets behind where it is refused; else another test would hear of them


def topic() -> str:
    return f"t-{uuid.uuid4().hex[:8]}"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_who_shows_the_right_thing_can_do_everything(
    world: tuple[RunningBroker, Issuer], client: Client, mechanism: str
) -> None:
    running, issuer = world
    client.exercise(Login(running.bootstrap_of("SASL"), mechanism, token=issuer.token()), topic())


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_who_shows_the_wrong_thing_is_not_let_in(
    world: tuple[RunningBroker, Issuer], client: Client, mechanism: str
) -> None:
    running, issuer = world
    stranger = issuer.token(iss="https://elsewhere.example")
    with pytest.raises(Denied):
        client.exercise(Login(running.bootstrap_of("SASL"), mechanism, "wrong", stranger), topic())


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "OAUTHBEARER"])
def test_over_tls_who_shows_the_right_thing_can_do_everything(
    world: tuple[RunningBroker, Issuer], certificates: Certificates, client: Client, mechanism: str
) -> None:
    running, issuer = world
    login = Login(running.bootstrap_of("SASL_TLS"), mechanism, token=issuer.token(), ca=certificates.ca)
    client.exercise(login, topic())


@pytest.mark.parametrize("wrong", ["password", "authority", "transport"])
def test_over_tls_who_shows_the_wrong_thing_is_not_let_in(
    world: tuple[RunningBroker, Issuer],
    certificates: Certificates,
    strangers: Certificates,
    client: Client,
    wrong: str,
) -> None:
    running, _ = world
    right = Login(running.bootstrap_of("SASL_TLS"), "SCRAM-SHA-256", ca=certificates.ca)
    shown = {"password": right._replace(password="wrong"), "authority": right._replace(ca=strangers.ca),
             "transport": right._replace(ca=None)}  # fmt: skip
    with pytest.raises(Denied):
        client.exercise(shown[wrong], topic())


def test_who_shows_an_expired_token_is_not_let_in(world: tuple[RunningBroker, Issuer], client: Client) -> None:
    running, issuer = world
    with pytest.raises(Denied):
        client.exercise(Login(running.bootstrap_of("SASL"), "OAUTHBEARER", token=issuer.token(life=-60)), topic())


def test_who_shows_nothing_is_not_let_in(world: tuple[RunningBroker, Issuer], client: Client) -> None:
    running, _ = world
    with pytest.raises(Denied):
        client.exercise(Login(running.bootstrap_of("SASL"), None), topic())
