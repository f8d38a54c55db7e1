"""Names of the things that have settings."""

from ottla.client.admin import ResourceType
from ottla.client.cluster import Cluster, raise_for
from ottla.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse


async def list_config_resources(cluster: Cluster, kind: ResourceType) -> list[str]:
    """All of one kind. A broker that knows the first version of the request alone tells of client metrics only."""
    names: list[str] = []

    async def attempt() -> None:
        wanted = [] if kind is ResourceType.CLIENT_METRICS else [int(kind)]
        response = await cluster.call(ListConfigResourcesRequest(resource_types=wanted), ListConfigResourcesResponse)
        raise_for(response.error_code)
        names[:] = sorted(each.resource_name for each in response.config_resources if each.resource_type == kind)

    await cluster.retrying(attempt)
    return names
