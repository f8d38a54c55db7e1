"""What the four APIs of delegation tokens have in common: who may ask at all, and with which key."""

from ottla.broker.handlers.context import Broker, Call
from ottla.broker.security.sasl.login import Login
from ottla.broker.session import ANONYMOUS
from ottla.model.errors import ApiError, ErrorCode


def requester(call: Call) -> str:
    """Who asks. Nobody is told of tokens who is not known, or has only shown a token."""
    session = call.session
    by_token = isinstance(session.login, Login) and session.login.by_token
    if session.principal == ANONYMOUS or by_token:
        raise ApiError(
            ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
            "delegation tokens are for clients that have logged in, and not with a token",
        )
    return str(session.principal)


def shared_key(broker: Broker) -> str:
    key = broker.settings.delegation_token_secret_key
    if not key:
        raise ApiError(
            ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED,
            "there are no delegation tokens without delegation.token.secret.key",
        )
    return key
