"""ListConfigResources, key 74, versions 0 and 1.

Names of the things that have settings: topics, brokers and their log levels, groups that were given some, and
subscriptions to metrics of clients. Version 0 knew the last ones only.
"""

from ottla.broker.controller.config_decisions import ResourceType
from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ErrorCode
from ottla.model.rights import Operation
from ottla.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

_KNOWN = frozenset(ResourceType) - {ResourceType.UNKNOWN}


def handle(broker: Broker, call: Call, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    access.require_cluster(broker, call, Operation.DESCRIBE_CONFIGS)
    wanted = frozenset(request.resource_types) or (
        _KNOWN if call.version >= 1 else frozenset({ResourceType.CLIENT_METRICS})
    )
    if not wanted <= _KNOWN:
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    image = broker.metadata.image
    response = ListConfigResourcesResponse()
    if ResourceType.TOPIC in wanted:
        response.config_resources += [
            ConfigResource(resource_name=name, resource_type=ResourceType.TOPIC) for name in image.topics
        ]
    if ResourceType.BROKER in wanted:
        response.config_resources += [
            ConfigResource(resource_name=str(known), resource_type=ResourceType.BROKER) for known in image.brokers
        ]
    if ResourceType.GROUP in wanted:
        response.config_resources += [
            ConfigResource(resource_name=name, resource_type=ResourceType.GROUP) for name in image.group_configs
        ]
    if ResourceType.BROKER_LOGGER in wanted:
        response.config_resources += [
            ConfigResource(resource_name=str(known), resource_type=ResourceType.BROKER_LOGGER)
            for known in image.brokers
        ]
    if ResourceType.CLIENT_METRICS in wanted:
        response.config_resources += [
            ConfigResource(resource_name=name, resource_type=ResourceType.CLIENT_METRICS)
            for name, configs in image.client_metrics.items()
            if configs
        ]
    return response
