"""The logins of one connection: the first, and those that renew it (KIP-368). Pure: the time comes in.

HANDSHAKE --choose--> EXCHANGE --token--> DONE --choose, if the session ends one day--> EXCHANGE ...
anything that goes wrong leads to FAILED: the client is told, after a while, and the connection closed.
"""

from collections.abc import Callable
from typing import NamedTuple

from ottla.broker.security.sasl.verdicts import Accepted, Challenge, Mechanism
from ottla.broker.session import Authentication, Principal, Session
from ottla.model.errors import ErrorCode

REAUTHENTICATION_SECONDS_MIN = 1.0
"""A client that renews its session more often is told that nothing is to be renewed."""
LIFETIME_MS_MAX = 2**63 - 1


class Offer(NamedTuple):
    """What a listener has for clients who want to log in."""

    mechanisms: tuple[str, ...]
    begin: Callable[[str], Mechanism]
    """A machine for one login with the mechanism of this name."""
    reauthentication_ms: Callable[[str], int]
    """connections.max.reauth.ms of a mechanism; 0: a session does not end."""


class TokenAnswer(NamedTuple):
    """What a client is told after a token. With an error the connection ends."""

    error: ErrorCode
    text: str | None = None
    reply: bytes = b""
    lifetime_ms: int = 0
    why: str = ""
    """For the log."""


class Login:
    def __init__(self, offer: Callable[[], Offer], receive_bytes_max: int) -> None:
        """`offer` is what the listener has when a login begins: it may have something else for the next."""
        self._offer = offer
        self.receive_bytes_max = receive_bytes_max
        self._mechanism: str | None = None
        self._machine: Mechanism | None = None
        self.begun_at = float("-inf")
        """When a mechanism was chosen last."""
        self._bad_mechanism: str | None = None
        self.bare = False
        """Whether tokens come as bare frames: the client chose the mechanism with version 0."""
        self.by_token = False
        """Whether the client showed a delegation token."""
        self.logins = 0

    @property
    def mechanisms(self) -> tuple[str, ...]:
        return self._offer().mechanisms

    def may_choose(self, session: Session, now: float) -> bool:
        """Whether a mechanism may be chosen now; who may not is told so, and stays."""
        if session.authentication is Authentication.DONE:
            return session.expires_at is not None and now - self.begun_at >= REAUTHENTICATION_SECONDS_MIN
        return session.authentication is Authentication.HANDSHAKE

    def choose(self, session: Session, mechanism: str, now: float, *, bare: bool) -> bool:
        """Begin a login; False if the mechanism is not offered, which is the end of the connection."""
        renews = session.authentication is Authentication.DONE
        offer = self._offer()
        if mechanism not in offer.mechanisms:
            session.failed()
            return False
        self._bad_mechanism = self._mechanism if renews and mechanism != self._mechanism else None
        if self._bad_mechanism is None:
            self._machine = offer.begin(mechanism)
        self._mechanism, self.begun_at, self.bare = mechanism, now, bare
        session.exchanges()
        return True

    def token(self, session: Session, token: bytes, now_ms: int, now: float) -> TokenAnswer:
        """Go on with the login. `now_ms` is the time of day, for what expires; `now` the loop's."""
        if self._bad_mechanism is not None:
            text = (
                f"SASL mechanism '{self._mechanism}' requested by client is not supported for re-authentication of "
                f"mechanism '{self._bad_mechanism}'"
            )
            return self._failed(session, text, text)
        assert self._machine is not None
        verdict = self._machine.step(token, now_ms)
        if isinstance(verdict, Challenge):
            return TokenAnswer(ErrorCode.NONE, reply=verdict.reply)
        self._machine = None
        if isinstance(verdict, Accepted):
            return self._accepted(session, verdict, now_ms, now)
        return self._failed(session, verdict.text, verdict.why)

    def _accepted(self, session: Session, verdict: Accepted, now_ms: int, now: float) -> TokenAnswer:
        principal, before = Principal("User", verdict.user), session.principal
        if self.logins and principal != before:
            text = (
                f"Cannot change principals during re-authentication from {before.kind}.{before.name}: "
                f"{principal.kind}.{principal.name}"
            )
            return self._failed(session, text, text)
        assert self._mechanism is not None
        lifetime_ms = session_lifetime_ms(
            self._offer().reauthentication_ms(self._mechanism), verdict.expires_ms, now_ms
        )
        session.authenticated(principal, None if lifetime_ms is None else now + lifetime_ms / 1000)
        self.logins += 1
        self.by_token = verdict.by_token
        self.bare = False
        return TokenAnswer(ErrorCode.NONE, reply=verdict.reply, lifetime_ms=lifetime_ms or 0)

    def _failed(self, session: Session, text: str, why: str) -> TokenAnswer:
        session.failed()
        self._machine = None
        return TokenAnswer(ErrorCode.SASL_AUTHENTICATION_FAILED, text, why=f"{self._mechanism}: {why}")


def session_lifetime_ms(reauthentication_ms: int, expires_ms: int | None, now_ms: int) -> int | None:
    """How long a session lasts: as the broker says, and no longer than what the client showed. None: for ever."""
    bounds = [reauthentication_ms] if reauthentication_ms > 0 else []
    if expires_ms is not None:
        bounds.append(max(0, expires_ms - now_ms))
    return min(*bounds, LIFETIME_MS_MAX) if bounds else None
