"""RenewDelegationToken, key 39, versions 1 and 2.

Lets a token live longer, up to its greatest age. For its owner and those who were named as renewers.
"""

from ottla.broker.handlers.common.delegation import requester, shared_key
from ottla.broker.handlers.context import Broker, Call
from ottla.broker.security.delegation_tokens import check_may_touch, renewed, with_secret
from ottla.cluster.token_documents import DelegationToken
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse


async def handle(broker: Broker, call: Call, request: RenewDelegationTokenRequest) -> RenewDelegationTokenResponse:
    asks, key = requester(call), shared_key(broker)
    known = with_secret(broker.metadata.image, key, bytes(request.hmac))
    check_may_touch(known, asks)
    now = broker.clock.now_ms()

    def alter(token: DelegationToken | None) -> DelegationToken:
        if token is None:
            raise ApiError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "the token has just been deleted")
        return renewed(token, request.renew_period_ms, broker.settings, now)

    made = await broker.controller.alter_token(known.token_id, alter)
    assert made is not None
    return RenewDelegationTokenResponse(expiry_timestamp_ms=made.expiry_timestamp)
