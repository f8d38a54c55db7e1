"""SaslAuthenticate, key 36, versions 0 to 2.

Carries the tokens of the mechanism that SaslHandshake chose. A login that fails is told after a while, so that guessing
takes its time, and ends the connection.
"""

import asyncio

from ottla.broker.handlers.context import CLOSE_CONNECTION, Broker, Call, CloseConnection, Raw
from ottla.broker.security.sasl.login import Login, TokenAnswer
from ottla.broker.session import Authentication
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

LIFETIMES_FROM = 1
"""From this version on a client is told how long its session lasts, and renews it."""


async def handle(broker: Broker, call: Call, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    session = call.session
    if session.authentication is not Authentication.EXCHANGE:
        return SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="SaslAuthenticate request received after successful authentication",
        )
    answer = await _step(broker, call, bytes(request.auth_bytes))
    return SaslAuthenticateResponse(
        error_code=answer.error,
        error_message=answer.text,
        auth_bytes=answer.reply,
        session_lifetime_ms=answer.lifetime_ms,
    )


async def answer_bare(broker: Broker, call: Call, token: bytes) -> Raw | CloseConnection:
    """For clients that chose their mechanism with version 0: a token for a token, and no words for a failure."""
    answer = await _step(broker, call, token)
    return CLOSE_CONNECTION if answer.error else Raw([answer.reply], len(answer.reply))


async def _step(broker: Broker, call: Call, token: bytes) -> TokenAnswer:
    session, login = call.session, call.session.login
    assert isinstance(login, Login)
    now = asyncio.get_running_loop().time()
    answer = login.token(session, token, broker.clock.now_ms(), now)
    if answer.error:
        await broker.authenticators.refused(session, answer.why)
        call.then_close = True
    elif session.authentication is Authentication.DONE:
        broker.authenticators.accepted(session, now, can_renew=call.version >= LIFETIMES_FROM)
    return answer
