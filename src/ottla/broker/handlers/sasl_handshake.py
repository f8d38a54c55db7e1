"""SaslHandshake, key 17, versions 0 and 1.

The client chooses a mechanism; tokens follow, as bare frames after version 0, in SaslAuthenticate after version 1. A
mechanism that is not offered is the end of the connection. Where nobody has to log in, or who has logged in has no
session to renew, it is at the wrong time.
"""

import asyncio

from ottla.broker.handlers.context import Broker, Call
from ottla.broker.security.sasl.login import Login
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

TOKENS_IN_REQUESTS_FROM = 1


async def handle(broker: Broker, call: Call, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    session, now = call.session, asyncio.get_running_loop().time()
    login = session.login
    if not isinstance(login, Login) or not login.may_choose(session, now):
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    offered = list(login.mechanisms)
    if login.choose(session, request.mechanism, now, bare=call.version < TOKENS_IN_REQUESTS_FROM):
        return SaslHandshakeResponse(mechanisms=offered)
    await broker.authenticators.refused(session, f"SASL mechanism {request.mechanism!r} is not enabled")
    call.then_close = True
    return SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=offered)
