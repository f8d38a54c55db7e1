"""The machine of GSSAPI around a context that is in memory: which messages it takes in which order."""

from collections.abc import Callable

import pytest

from ottla.broker.security.sasl.gssapi import ContextFailed, Gssapi
from ottla.broker.security.sasl.verdicts import Accepted, Challenge, Refused, Verdict


class InMemory:
    """Convinced by `last`; wraps with a mark in front."""

    def __init__(self, answers: dict[bytes, bytes], last: bytes) -> None:
        self._answers, self._last = answers, last
        self.complete = False

    def step(self, token: bytes) -> bytes:
        if token not in self._answers:
            raise ContextFailed("a ticket of another service")
        self.complete = token == self._last
        return self._answers[token]

    def wrap(self, message: bytes) -> bytes:
        return b"W" + message

    def unwrap(self, message: bytes) -> bytes:
        if not message.startswith(b"W"):
            raise ContextFailed("not wrapped")
        return message[1:]

    def client(self) -> str:
        return "alice/admin@EXAMPLE.ORG"


def machine(answer: bytes = b"", names: Callable[[str], str | None] = lambda _: "alice") -> Gssapi:
    return Gssapi(lambda: InMemory({b"ap-req": answer}, b"ap-req"), names)


def talk(login: Gssapi, *tokens: bytes) -> list[Verdict]:
    return [login.step(token, 0) for token in tokens]


OFFER, CHOICE = b"W\x01\0\0\0", b"W\x01\0\0\0"


def test_with_and_without_a_last_token_of_the_server() -> None:
    assert talk(machine(), b"ap-req", CHOICE) == [Challenge(OFFER), Accepted(b"", "alice")]
    expected = [Challenge(b"ap-rep"), Challenge(OFFER), Accepted(b"", "alice")]
    assert talk(machine(b"ap-rep"), b"ap-req", b"", CHOICE) == expected


@pytest.mark.parametrize("wanted", [b"alice", b"alice/admin@EXAMPLE.ORG", b"kafka@localhost", b"bob", b"\xff"])
def test_who_logs_in_is_whom_the_ticket_names_whoever_else_is_asked_for(wanted: bytes) -> None:
    assert talk(machine(), b"ap-req", CHOICE + wanted)[-1] == Accepted(b"", "alice")


@pytest.mark.parametrize(
    ("tokens", "why"),
    [
        ((b"nonsense",), "ticket of another service"),
        ((b"",), "ticket of another service"),
        ((b"ap-req", b"\x01\0\0\0"), "not wrapped"),
        ((b"ap-req", b"W"), "layer of protection"),
        ((b"ap-req", b"W\x02\0\0\0"), "layer of protection"),
        ((b"ap-req", b"W\x05\0\0\0"), "layer of protection"),
    ],
)
def test_everything_else_is_refused(tokens: tuple[bytes, ...], why: str) -> None:
    login = machine()
    last = talk(login, *tokens)[-1]
    assert isinstance(last, Refused)
    assert why in last.why
    assert "alice" not in last.text
    assert isinstance(login.step(CHOICE, 0), Refused), "it is over"


def test_something_between_the_last_token_and_the_offer_is_refused() -> None:
    assert isinstance(talk(machine(b"ap-rep"), b"ap-req", b"more")[-1], Refused)


def test_a_principal_without_a_name_is_refused() -> None:
    last = talk(machine(names=lambda _: None), b"ap-req", CHOICE)[-1]
    assert isinstance(last, Refused)
    assert "principal.to.local.rules" in last.why
