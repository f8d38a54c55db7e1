"""PLAIN (RFC 4616): authorization id, NUL, user, NUL, password, in one token."""

import hashlib
import hmac
from collections.abc import Mapping

from ottla.broker.security.sasl.verdicts import Accepted, Refused, Verdict

NAME = "PLAIN"
_WRONG = "Authentication failed: Invalid username or password"


class Plain:
    def __init__(self, passwords: Mapping[str, str], decoy: bytes) -> None:
        """`decoy` is a secret of the broker: a password for those who have none, and the key for comparing."""
        self._passwords = passwords
        self._decoy = decoy
        self._over = False

    def step(self, token: bytes, now_ms: int) -> Verdict:
        if self._over:
            return Refused(_WRONG, "a token after the last one")
        self._over = True
        try:
            parts = token.decode().split("\0")
        except UnicodeDecodeError:
            return Refused(_WRONG, "the token is not UTF-8")
        if len(parts) != 3:
            return Refused(
                f"Invalid SASL/PLAIN response: expected 3 tokens, got {min(len(parts), 4)}", "a malformed token"
            )
        authorization_id, user, password = parts
        if not user:
            return Refused("Authentication failed: username not specified", "no user")
        if not password:
            return Refused("Authentication failed: password not specified", "no password")
        if authorization_id and authorization_id != user:
            text = "Authentication failed: Client requested an authorization id that is different from username"
            return Refused(text, f"{self._called(user)} wants to act for another")
        # The same work whether the user exists or not, and whatever the lengths are.
        known = self._passwords.get(user)
        expected = self._digest(known.encode() if known is not None else self._decoy)
        if not hmac.compare_digest(expected, self._digest(password.encode())) or known is None:
            return Refused(_WRONG, f"wrong password, or no such user: {self._called(user)}")
        return Accepted(b"", user)

    def _called(self, user: str) -> str:
        """For the log: who is no user may be a password that was typed into the wrong field."""
        return repr(user) if user in self._passwords else "somebody unknown"

    def _digest(self, text: bytes) -> bytes:
        return hmac.digest(self._decoy, text, hashlib.sha256)
