"""Delegation tokens (KIP-48, KIP-373): who has logged in gets something that others can log in with, for a while.

A token is an id and a secret made of the id and of a key that all brokers share, so the secret is kept nowhere. Who
logs in does so by SCRAM, with the id as name and the secret as password. Pure: the time and the key come in.
"""

import base64
import hmac
from collections.abc import Iterable

from msgspec.structs import replace

from ottla.cluster.image import ClusterImage
from ottla.cluster.token_documents import DelegationToken
from ottla.config.sasl import SaslSettings
from ottla.model.errors import ApiError, ErrorCode

USER = "User:"


def secret_of(key: str, token_id: str) -> bytes:
    """What a token's holder shows; also called its HMAC."""
    return hmac.digest(key.encode(), token_id.encode(), "sha512")


def password_of(secret: bytes) -> str:
    return base64.b64encode(secret).decode()


def new_token(
    token_id: str,
    owner: str,
    requester: str,
    renewers: Iterable[str],
    max_life_ms: int,
    settings: SaslSettings,
    now: int,
) -> DelegationToken:
    longest = settings.delegation_token_max_lifetime_ms
    ends = now + (longest if max_life_ms <= 0 else min(max_life_ms, longest))
    return DelegationToken(
        owner=owner,
        token_requester=requester,
        renewers=tuple(renewers),
        issue_timestamp=now,
        max_timestamp=ends,
        expiry_timestamp=min(ends, now + settings.delegation_token_expiry_time_ms),
        token_id=token_id,
    )


def check_may_touch(token: DelegationToken, principal: str) -> None:
    if principal not in (token.owner, *token.renewers):
        raise ApiError(
            ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, "the token is another's, who did not name you a renewer"
        )


def renewed(token: DelegationToken, period_ms: int, settings: SaslSettings, now: int) -> DelegationToken:
    _check_alive(token, now)
    period = settings.delegation_token_expiry_time_ms if period_ms < 0 else period_ms
    return replace(token, expiry_timestamp=min(token.max_timestamp, now + period))


def shortened(token: DelegationToken, period_ms: int, now: int) -> DelegationToken | None:
    """None: it is to be deleted."""
    if period_ms < 0:
        return None
    _check_alive(token, now)
    return replace(token, expiry_timestamp=min(token.max_timestamp, now + period_ms))


def _check_alive(token: DelegationToken, now: int) -> None:
    if token.max_timestamp < now or token.expiry_timestamp < now:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_EXPIRED, "the token has expired")


def kept_unless_expired(now: int, token: DelegationToken | None) -> DelegationToken | None:
    """It may have been renewed meanwhile."""
    return None if token is None or token.expiry_timestamp < now else token


def with_secret(image: ClusterImage, key: str, secret: bytes) -> DelegationToken:
    """The token that this is the secret of."""
    for token in image.tokens.values():
        if hmac.compare_digest(secret_of(key, token.token_id), secret):
            return token
    raise ApiError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "there is no such token")
