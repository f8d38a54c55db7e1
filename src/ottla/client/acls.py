"""Access control lists over the protocol: the calls behind `kafka-acls`."""

from collections.abc import Iterable

from ottla.client.cluster import Cluster, raise_for
from ottla.model.acls import AclBinding, AclEntry, AclFilter, PatternType, Permission, ResourcePattern
from ottla.model.rights import Resource
from ottla.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from ottla.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from ottla.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


async def create_acls(cluster: Cluster, wanted: Iterable[AclBinding]) -> None:
    """ApiError for the first that is refused; the others are added all the same."""
    request = CreateAclsRequest(
        [
            AclCreation(
                pattern.resource,
                pattern.name,
                pattern.type,
                entry.principal,
                entry.host,
                entry.operation,
                entry.permission,
            )
            for pattern, entry in wanted
        ]
    )
    response = await cluster.call(request, CreateAclsResponse)
    for result in response.results:
        raise_for(result.error_code, result.error_message)


async def describe_acls(cluster: Cluster, wanted: AclFilter) -> list[AclBinding]:
    response = await cluster.call(DescribeAclsRequest(*wanted), DescribeAclsResponse)
    raise_for(response.error_code, response.error_message)
    return [
        AclBinding(
            ResourcePattern(Resource(found.resource_type), found.resource_name, PatternType(found.pattern_type)),
            AclEntry(rule.principal, rule.host, rule.operation, Permission(rule.permission_type)),
        )
        for found in response.resources
        for rule in found.acls
    ]


async def delete_acls(cluster: Cluster, wanted: Iterable[AclFilter]) -> list[AclBinding]:
    """What was removed."""
    request = DeleteAclsRequest([DeleteAclsFilter(*each) for each in wanted])
    response = await cluster.call(request, DeleteAclsResponse)
    removed: dict[AclBinding, None] = {}
    for result in response.filter_results:
        raise_for(result.error_code, result.error_message)
        for rule in result.matching_acls:
            raise_for(rule.error_code, rule.error_message)
            pattern = ResourcePattern(Resource(rule.resource_type), rule.resource_name, PatternType(rule.pattern_type))
            entry = AclEntry(rule.principal, rule.host, rule.operation, Permission(rule.permission_type))
            removed[AclBinding(pattern, entry)] = None
    return list(removed)
