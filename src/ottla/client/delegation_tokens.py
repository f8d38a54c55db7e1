"""Delegation tokens: the calls behind the tool."""

from collections.abc import Sequence

from ottla.client.cluster import Cluster, raise_for
from ottla.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from ottla.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from ottla.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from ottla.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

Principal = tuple[str, str]
OWNER_SINCE = 3


async def create_token(
    cluster: Cluster, renewers: Sequence[Principal], max_life_ms: int, owner: Principal | None
) -> CreateDelegationTokenResponse:
    request = CreateDelegationTokenRequest(
        owner_principal_type=owner[0] if owner else None,
        owner_principal_name=owner[1] if owner else None,
        renewers=[CreatableRenewers(principal_type=kind, principal_name=name) for kind, name in renewers],
        max_lifetime_ms=max_life_ms,
    )
    answer = await cluster.call(
        request, CreateDelegationTokenResponse, node=await cluster.controller(), min_version=OWNER_SINCE if owner else 1
    )
    raise_for(answer.error_code)
    return answer


async def renew_token(cluster: Cluster, secret: bytes, period_ms: int) -> int:
    """When it expires now."""
    request = RenewDelegationTokenRequest(hmac=secret, renew_period_ms=period_ms)
    answer = await cluster.call(request, RenewDelegationTokenResponse, node=await cluster.controller())
    raise_for(answer.error_code)
    return answer.expiry_timestamp_ms


async def expire_token(cluster: Cluster, secret: bytes, period_ms: int) -> int:
    """When it expires now."""
    request = ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=period_ms)
    answer = await cluster.call(request, ExpireDelegationTokenResponse, node=await cluster.controller())
    raise_for(answer.error_code)
    return answer.expiry_timestamp_ms


async def describe_tokens(cluster: Cluster, owners: Sequence[Principal]) -> list[DescribedDelegationToken]:
    """Of these owners, or all that may be seen."""
    wanted = [DescribeDelegationTokenOwner(principal_type=kind, principal_name=name) for kind, name in owners]
    answer = await cluster.call(DescribeDelegationTokenRequest(owners=wanted or None), DescribeDelegationTokenResponse)
    raise_for(answer.error_code)
    return answer.tokens
