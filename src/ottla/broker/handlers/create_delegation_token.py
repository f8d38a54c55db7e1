"""CreateDelegationToken, key 38, versions 1 to 3.

Makes a token with which others can log in as the client, or (version 3) as another user whose tokens it may create.
"""

import base64
import secrets

from ottla.broker.handlers.common import access
from ottla.broker.handlers.common.delegation import requester, shared_key
from ottla.broker.handlers.context import Broker, Call
from ottla.broker.security.delegation_tokens import new_token, secret_of
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse

ID_BYTES = 16


async def handle(broker: Broker, call: Call, request: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse:
    asks = requester(call)
    key = shared_key(broker)
    owner = asks
    if request.owner_principal_name:
        owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
    if owner != asks:
        access.require(broker, call, Operation.CREATE_TOKENS, Resource.USER, owner)
    principals = [f"{each.principal_type}:{each.principal_name}" for each in request.renewers]
    if any(not principal.startswith("User:") for principal in (owner, *principals)):
        raise ApiError(ErrorCode.INVALID_PRINCIPAL_TYPE, "owner and renewers are of type User")
    token_id = base64.urlsafe_b64encode(secrets.token_bytes(ID_BYTES)).rstrip(b"=").decode()
    made = new_token(token_id, owner, asks, principals, request.max_lifetime_ms, broker.settings, broker.clock.now_ms())
    await broker.controller.alter_token(token_id, lambda _: made)
    return CreateDelegationTokenResponse(
        principal_type=owner.partition(":")[0],
        principal_name=owner.partition(":")[2],
        token_requester_principal_type=asks.partition(":")[0],
        token_requester_principal_name=asks.partition(":")[2],
        issue_timestamp_ms=made.issue_timestamp,
        expiry_timestamp_ms=made.expiry_timestamp,
        max_timestamp_ms=made.max_timestamp,
        token_id=token_id,
        hmac=secret_of(key, token_id),
    )
