"""SCRAM credentials of users: the calls behind the tools that administer them."""

from collections.abc import Sequence

from ottla.client.cluster import Cluster, raise_for
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)

ScramUsers = dict[str, dict[int, int]]
"""By user: iterations by the number of the mechanism."""


async def describe_scram_users(cluster: Cluster, names: Sequence[str] = ()) -> ScramUsers:
    """Those of these names who have credentials, or everybody."""
    request = DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names] if names else None)

    async def attempt() -> ScramUsers:
        response = await cluster.call(request, DescribeUserScramCredentialsResponse)
        raise_for(response.error_code, response.error_message)
        found: ScramUsers = {}
        for result in response.results:
            if result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
                continue
            raise_for(result.error_code, result.error_message)
            found[result.user] = {info.mechanism: info.iterations for info in result.credential_infos}
        return found

    return await cluster.retrying(attempt)


async def alter_scram_users(
    cluster: Cluster,
    upsertions: Sequence[ScramCredentialUpsertion] = (),
    deletions: Sequence[ScramCredentialDeletion] = (),
) -> None:
    """One change for each: brokers since 4.0 take one change of a user in a request."""
    for change in (*deletions, *upsertions):
        is_new = isinstance(change, ScramCredentialUpsertion)
        request = AlterUserScramCredentialsRequest(
            upsertions=[change] if is_new else [],  # type: ignore[list-item]
            deletions=[] if is_new else [change],  # type: ignore[list-item]
        )

        async def attempt(request: AlterUserScramCredentialsRequest = request) -> None:
            node = await cluster.controller()
            response = await cluster.call(request, AlterUserScramCredentialsResponse, node=node)
            for result in response.results:
                raise_for(result.error_code, result.error_message)

        await cluster.retrying(attempt)
