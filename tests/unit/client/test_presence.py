"""Whether a broker answers is known in seconds, and said as Kafka's clients say it."""

import socket
from collections.abc import Iterator

import pytest

from ottla.client.presence import absent_brokers, connection_failed

SOON_S = 0.3


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that takes connections and never says a word, as a forwarded one with nobody behind."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_nobody_listens() -> None:
    (absent,) = absent_brokers("127.0.0.1:1")
    assert str(absent) == (
        "Connection to node -1 (/127.0.0.1:1) could not be established. "
        "Broker may not be available. (connection refused)"
    )


def test_every_address_is_named_with_its_number() -> None:
    first, second = absent_brokers("127.0.0.1:1,localhost:2")
    assert (first.node, second.node) == (-1, -2)
    assert "Connection to node -2 (localhost/127.0.0.1:2) could not be established" in str(second)


def test_somebody_who_never_answers_is_no_broker(silent: int) -> None:
    (absent,) = absent_brokers(f"127.0.0.1:{silent}", timeout_s=SOON_S)
    assert absent.reason == "did not answer within 0.3 s"


def test_a_name_that_nobody_knows() -> None:
    (absent,) = absent_brokers("no-such-host.invalid:9092")
    assert absent.ip is None
    assert "DNS resolution failed for no-such-host.invalid" in str(absent)


@pytest.mark.parametrize(
    ("host", "address", "shown"),
    [
        ("localhost", "127.0.0.1:9092", "localhost/127.0.0.1:9092"),
        ("10.0.0.1", "10.0.0.1:9092", "/10.0.0.1:9092"),
        ("::1", "[::1]:9092", "/[::1]:9092"),
    ],
)
def test_addresses_as_java_writes_them(host: str, address: str, shown: str) -> None:
    assert connection_failed(3, host, address, "why").startswith(f"Connection to node 3 ({shown}) could not be ")
