"""DeleteGroups, key 42, versions 0 to 2.

Removes groups without members, and their offsets with them.
"""

from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


async def handle(broker: Broker, call: Call, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    results = []
    for group_id in request.groups_names:
        code = ErrorCode.NONE
        try:
            if not access.allowed(broker, call, Operation.DELETE, Resource.GROUP, group_id):
                raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
            pending = broker.groups.delete_group(group_id)
            if pending is not None:
                await pending
        except ApiError as error:
            code = error.code
        results.append(DeletableGroupResult(group_id=group_id, error_code=code))
    return DeleteGroupsResponse(results=results)
