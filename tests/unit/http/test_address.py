"""What users may write as the address of a listener, and what they are told when it cannot be."""

import socket

import pytest

from ottla.http.address import BadListener, HttpAddress, parse_address
from ottla.http.listening import address_of, listen


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("8080", ("127.0.0.1", 8080)),
        (":8080", ("127.0.0.1", 8080)),
        ("0", ("127.0.0.1", 0)),
        (" localhost:8080 ", ("localhost", 8080)),
        ("0.0.0.0:8080", ("0.0.0.0", 8080)),
        ("broker-1.example.org:80", ("broker-1.example.org", 80)),
        ("[::1]:8080", ("::1", 8080)),
        ("[::]:0", ("::", 0)),
    ],
)
def test_what_is_understood(text: str, meant: tuple[str, int]) -> None:
    assert parse_address(text) == meant


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("http://localhost:8080", "is a URL; write HOST:PORT"),
        ("localhost", "is not HOST:PORT, nor a port alone"),
        ("", "is not HOST:PORT"),
        ("localhost:", "is not a number"),
        ("localhost:http", "is not a number"),
        ("localhost:-1", "is not a number"),
        ("localhost:٣", "is not a number"),
        (":65536", "is not between 0 (a free one) and 65535"),
        (":99999999999999999999", "is not between"),
        ("::1:8080", "in brackets: [::1]:8080"),
        ("[::1]", "has no port; write [HOST]:PORT"),
        ("[localhost]:80", "no IPv6 address in its brackets"),
        ("*:8080", "write 0.0.0.0:8080"),
        ("a b:8080", "neither a host name nor an address"),
    ],
)
def test_what_is_not_is_told_with_the_name_of_the_setting(text: str, told: str) -> None:
    with pytest.raises(BadListener) as raised:
        parse_address(text, "metrics.listener")
    assert told in str(raised.value)
    assert str(raised.value).startswith("metrics.listener: ")


def test_it_is_written_as_it_is_read() -> None:
    assert str(HttpAddress("::1", 80)) == "[::1]:80"
    assert parse_address(str(HttpAddress("127.0.0.1", 80))) == ("127.0.0.1", 80)


def test_port_0_is_a_free_one_and_a_taken_one_is_told() -> None:
    with listen(parse_address("localhost:0"), backlog=1) as first:
        address = address_of(first)
        assert address.host == "127.0.0.1"
        with pytest.raises(BadListener, match=rf"cannot listen on 127.0.0.1:{address.port}: port .* is in use"):
            listen(address, backlog=1)


def test_an_address_of_another_machine_is_told() -> None:
    with pytest.raises(BadListener, match=r"no interface of this machine has the address 192.0.2.1"):
        listen(parse_address("192.0.2.1:0"), backlog=1)


def test_a_name_that_nobody_knows_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(BadListener, match=r"nowhere.invalid is not known"):
        listen(parse_address("nowhere.invalid:80"), backlog=1)
