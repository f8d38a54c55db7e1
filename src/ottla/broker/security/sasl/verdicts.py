"""What a mechanism makes of a client's token. Everything a machine says is one of these three."""

from typing import NamedTuple, Protocol


class Challenge(NamedTuple):
    """The client is told this and has to go on."""

    reply: bytes


class Accepted(NamedTuple):
    """The client is who it says."""

    reply: bytes
    user: str
    expires_ms: int | None = None
    """When what it showed stops being valid, in milliseconds since 1970; None: never."""
    by_token: bool = False
    """It showed a delegation token, with which no other token can be had."""


class Refused(NamedTuple):
    """The client is told `text`, which says nothing about who exists. `why` is for the log of the broker."""

    text: str
    why: str


Verdict = Challenge | Accepted | Refused


class Mechanism(Protocol):
    """One login, from the first token to the verdict. After that it refuses everything."""

    def step(self, token: bytes, now_ms: int) -> Verdict: ...


def invalid_credentials(mechanism: str, why: str) -> Refused:
    """One text for everything that can be wrong with what a client showed."""
    return Refused(
        f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}", why
    )
