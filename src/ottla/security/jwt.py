"""Signed tokens (JWT): is the signature by a key that we trust, and does the token mean us, now? Pure.

Keys come as a picture of what the issuer publishes. A token names its key; one that names a key which is not in the
picture is refused, and whoever keeps the picture is told, so that a new key works soon.
"""

import binascii
import json
import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from ottla.security.holder import Holder

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
"""Signatures with a private key. A secret that both sides know, and none at all, are never accepted as one."""
TOKEN_CHARACTERS_MAX = 64 * 1024
LIFE_SECONDS_MAX = 366 * 24 * 3600
"""A token that is good for longer is a mistake of its issuer, or somebody's invention."""

Claims = Mapping[str, Any]


class TokenRules(NamedTuple):
    """What a token has to say."""

    issuer: str | None
    audiences: Collection[str]
    skew_seconds: int
    subject_claim: str = "sub"
    scope_claim: str = "scope"


class Untrusted(Exception):
    """Why a token is refused, in words for the log."""


def check_signed(token: str, keys: KeySet, rules: TokenRules, now_ms: int, missing: Callable[[str], None]) -> Holder:
    """`missing` is told the id of a key that the token names and that is not among the keys. Untrusted."""
    return check_claims(signed_claims(token, keys, missing), rules, now_ms)


def signed_claims(token: str, keys: KeySet, missing: Callable[[str], None]) -> Claims:
    """What a token says whose signature fits; whether it means us, now, is still to be checked. Untrusted."""
    if len(token) > TOKEN_CHARACTERS_MAX:
        raise Untrusted(f"a token of {len(token)} characters")
    header = _part(token, 0)
    if header.get("alg") not in ALGORITHMS:
        raise Untrusted(f"the token is signed with alg={header.get('alg')!r}, which is no signature by a key pair")
    key_id = header.get("kid")
    if not isinstance(key_id, str):
        raise Untrusted("the token does not say which key signed it (kid)")
    matching = [key for key in keys.keys if key.kid == key_id and key.key_type != "oct"]
    if len(matching) != 1:
        missing(key_id)
        raise Untrusted(f"the key {key_id!r} that signed the token is not known (yet)")
    try:
        signed = jws.deserialize_compact(token, matching[0], algorithms=list(ALGORITHMS))
    except (JoseError, ValueError, TypeError) as error:
        raise Untrusted(f"the signature does not fit: {error}") from error
    return _object(signed.payload)


def check_unsigned(token: str, rules: TokenRules, now_ms: int) -> Holder:
    """For trying things out: anybody can write such a token. Untrusted."""
    if len(token) > TOKEN_CHARACTERS_MAX:
        raise Untrusted(f"a token of {len(token)} characters")
    parts = token.split(".")
    if _part(token, 0).get("alg") != "none" or parts[2]:
        raise Untrusted("the token is signed, and there are no keys to check it with")
    return check_claims(_part(token, 1), rules, now_ms)


def check_claims(claims: Claims, rules: TokenRules, now_ms: int) -> Holder:
    now = now_ms / 1000
    expires = _time(claims, "exp")
    issued = _time(claims, "iat")
    if expires is None or issued is None:
        raise Untrusted("the token does not say when it was issued and when it expires (iat, exp)")
    if expires + rules.skew_seconds <= now:
        raise Untrusted(f"the token has expired {now - expires:.0f} s ago")
    if issued - rules.skew_seconds > now:
        raise Untrusted("the token was issued in the future")
    if expires < issued or expires - now > LIFE_SECONDS_MAX:
        raise Untrusted("the token's life makes no sense: it ends before it begins, or more than a year from now")
    begins = _time(claims, "nbf")
    if begins is not None and begins - rules.skew_seconds > now:
        raise Untrusted("the token is not valid yet (nbf)")
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise Untrusted(f"the token is from {claims.get('iss')!r}, not from {rules.issuer!r}")
    _check_audience(claims, rules)
    user = claims.get(rules.subject_claim)
    if not isinstance(user, str) or not user.strip():
        raise Untrusted(f"the token does not say whom it is about ({rules.subject_claim})")
    scope = claims.get(rules.scope_claim)
    if scope is not None and not _is_scope(scope):
        raise Untrusted(f"the token's {rules.scope_claim} is neither text nor a list of texts")
    return Holder(user.strip(), int(expires * 1000))


def _check_audience(claims: Claims, rules: TokenRules) -> None:
    given = claims.get("aud")
    audiences = given if isinstance(given, list) else [] if given is None else [given]
    if rules.audiences:
        if not any(isinstance(audience, str) and audience in rules.audiences for audience in audiences):
            raise Untrusted(f"the token is for {given!r}, not for {', '.join(sorted(rules.audiences))}")
    elif audiences:
        raise Untrusted(
            f"the token is for {given!r}, and sasl.oauthbearer.expected.audience does not say that it is us"
        )


def _is_scope(scope: object) -> bool:
    return isinstance(scope, str) or (isinstance(scope, list) and all(isinstance(word, str) for word in scope))


def _time(claims: Claims, name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Untrusted(f"the token's {name} is not a time")
    if abs(value) > 2**53:
        raise Untrusted(f"the token's {name} is out of all bounds")
    return float(value)


def _part(token: str, number: int) -> dict[str, Any]:
    parts = token.split(".")
    if len(parts) != 3:
        raise Untrusted("the token is not a signed JWT: it has not three parts")
    try:
        data = binascii.a2b_base64(parts[number].replace("-", "+").replace("_", "/") + "=" * (-len(parts[number]) % 4))
    except ValueError:
        raise Untrusted("the token is not in base64") from None
    return _object(data)


def _object(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise Untrusted("the token is not JSON") from None
    if not isinstance(found, dict):
        raise Untrusted("the token is no JSON object")
    return found
