"""Unmodified clients with every mechanism: who shows the right thing gets all, who does not gets nothing."""

import uuid
from collections.abc import Iterator

import pytest
from tests.security.sasl_kit import CLIENTS, MECHANISMS, Client, Denied, Issuer, Login, sasl_broker

from ottla.testing import RunningBroker

pytestmark = [
    pytest.mark.one_broker("names its listeners"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # sockets of kafka-python's
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningBroker, Issuer]]:
    with sasl_broker(tmp_path_factory.mktemp("issuer")) as (running, issuer):
        yield running, issuer


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> Client:
    return request.param  # type: ignore[no-any-return]


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


def test_who_shows_an_expired_token_is_not_let_in(world: tuple[RunningBroker, Issuer], client: Client) -> None:
    running, issuer = world
    with pytest.raises(Denied):
        client.exercise(Login(running.bootstrap_of("SASL"), "OAUTHBEARER", token=issuer.token(life=-60)), topic())


def test_who_shows_nothing_is_not_let_in(world: tuple[RunningBroker, Issuer], client: Client) -> None:
    running, _ = world
    with pytest.raises(Denied):
        client.exercise(Login(running.bootstrap_of("SASL"), None), topic())
