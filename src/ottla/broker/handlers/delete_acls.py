"""DeleteAcls, key 31, versions 1 to 3.

Removes the rules of the access control lists that filters ask for, and tells for each filter which they were.
"""

from ottla.broker.handlers.common.access import require_cluster
from ottla.broker.handlers.common.acl_filters import filter_of
from ottla.broker.handlers.context import Broker, Call
from ottla.model.acls import AclBinding, AclFilter
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Operation
from ottla.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


async def handle(broker: Broker, call: Call, request: DeleteAclsRequest) -> DeleteAclsResponse:
    require_cluster(broker, call, Operation.ALTER)
    if broker.authorizer is None:
        raise ApiError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    results = [DeleteAclsFilterResult(error_message=None) for _ in request.filters]
    wanted: list[tuple[DeleteAclsFilterResult, AclFilter]] = []
    for result, asked in zip(results, request.filters, strict=True):
        try:
            wanted.append((result, filter_of(asked)))
        except ApiError as error:
            result.error_code, result.error_message = error.code, error.message
    removed = await broker.controller.delete_acls([each for _, each in wanted])
    for (result, _), bindings in zip(wanted, removed, strict=True):
        result.matching_acls = [_matching(binding) for binding in sorted(bindings)]
    return DeleteAclsResponse(filter_results=results)


def refuse(call: Call, request: DeleteAclsRequest, error: ApiError) -> DeleteAclsResponse:
    return DeleteAclsResponse(
        filter_results=[DeleteAclsFilterResult(error.code, error.message) for _ in request.filters]
    )


def _matching(binding: AclBinding) -> DeleteAclsMatchingAcl:
    pattern, entry = binding
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=pattern.resource,
        resource_name=pattern.name,
        pattern_type=pattern.type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )
