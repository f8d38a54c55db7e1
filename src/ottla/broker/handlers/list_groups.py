"""ListGroups, key 16, versions 0 to 5.

Every group that this broker coordinates, by state (from version 4) and type (from version 5) if asked.
"""

from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


def handle(broker: Broker, call: Call, request: ListGroupsRequest) -> ListGroupsResponse:
    try:
        found = broker.groups.list_groups(request.states_filter, request.types_filter)
    except ApiError as error:
        return ListGroupsResponse(error_code=error.code)
    hidden: frozenset[str] = frozenset()
    if not access.allowed(broker, call, Operation.DESCRIBE, Resource.CLUSTER, probe=True):
        names = (group.group_id for group in found)
        hidden = access.denied(broker, call, Operation.DESCRIBE, Resource.GROUP, names, probe=True)
    return ListGroupsResponse(
        groups=[
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=group.state,
                group_type=group.group_type,
            )
            for group in found
            if group.group_id not in hidden
        ]
    )
