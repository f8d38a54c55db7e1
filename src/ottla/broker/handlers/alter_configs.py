"""AlterConfigs, key 33, versions 0 to 2.

Replaces all settings of topics and brokers: what is not named goes back to its default. In force when answered.
"""

from ottla.broker.controller.config_decisions import Alteration, ConfigChange, ConfigOutcome, Operation
from ottla.broker.handlers.common.config_access import alter_allowed
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def handle(broker: Broker, call: Call, request: AlterConfigsRequest) -> AlterConfigsResponse:
    wanted = [
        ConfigChange(
            resource.resource_type,
            resource.resource_name,
            [Alteration(config.name, Operation.SET, config.value) for config in resource.configs],
            replace_all=True,
        )
        for resource in request.resources
    ]
    try:
        outcomes = await alter_allowed(
            broker,
            call,
            wanted,
            lambda allowed: broker.controller.alter_configs(allowed, validate_only=request.validate_only),
        )
    except ApiError as error:
        outcomes = [ConfigOutcome(change, None, error) for change in wanted]
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=outcome.refusal.code if outcome.refusal else ErrorCode.NONE,
                error_message=outcome.refusal.message if outcome.refusal else None,
                resource_type=outcome.change.resource_type,
                resource_name=outcome.change.resource_name,
            )
            for outcome in outcomes
        ]
    )
