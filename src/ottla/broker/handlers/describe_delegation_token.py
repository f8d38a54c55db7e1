"""DescribeDelegationToken, key 41, versions 1 to 3.

Tells of tokens, with what one logs in with them: those of the client, those that it may renew, and others that it may
describe. The rest is left out.
"""

from ottla.broker.handlers.common import access
from ottla.broker.handlers.common.delegation import requester, shared_key
from ottla.broker.handlers.context import Broker, Call
from ottla.broker.security.delegation_tokens import secret_of
from ottla.cluster.token_documents import DelegationToken
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


def handle(broker: Broker, call: Call, request: DescribeDelegationTokenRequest) -> DescribeDelegationTokenResponse:
    asks, key = requester(call), shared_key(broker)
    owners = request.owners
    wanted = None if owners is None else {f"{each.principal_type}:{each.principal_name}" for each in owners}
    return DescribeDelegationTokenResponse(
        tokens=[
            _described(token, secret_of(key, token.token_id))
            for token in broker.metadata.image.tokens.values()
            if (wanted is None or token.owner in wanted) and _may_see(broker, call, asks, token)
        ]
    )


def _may_see(broker: Broker, call: Call, asks: str, token: DelegationToken) -> bool:
    if asks in (token.owner, token.token_requester, *token.renewers):
        return True
    if broker.authorizer is None:
        return False  # a token is as good as a password: without rules nobody sees another's
    return access.allowed(
        broker, call, Operation.DESCRIBE, Resource.DELEGATION_TOKEN, token.token_id, probe=True
    ) or access.allowed(broker, call, Operation.DESCRIBE_TOKENS, Resource.USER, token.owner, probe=True)


def _described(token: DelegationToken, secret: bytes) -> DescribedDelegationToken:
    return DescribedDelegationToken(
        principal_type=token.owner.partition(":")[0],
        principal_name=token.owner.partition(":")[2],
        token_requester_principal_type=token.token_requester.partition(":")[0],
        token_requester_principal_name=token.token_requester.partition(":")[2],
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiry_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=secret,
        renewers=[
            DescribedDelegationTokenRenewer(
                principal_type=each.partition(":")[0], principal_name=each.partition(":")[2]
            )
            for each in token.renewers
        ],
    )
