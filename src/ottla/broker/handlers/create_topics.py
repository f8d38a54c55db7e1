"""CreateTopics, key 19, versions 2 to 7.

Creates topics, each for itself; what cannot be is answered with the reason. A topic is answered when its partitions
have leaders, or with REQUEST_TIMED_OUT if they have none in time: it exists then all the same. From version 5 the
settings in force are told as well.
"""

from collections.abc import Mapping

from ottla.broker.controller.decisions import NewTopic, TopicOutcome
from ottla.broker.handlers.common import access
from ottla.broker.handlers.common.mutations import charge_for, throttle
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

FIRST_VERSION_THAT_IS_REFUSED = 6
"""When its quota is used up; older ones are done, and wait afterwards."""
NOT_TOLD = -1


async def handle(broker: Broker, call: Call, request: CreateTopicsRequest) -> CreateTopicsResponse:
    refused = _not_creatable(broker, call, [topic.name for topic in request.topics])
    wanted = [_wanted(topic) for topic in request.topics if topic.name not in refused]
    charge = charge_for(broker, call, refused_from=FIRST_VERSION_THAT_IS_REFUSED)
    try:
        outcomes = await broker.controller.create_topics(
            wanted, validate_only=request.validate_only, wait_ms=request.timeout_ms, charge=charge
        )
    except ApiError as error:
        outcomes = [TopicOutcome(name, None, error) for name in dict.fromkeys(new.name for new in wanted)]
    throttle(call, charge)
    refusal = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
    outcomes += [TopicOutcome(name, None, refusal) for name in refused]
    made = [outcome.name for outcome in outcomes if outcome.topic is not None]
    described = _Settings(
        broker, access.denied(broker, call, Operation.DESCRIBE_CONFIGS, Resource.TOPIC, made, probe=True)
    )
    return CreateTopicsResponse(topics=[_result(call, outcome, described) for outcome in outcomes])


def _not_creatable(broker: Broker, call: Call, names: list[str]) -> list[str]:
    if access.allowed(broker, call, Operation.CREATE, Resource.CLUSTER, probe=True):
        return []
    refused = access.denied(broker, call, Operation.CREATE, Resource.TOPIC, names)
    return [name for name in dict.fromkeys(names) if name in refused]


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
    if call.version >= 5 and topic.name not in described.hidden:
        result.configs = described.of(topic.configs)
    elif call.version >= 5:
        result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        result.configs = None
        result.num_partitions = result.replication_factor = NOT_TOLD
    return result


class _Settings:
    """Settings in force for new topics. Of thousands of topics in a request most have the same ones."""

    def __init__(self, broker: Broker, hidden: frozenset[str]) -> None:
        self._broker = broker
        self.hidden = hidden
        """Topics whose settings the client may not see."""
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
