"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources."""

import asyncio

import pytest
from tests.unit.broker.handlers.conftest import Harness

from ottla.broker.controller.config_decisions import Operation, ResourceType
from ottla.config.live import ConfigSource
from ottla.model.errors import ErrorCode
from ottla.protocol.messages import alter_configs, incremental_alter_configs
from ottla.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from ottla.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse


def describe(harness: Harness, kind: int, name: str, *keys: str, version: int = 4) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=list(keys) or None)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=version >= 3)
    (result,) = harness.call(request, DescribeConfigsResponse, version).results
    return result


def only(result: DescribeConfigsResult) -> DescribeConfigsResourceResult:
    assert result.error_code == ErrorCode.NONE
    (config,) = result.configs
    return config


def alter(harness: Harness, kind: int, name: str, setting: str, operation: int, value: str | None) -> int:
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[incremental_alter_configs.AlterableConfig(name=setting, config_operation=operation, value=value)],
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    (result,) = harness.call(request, IncrementalAlterConfigsResponse, 1).responses
    assert (result.error_message is None) == (result.error_code == ErrorCode.NONE)
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result.error_code


@pytest.fixture
def topic(harness: Harness) -> str:
    asyncio.run(harness.broker.controller.ensure_topic("t"))
    return "t"


@pytest.mark.parametrize("version", range(1, 5))
def test_a_topics_settings_with_their_sources(harness: Harness, topic: str, version: int) -> None:
    assert alter(harness, ResourceType.TOPIC, topic, "retention.ms", Operation.SET, "7") == ErrorCode.NONE
    assert harness.partitions.get((topic, 0)).log.config.retention_ms == 7
    config = only(describe(harness, ResourceType.TOPIC, topic, "retention.ms", version=version))
    assert (config.value, config.config_source) == ("7", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert [(synonym.name, synonym.value) for synonym in config.synonyms] == [
        ("retention.ms", "7"),
        ("log.retention.hours", "168"),
    ]
    if version >= 3:
        assert config.config_type == 5
        assert config.documentation
    assert len(describe(harness, ResourceType.TOPIC, topic, version=version).configs) > 30


def test_a_brokers_settings(harness: Harness) -> None:
    result = describe(harness, ResourceType.BROKER, "1")
    assert {"node.id", "log.dirs", "message.max.bytes"} <= {config.name for config in result.configs}
    directory = only(describe(harness, ResourceType.BROKER, "1", "log.dirs"))
    assert (directory.read_only, directory.config_source) == (True, ConfigSource.STATIC_BROKER_CONFIG)
    assert alter(harness, ResourceType.BROKER, "", "message.max.bytes", Operation.SET, "2000") == ErrorCode.NONE
    assert harness.broker.settings.message_max_bytes == 2000
    config = only(describe(harness, ResourceType.BROKER, "1", "message.max.bytes"))
    assert (config.value, config.config_source) == ("2000", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
    assert [c.name for c in describe(harness, ResourceType.BROKER, "").configs] == ["message.max.bytes"]
    assert alter(harness, ResourceType.BROKER, "1", "message.max.bytes", Operation.SET, "3000") == ErrorCode.NONE
    assert harness.broker.settings.message_max_bytes == 3000
    assert alter(harness, ResourceType.BROKER, "1", "message.max.bytes", Operation.DELETE, None) == ErrorCode.NONE
    assert harness.broker.settings.message_max_bytes == 2000


def test_a_brokers_setting_reaches_topics_that_do_not_override_it(harness: Harness, topic: str) -> None:
    assert alter(harness, ResourceType.BROKER, "1", "log.retention.ms", Operation.SET, "99") == ErrorCode.NONE
    assert harness.partitions.get((topic, 0)).log.config.retention_ms == 99
    config = only(describe(harness, ResourceType.TOPIC, topic, "retention.ms"))
    assert (config.value, config.config_source) == ("99", ConfigSource.DYNAMIC_BROKER_CONFIG)


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (ResourceType.TOPIC, "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ResourceType.TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (ResourceType.BROKER, "2", ErrorCode.INVALID_REQUEST),
        (ResourceType.BROKER, "x", ErrorCode.INVALID_REQUEST),
        (ResourceType.BROKER_LOGGER, "2", ErrorCode.INVALID_REQUEST),
        (ResourceType.CLIENT_METRICS, "", ErrorCode.INVALID_REQUEST),
        (ResourceType.GROUP, "", ErrorCode.INVALID_REQUEST),
        (99, "", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_has_no_settings_here_is_refused(harness: Harness, kind: int, name: str, code: ErrorCode) -> None:
    result = describe(harness, kind, name)
    assert (result.error_code, result.configs) == (code, [])
    assert result.error_message


def test_wrong_changes_are_refused(harness: Harness, topic: str) -> None:
    set_ = Operation.SET
    assert alter(harness, ResourceType.TOPIC, topic, "retention.ms", set_, "x") == ErrorCode.INVALID_CONFIG
    assert alter(harness, ResourceType.TOPIC, topic, "min.insync.replicas", set_, "0") == ErrorCode.INVALID_CONFIG
    assert alter(harness, ResourceType.BROKER, "1", "listeners", set_, "x") == ErrorCode.INVALID_REQUEST
    assert alter(harness, ResourceType.TOPIC, "none", "retention.ms", set_, "1") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert harness.store.image.topics[topic].configs == {}


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("validate_only", [False, True])
def test_the_old_way_replaces_everything(harness: Harness, topic: str, version: int, *, validate_only: bool) -> None:
    alter(harness, ResourceType.TOPIC, topic, "retention.ms", Operation.SET, "7")
    request = AlterConfigsRequest(
        resources=[
            alter_configs.AlterConfigsResource(
                resource_type=ResourceType.TOPIC,
                resource_name=topic,
                configs=[alter_configs.AlterableConfig(name="segment.ms", value="8")],
            )
        ],
        validate_only=validate_only,
    )
    (result,) = harness.call(request, AlterConfigsResponse, version).responses
    assert result.error_code == ErrorCode.NONE
    expected = {"retention.ms": "7"} if validate_only else {"segment.ms": "8"}
    assert harness.store.image.topics[topic].configs == expected


def test_resources_are_listed(harness: Harness, topic: str) -> None:
    everything = harness.call(ListConfigResourcesRequest(), ListConfigResourcesResponse, 1)
    assert {(r.resource_name, r.resource_type) for r in everything.config_resources} == {
        (topic, ResourceType.TOPIC),
        ("1", ResourceType.BROKER),
        ("1", ResourceType.BROKER_LOGGER),
    }
    topics = harness.call(ListConfigResourcesRequest(resource_types=[2]), ListConfigResourcesResponse, 1)
    assert [r.resource_name for r in topics.config_resources] == [topic]
    assert not harness.call(ListConfigResourcesRequest(), ListConfigResourcesResponse, 0).config_resources
    unknown = harness.call(ListConfigResourcesRequest(resource_types=[99]), ListConfigResourcesResponse, 1)
    assert unknown.error_code == ErrorCode.UNSUPPORTED_VERSION
