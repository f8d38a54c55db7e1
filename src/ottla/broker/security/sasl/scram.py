"""SCRAM (RFC 5802) without channel binding, as Kafka speaks it: ASCII names, no SASLprep.

    client: n,[a=id],n=user,r=nonce[,tokenauth=true]     server: r=nonce and more,s=salt,i=iterations
    client: c=biws,r=nonce and more,p=proof              server: v=signature

A proof is good for one server nonce, which is new in every login: a recorded login cannot be played back.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable
from typing import NamedTuple

from ottla.broker.security.sasl.scram_credentials import (
    IterationCounts,
    ScramCredential,
    ScramMechanism,
    decoy_credential,
    read_credential,
    write_credential,
)
from ottla.broker.security.sasl.verdicts import Accepted, Challenge, Refused, Verdict, invalid_credentials

_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
_EXTENSION = r"[A-Za-z]+=[\x01-\x2b\x2d-\x7f]*"
_FIRST = re.compile(
    rf"(?P<gs2>n,(?:a=(?P<authorization_id>{_NAME}))?,)"
    rf"(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>{_PRINTABLE})(?P<extensions>(?:,{_EXTENSION})*))"
)
_FINAL = re.compile(
    rf"(?P<without_proof>c=(?P<binding>[A-Za-z0-9+/=]+),r=(?P<nonce>{_PRINTABLE})(?:,{_EXTENSION})*?)"
    r",p=(?P<proof>[A-Za-z0-9+/=]+)"
)


_TOKENS = IterationCounts()
"""Delegation tokens all have the fewest."""


class Known(NamedTuple):
    """What there is under the name that a client gave: a user's credential, or a delegation token's."""

    credential: ScramCredential
    user: str
    expires_ms: int | None = None


Find = Callable[[str, bool], Known | None]
"""By name, and whether that is the id of a delegation token."""


class _Begun(NamedTuple):
    """What the second token is checked against."""

    known: Known | None
    credential: ScramCredential
    gs2: str
    first_messages: str
    nonce: str
    by_token: bool


class Scram:
    def __init__(
        self,
        mechanism: ScramMechanism,
        find: Find,
        nonce: str,
        decoy: bytes,
        counts: IterationCounts = IterationCounts(),  # noqa: B008 (does not change)
    ) -> None:
        """`nonce` is the server's part, never used before. `decoy` is a secret that stands in for unknown users',
        and `counts` are the iterations that they may have."""
        self._mechanism = mechanism
        self._find = find
        self._nonce = nonce
        self._decoy = decoy
        self._counts = counts
        self._begun: _Begun | None = None
        self._over = False

    def step(self, token: bytes, now_ms: int) -> Verdict:
        if self._over:
            return self._refuse("a token after the last one")
        verdict = self._judge(token, now_ms)
        self._over = not isinstance(verdict, Challenge)
        return verdict

    def _judge(self, token: bytes, now_ms: int) -> Verdict:
        try:
            text = token.decode("ascii")
        except UnicodeDecodeError:
            return self._refuse("the token is not ASCII")
        return self._first(text) if self._begun is None else self._final(text, self._begun, now_ms)

    def _first(self, text: str) -> Verdict:
        match = _FIRST.fullmatch(text)
        if match is None:
            return self._refuse("the first message is malformed")
        name = _unescaped(match["name"])
        wanted = match["authorization_id"]
        if wanted is not None and _unescaped(wanted) != name:
            return self._refuse("the client wants to act for another")
        by_token = "tokenauth=true" in match["extensions"].lower().split(",")
        known = self._find(name, by_token)
        # Made for everybody, and read as a user's is: how long it takes does not tell who exists.
        counts = _TOKENS if by_token else self._counts
        decoy = decoy_credential(self._mechanism, self._decoy, name, counts)
        credential = known.credential if known is not None else read_credential(write_credential(decoy))
        nonce = match["nonce"] + self._nonce
        salt = base64.b64encode(credential.salt).decode()
        answer = f"r={nonce},s={salt},i={credential.iterations}"
        self._begun = _Begun(known, credential, match["gs2"], f"{match['bare']},{answer}", nonce, by_token)
        return Challenge(answer.encode())

    def _final(self, text: str, begun: _Begun, now_ms: int) -> Verdict:
        match = _FINAL.fullmatch(text)
        if match is None:
            return self._refuse("the final message is malformed")
        binding, proof = _decoded(match["binding"]), _decoded(match["proof"])
        if binding is None or proof is None:
            return self._refuse("the final message is not in base64")
        if binding != begun.gs2.encode() or not hmac.compare_digest(match["nonce"], begun.nonce):
            return self._refuse("the final message belongs to another login")
        message = f"{begun.first_messages},{match['without_proof']}".encode()
        digest, credential = self._mechanism.digest, begun.credential
        signature = hmac.digest(credential.stored_key, message, digest)
        if len(proof) != len(signature):
            return self._refuse("a proof of the wrong length")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        fits = hmac.compare_digest(hashlib.new(digest, client_key).digest(), credential.stored_key)
        answer = base64.b64encode(hmac.digest(credential.server_key, message, digest))
        if begun.known is None or not fits:
            return self._refuse("wrong password, or no such user or token")
        user, expires_ms = begun.known.user, begun.known.expires_ms
        if expires_ms is not None and expires_ms <= now_ms:
            return self._refuse(f"the delegation token of {user!r} has expired")
        return Accepted(b"v=" + answer, user, expires_ms, begun.by_token)

    def _refuse(self, why: str) -> Refused:
        return invalid_credentials(self._mechanism.name, why)


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


def _decoded(text: str) -> bytes | None:
    """None if it is no base64, or not in the one form that anybody would write: bits that mean nothing are zero."""
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error:
        return None
    return data if base64.b64encode(data).decode() == text else None
