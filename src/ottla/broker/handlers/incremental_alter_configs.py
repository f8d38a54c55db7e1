"""IncrementalAlterConfigs, key 44, versions 0 and 1.

Changes single settings of topics and brokers: set, delete, or add to and take from a list. In force when answered.
"""

from ottla.broker.controller.config_decisions import Alteration, ConfigChange, ConfigOutcome
from ottla.broker.handlers.common.config_access import alter_allowed
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def handle(
    broker: Broker, call: Call, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    wanted = [
        ConfigChange(
            resource.resource_type,
            resource.resource_name,
            [Alteration(config.name, config.config_operation, config.value) for config in resource.configs],
        )
        for resource in request.resources
    ]
    try:
        outcomes = await alter_allowed(
            broker,
            call,
            wanted,
            lambda allowed: broker.controller.alter_configs(allowed, validate_only=request.validate_only),
            validate_only=request.validate_only,
        )
    except ApiError as error:
        outcomes = [ConfigOutcome(change, None, error) for change in wanted]
    return IncrementalAlterConfigsResponse(
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
