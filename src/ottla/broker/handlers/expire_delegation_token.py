"""ExpireDelegationToken, key 40, versions 1 and 2.

Lets a token end sooner, or with a negative time at once. For its owner and those who were named as renewers.
"""

from ottla.broker.handlers.common.delegation import requester, shared_key
from ottla.broker.handlers.context import Broker, Call
from ottla.broker.security.delegation_tokens import check_may_touch, shortened, with_secret
from ottla.cluster.token_documents import DelegationToken
from ottla.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse


async def handle(broker: Broker, call: Call, request: ExpireDelegationTokenRequest) -> ExpireDelegationTokenResponse:
    asks, key = requester(call), shared_key(broker)
    known = with_secret(broker.metadata.image, key, bytes(request.hmac))
    check_may_touch(known, asks)
    now = broker.clock.now_ms()

    def alter(token: DelegationToken | None) -> DelegationToken | None:
        return None if token is None else shortened(token, request.expiry_time_period_ms, now)

    made = await broker.controller.alter_token(known.token_id, alter)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=now if made is None else made.expiry_timestamp)
