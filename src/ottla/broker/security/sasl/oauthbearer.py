"""OAUTHBEARER (RFC 7628): a signed token from whoever knows the users, instead of a password.

client: n,[a=id],^Aauth=Bearer TOKEN^A[key=value^A...]^A      server: nothing, or {"status":"invalid_token"}
client, if refused: ^A                                        server: the refusal in the protocol's own words
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from ottla.broker.security.sasl.verdicts import Accepted, Challenge, Refused, Verdict
from ottla.security.holder import Holder

NAME = "OAUTHBEARER"
_MESSAGE = re.compile(
    r"n,(?:a=(?P<authorization_id>(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+))?,\x01"
    r"(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
_BEARER = re.compile(r"(?i:bearer)[ ]+(?P<token>[-_~+/.A-Za-z0-9]+=*)")
_INVALID_TOKEN = '{"status":"invalid_token"}'  # noqa: S105 (an answer, no secret)


class BadToken(NamedTuple):
    """Why a token is not in order, for the log."""

    why: str


VerifyToken = Callable[[str, int], Holder | BadToken]
"""A token and the time."""


class OAuthBearer:
    def __init__(self, verify: VerifyToken) -> None:
        self._verify = verify
        self._refusal: str | None = None
        self._over = False

    def step(self, token: bytes, now_ms: int) -> Verdict:
        if self._over:
            return Refused(_INVALID_TOKEN, "a token after the last one")
        if self._refusal is not None:
            self._over = True
            return Refused(_INVALID_TOKEN, self._refusal)
        verdict = self._first(token, now_ms)
        self._over = not isinstance(verdict, Challenge)
        return verdict

    def _first(self, message: bytes, now_ms: int) -> Verdict:
        match = _MESSAGE.fullmatch(message.decode("ascii", errors="replace"))
        if match is None:
            return Refused("Invalid OAUTHBEARER client first message", "the first message is malformed")
        pairs = [pair.partition("=")[::2] for pair in match["pairs"].split("\x01")[:-1]]
        bearers = [value for key, value in pairs if key == "auth"]
        bearer = _BEARER.fullmatch(bearers[0]) if len(bearers) == 1 else None
        if bearer is None:
            return Refused(
                "Invalid OAUTHBEARER client first message: 'auth' with a bearer token is missing", "no token"
            )
        found = self._verify(bearer["token"], now_ms)
        if isinstance(found, BadToken):
            self._refusal = found.why
            return Challenge(_INVALID_TOKEN.encode())
        wanted = match["authorization_id"]
        if wanted is not None and wanted.replace("=2C", ",").replace("=3D", "=") != found.user:
            text = "Authentication failed: Client requested an authorization id that is different from the token's"
            return Refused(text, f"{found.user!r} wants to act for another")
        return Accepted(b"", found.user, found.expires_ms)
