"""CreateAcls, key 30, versions 1 to 3.

Adds rules to the access control lists, each for itself; one that is there already is no mistake. In force here when
answered, on other brokers as soon as they hear of it.
"""

from ottla.broker.handlers.common.access import require_cluster
from ottla.broker.handlers.context import Broker, Call
from ottla.model.acls import (
    ALL_OPERATIONS,
    AclBinding,
    AclEntry,
    PatternType,
    Permission,
    ResourcePattern,
    why_not_valid,
)
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)


async def handle(broker: Broker, call: Call, request: CreateAclsRequest) -> CreateAclsResponse:
    require_cluster(broker, call, Operation.ALTER)
    if broker.authorizer is None:
        raise ApiError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    wanted: list[AclBinding] = []
    results: list[AclCreationResult] = []
    for creation in request.creations:
        try:
            wanted.append(_binding(creation))
            results.append(AclCreationResult(error_message=None))
        except ApiError as error:
            results.append(AclCreationResult(error.code, error.message))
    if wanted:
        await broker.controller.create_acls(wanted)
    return CreateAclsResponse(results=results)


def refuse(call: Call, request: CreateAclsRequest, error: ApiError) -> CreateAclsResponse:
    return CreateAclsResponse(results=[AclCreationResult(error.code, error.message) for _ in request.creations])


def _binding(creation: AclCreation) -> AclBinding:
    try:
        resource = Resource(creation.resource_type)
    except ValueError:
        raise _invalid(f"Invalid resourceType {creation.resource_type}") from None
    if creation.resource_pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise _invalid(f"Invalid patternType {creation.resource_pattern_type}")
    if creation.operation != ALL_OPERATIONS and creation.operation not in set(Operation):
        raise _invalid(f"Invalid operation {creation.operation}")
    try:
        permission = Permission(creation.permission_type)
    except ValueError:
        raise _invalid(f"Invalid permissionType {creation.permission_type}") from None
    binding = AclBinding(
        ResourcePattern(resource, creation.resource_name, PatternType(creation.resource_pattern_type)),
        AclEntry(creation.principal, creation.host, creation.operation, permission),
    )
    problem = why_not_valid(binding)
    if problem is not None:
        raise _invalid(problem)
    return binding


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)
