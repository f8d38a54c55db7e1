"""Clients over TLS and with certificates of their own: who is right gets in, everybody else does not."""

from collections.abc import Callable

import pytest
from tests.security.conftest import Credentials, Refused, RoundTrip
from tests.security.sasl_kit import CLIENTS, Client, Login

from ottla.testing import RunningBroker
from ottla.testing.tls import Certificates

VALUES = [b"one", b"two" * 1000, b"three" * 50_000]

Unique = Callable[[str], str]

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # sockets of kafka-python's


@pytest.mark.parametrize("listener", ["TLS", "ASKS"])
def test_tls(
    secured: RunningBroker, certificates: Certificates, round_trip: RoundTrip, unique: Unique, listener: str
) -> None:
    bootstrap = secured.bootstrap_of(listener)
    assert round_trip(bootstrap, Credentials(ca=certificates.ca), unique("tls"), VALUES) == VALUES


@pytest.mark.parametrize("listener", ["MTLS", "ASKS"])
def test_client_certificates(
    secured: RunningBroker, certificates: Certificates, round_trip: RoundTrip, unique: Unique, listener: str
) -> None:
    own = Credentials(ca=certificates.ca, keys=certificates.pem("alice"))
    assert round_trip(secured.bootstrap_of(listener), own, unique("mtls"), VALUES) == VALUES


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
@pytest.mark.parametrize("listener", ["TLS", "MTLS"])
def test_transactions_and_administration(
    secured: RunningBroker, certificates: Certificates, unique: Unique, client: Client, listener: str
) -> None:
    keys = certificates.pem("alice") if listener == "MTLS" else None
    client.exercise(Login(secured.bootstrap_of(listener), None, ca=certificates.ca, keys=keys), unique("all"))


def refused(round_trip: RoundTrip, bootstrap: str, credentials: Credentials) -> None:
    with pytest.raises(Refused):
        round_trip(bootstrap, credentials, "nothing", [])


def test_a_broker_of_another_authority_is_not_believed(
    secured: RunningBroker, strangers: Certificates, round_trip: RoundTrip
) -> None:
    refused(round_trip, secured.bootstrap_of("TLS"), Credentials(ca=strangers.ca))


def test_a_broker_whose_certificate_has_expired_is_not_believed(
    secured: RunningBroker, certificates: Certificates, round_trip: RoundTrip
) -> None:
    refused(round_trip, secured.bootstrap_of("EXPIRED"), Credentials(ca=certificates.ca))


def test_who_does_not_speak_tls_gets_no_answer(secured: RunningBroker, round_trip: RoundTrip) -> None:
    refused(round_trip, secured.bootstrap_of("TLS"), Credentials(tls=False))


@pytest.mark.parametrize("keys", ["none", "of another authority", "expired"])
def test_who_must_show_a_certificate_and_has_no_good_one(
    secured: RunningBroker, certificates: Certificates, strangers: Certificates, round_trip: RoundTrip, keys: str
) -> None:
    shown = {
        "none": None,
        "of another authority": strangers.pem("alice"),
        "expired": certificates.pem("late", expired=True),
    }
    refused(round_trip, secured.bootstrap_of("MTLS"), Credentials(ca=certificates.ca, keys=shown[keys]))


def test_who_has_no_name_by_the_rules_does_not_get_in(
    secured: RunningBroker, certificates: Certificates, round_trip: RoundTrip
) -> None:
    """Its certificate is good; ssl.principal.mapping.rules of the listener want lower case."""
    nameless = Credentials(ca=certificates.ca, keys=certificates.pem("NAMELESS"))
    refused(round_trip, secured.bootstrap_of("MTLS"), nameless)
