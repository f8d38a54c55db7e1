"""DescribeAcls, key 29, versions 1 to 3.

The rules of the access control lists that a filter asks for, together for each pattern of resources.
"""

from ottla.broker.handlers.common.access import require_cluster
from ottla.broker.handlers.common.acl_filters import filter_of
from ottla.broker.handlers.context import Broker, Call
from ottla.broker.security.acls.index import select
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Operation
from ottla.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


def handle(broker: Broker, call: Call, request: DescribeAclsRequest) -> DescribeAclsResponse:
    require_cluster(broker, call, Operation.DESCRIBE)
    if broker.authorizer is None:
        raise ApiError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    found = select(broker.metadata.image.acls, filter_of(request))
    return DescribeAclsResponse(
        error_message=None,
        resources=[
            DescribeAclsResource(
                pattern.resource,
                pattern.name,
                pattern.type,
                [AclDescription(entry.principal, entry.host, entry.operation, entry.permission) for entry in entries],
            )
            for pattern, entries in sorted(found.items())
        ],
    )
