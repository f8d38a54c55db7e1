"""Whose settings a client may see and change."""

from collections.abc import Awaitable, Callable, Sequence

from ottla.broker.controller.config_decisions import ConfigChange, ConfigOutcome, ResourceType
from ottla.broker.handlers.common import access
from ottla.broker.handlers.common.log_levels import alter_levels
from ottla.broker.handlers.context import Broker, Call
from ottla.model.acls import CLUSTER_NAME
from ottla.model.errors import ApiError
from ottla.model.rights import Operation, Resource

_KINDS = {ResourceType.TOPIC: Resource.TOPIC, ResourceType.GROUP: Resource.GROUP}
"""What has settings of its own; whatever else has some is the cluster's."""


def check_config_access(broker: Broker, call: Call, operation: Operation, resource_type: int, name: str) -> None:
    """ApiError unless the caller may do this to the settings of a resource."""
    if broker.authorizer is None:
        return
    kind = next((kind for known, kind in _KINDS.items() if known == resource_type), Resource.CLUSTER)
    access.require(broker, call, operation, kind, CLUSTER_NAME if kind is Resource.CLUSTER else name)


async def alter_allowed(
    broker: Broker,
    call: Call,
    wanted: Sequence[ConfigChange],
    alter: Callable[[list[ConfigChange]], Awaitable[list[ConfigOutcome]]],
    *,
    validate_only: bool = False,
) -> list[ConfigOutcome]:
    """Make those changes that the caller may make; the outcomes have the others as refused, in the order asked for."""
    refusals: dict[int, ApiError] = {}
    for number, change in enumerate(wanted):
        try:
            check_config_access(broker, call, Operation.ALTER_CONFIGS, change.resource_type, change.resource_name)
        except ApiError as error:
            refusals[number] = error
    levels = {
        number: alter_levels(broker, change, validate_only=validate_only)
        for number, change in enumerate(wanted)
        if change.resource_type == ResourceType.BROKER_LOGGER and number not in refusals
    }
    others = [change for number, change in enumerate(wanted) if number not in refusals and number not in levels]
    done = iter(await alter(others) if others else ())
    return [
        ConfigOutcome(change, None, refusals[number])
        if number in refusals
        else levels[number]
        if number in levels
        else next(done)
        for number, change in enumerate(wanted)
    ]
