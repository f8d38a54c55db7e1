"""GSSAPI (RFC 4752): Kerberos. The library behind `Accepting` makes and reads its tokens; what follows is decided here.

client: token ...                          server: token ..., until both are convinced
client: nothing                            server: wrapped 01 00 00 00: no layers of protection, that is TLS's work
client: wrapped 01, a size, [an id]        server: nothing

Whom the client would like to act for, the id, is not asked about, as in Kafka: who logs in is whom the ticket names.
kafka-python and aiokafka write the name of the service there.
"""

from collections.abc import Callable
from typing import Protocol

from ottla.broker.security.sasl.verdicts import Accepted, Challenge, Refused, Verdict, invalid_credentials

NAME = "GSSAPI"
NO_LAYER = 1
_OFFER = bytes((NO_LAYER, 0, 0, 0))


class ContextFailed(Exception):
    """The library does not accept a token, and why, for the log."""


class Accepting(Protocol):
    """One context of security, on the side that is asked. Everything raises ContextFailed."""

    @property
    def complete(self) -> bool: ...
    def step(self, token: bytes) -> bytes: ...
    def wrap(self, message: bytes) -> bytes: ...
    def unwrap(self, message: bytes) -> bytes: ...
    def client(self) -> str:
        """The principal at the other end."""
        ...


class Gssapi:
    def __init__(self, begin: Callable[[], Accepting], local_name: Callable[[str], str | None]) -> None:
        """`local_name` is the user of a principal; None if no rule has a name for it."""
        self._begin = begin
        self._local_name = local_name
        self._context: Accepting | None = None
        self._convinced = False
        self._offered = False
        self._over = False

    def step(self, token: bytes, now_ms: int) -> Verdict:
        if self._over:
            return self._refuse("a token after the last one")
        try:
            verdict = self._judge(token)
        except ContextFailed as error:
            verdict = self._refuse(str(error))
        self._over = not isinstance(verdict, Challenge)
        return verdict

    def _judge(self, token: bytes) -> Verdict:
        if self._context is None:
            self._context = self._begin()
        context = self._context
        if self._offered:
            return self._final(context, token)
        if not self._convinced:
            answer = context.step(token)
            self._convinced = context.complete
            if answer or not self._convinced:
                return Challenge(answer)
        elif token:
            return self._refuse("a token where none was expected")
        self._offered = True
        return Challenge(context.wrap(_OFFER))

    def _final(self, context: Accepting, token: bytes) -> Verdict:
        chosen = context.unwrap(token)
        if len(chosen) < len(_OFFER) or chosen[0] != NO_LAYER:
            return self._refuse("the client wants a layer of protection that is not offered")
        principal = context.client()
        user = self._local_name(principal)
        if user is None:
            return self._refuse(f"no rule of sasl.kerberos.principal.to.local.rules has a name for {principal}")
        return Accepted(b"", user)

    def _refuse(self, why: str) -> Refused:
        return invalid_credentials(NAME, why)
