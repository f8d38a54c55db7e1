"""DescribeConfigs, key 32, versions 1 to 4.

Settings of topics and of this broker with where each value comes from. A broker without a name stands for what was
changed for all brokers at once. Groups may have settings before they exist; so may subscriptions to metrics of clients.
Log levels are those of this process.
"""

from collections.abc import Mapping, Sequence

from ottla.broker.controller.config_decisions import ResourceType, broker_key, unserved_resource
from ottla.broker.handlers.common.config_access import check_config_access
from ottla.broker.handlers.common.log_levels import check_logger_owner, described_levels
from ottla.broker.handlers.context import Broker, Call
from ottla.cluster.image import CLUSTER_WIDE
from ottla.config.live import ConfigEntry, ConfigSource, ConfigSynonym
from ottla.config.setting import SettingType
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import check_topic_name
from ottla.model.rights import Operation
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from ottla.telemetry.subscriptions import INTERVAL, MATCH, METRICS


def handle(broker: Broker, call: Call, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    # Topics share the entries that they do not override, and each entry is translated once. The entries are kept with
    # their translations, so an id stays theirs for as long as the request is handled.
    translated: dict[int, tuple[ConfigEntry, DescribeConfigsResourceResult]] = {}
    response = DescribeConfigsResponse()
    for resource in request.resources:
        result = DescribeConfigsResult(
            error_message=None, resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        response.results.append(result)
        try:
            check_config_access(
                broker, call, Operation.DESCRIBE_CONFIGS, resource.resource_type, resource.resource_name
            )
            entries = _entries(broker, resource)
        except ApiError as error:
            result.error_code, result.error_message = error.code, error.message
            continue
        wanted = frozenset(resource.configuration_keys or ())
        for entry in entries:
            if not wanted or entry.name in wanted:
                known = translated.get(id(entry))
                if known is None:
                    known = translated[id(entry)] = (entry, _translated(entry, request))
                result.configs.append(known[1])
    return response


def _entries(broker: Broker, resource: DescribeConfigsResource) -> Sequence[ConfigEntry]:
    match resource.resource_type:
        case ResourceType.TOPIC:
            check_topic_name(resource.resource_name)
            topic = broker.metadata.image.topics.get(resource.resource_name)
            if topic is None:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic '{resource.resource_name}'")
            return broker.config.describe_topic(topic.configs)
        case ResourceType.BROKER:
            asked = broker_key(resource.resource_name)
            if asked == CLUSTER_WIDE:
                return broker.config.describe_cluster_default()
            if asked != str(broker.node_id):
                # Only that broker knows what it was started with, and clients ask it themselves.
                raise ApiError(ErrorCode.INVALID_REQUEST, f"this is broker {broker.node_id}, ask broker {asked} itself")
            return broker.config.describe_broker()
        case ResourceType.GROUP:
            if not resource.resource_name:
                raise ApiError(ErrorCode.INVALID_REQUEST, "a group has a name")
            return broker.config.describe_group(broker.metadata.image.group_configs.get(resource.resource_name, {}))
        case ResourceType.CLIENT_METRICS:
            if not resource.resource_name:
                raise ApiError(ErrorCode.INVALID_REQUEST, "a subscription to metrics of clients has a name")
            return _subscription(broker.metadata.image.client_metrics.get(resource.resource_name, {}))
        case ResourceType.BROKER_LOGGER:
            check_logger_owner(broker, resource.resource_name)
            return described_levels()
        case other:
            raise unserved_resource(other)


def _subscription(configs: Mapping[str, str]) -> list[ConfigEntry]:
    types = {METRICS: SettingType.LIST, MATCH: SettingType.LIST, INTERVAL: SettingType.INT}
    source = ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG
    return [
        ConfigEntry(name, text, source, types[name], False, False, "", (ConfigSynonym(name, text, source),))
        for name, text in configs.items()
    ]


def _translated(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in (entry.synonyms if request.include_synonyms else ())
        ],
        config_type=entry.type,
        documentation=entry.doc if request.include_documentation else None,
    )
