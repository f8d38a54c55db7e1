"""CreateTopics, key 19, versions 2 to 7.

Creates topics, each for itself; what cannot be is answered with the reason. A topic is answered when its partitions
have leaders, or with REQUEST_TIMED_OUT if they have none in time: it exists then all the same. From version 5 the
settings in force are told as well.
"""

from collections.abc import Mapping

from ottla.broker.controller.decisions import NewTopic, TopicOutcome
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError
from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)


async def handle(broker: Broker, call: Call, request: CreateTopicsRequest) -> CreateTopicsResponse:
    wanted = [_wanted(topic) for topic in request.topics]
    try:
        outcomes = await broker.controller.create_topics(
            wanted, validate_only=request.validate_only, wait_ms=request.timeout_ms
        )
    except ApiError as error:
        outcomes = [TopicOutcome(name, None, error) for name in dict.fromkeys(new.name for new in wanted)]
    described = _Settings(broker)
    return CreateTopicsResponse(topics=[_result(call, outcome, described) for outcome in outcomes])


def _wanted(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        [(assignment.partition_index, assignment.broker_ids) for assignment in topic.assignments],
        [(config.name, config.value) for config in topic.configs],
    )


def _result(call: Call, outcome: TopicOutcome, described: "_Settings") -> CreatableTopicResult:
    if outcome.topic is None:
        assert outcome.refusal is not None
        return CreatableTopicResult(
            name=outcome.name, error_code=outcome.refusal.code, error_message=outcome.refusal.message
        )
    topic = outcome.topic
    result = CreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        error_message=None,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
    )
    if call.version >= 5:
        result.configs = described.of(topic.configs)
    return result


class _Settings:
    """Settings in force for new topics. Of thousands of topics in a request most have the same ones."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._known: dict[frozenset[tuple[str, str]], list[CreatableTopicConfigs]] = {}

    def of(self, overrides: Mapping[str, str]) -> list[CreatableTopicConfigs]:
        key = frozenset(overrides.items())
        if key not in self._known:
            self._known[key] = [
                CreatableTopicConfigs(
                    name=entry.name,
                    value=entry.value,
                    read_only=entry.read_only,
                    config_source=entry.source,
                    is_sensitive=entry.sensitive,
                )
                for entry in sorted(self._broker.config.describe_topic(overrides))
            ]
        return self._known[key]
