"""What is allowed with settings: pure decisions."""

import uuid
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.controller.config_decisions import (
    Alteration,
    ConfigChange,
    Operation,
    ResourceType,
    altered,
    plan_config_changes,
)
from ottla.cluster.image import CLUSTER_WIDE, BrokerImage, ClusterImage, PartitionImage, TopicImage
from ottla.config.broker import BrokerSettings
from ottla.config.topic import TOPIC_SETTINGS
from ottla.model.errors import ErrorCode

NODE = 1
TOPIC, BROKER = ResourceType.TOPIC, ResourceType.BROKER


def cluster(configs: Mapping[str, str], broker_configs: Mapping[str, Mapping[str, str]]) -> ClusterImage:
    partition = PartitionImage(NODE, 0, (NODE,), (NODE,))
    image = ClusterImage(brokers={NODE: BrokerImage(NODE, None, ())}, broker_configs=broker_configs)
    return image.with_topics([TopicImage("t", uuid.uuid4(), (partition,), configs)])


def decide(
    change: ConfigChange,
    configs: Mapping[str, str] | None = None,
    broker_configs: Mapping[str, Mapping[str, str]] | None = None,
) -> Mapping[str, str] | ErrorCode:
    image = cluster(configs or {}, broker_configs or {})
    (outcome,) = plan_config_changes([change], image, NODE, BrokerSettings())
    if outcome.refusal is not None:
        assert outcome.refusal.message
        return outcome.refusal.code
    assert outcome.configs is not None
    return outcome.configs


def change(kind: int, name: str, *alterations: tuple[str, int, str | None], replace_all: bool = False) -> ConfigChange:
    return ConfigChange(kind, name, [Alteration(*alteration) for alteration in alterations], replace_all)


def test_set_delete_and_replace() -> None:
    before = {"retention.ms": "1", "segment.ms": "2"}
    wish = change(TOPIC, "t", ("retention.ms", Operation.SET, "9"), ("segment.ms", Operation.DELETE, None))
    assert decide(wish, before) == {"retention.ms": "9"}
    wish = change(TOPIC, "t", ("flush.ms", Operation.SET, "3"), replace_all=True)
    assert decide(wish, before) == {"flush.ms": "3"}


def test_lists_grow_and_shrink_from_their_default() -> None:
    appended = decide(change(TOPIC, "t", ("cleanup.policy", Operation.APPEND, "compact,delete")))
    assert appended == {"cleanup.policy": "delete,compact"}
    assert decide(change(TOPIC, "t", ("cleanup.policy", Operation.SUBTRACT, "delete,other")), appended) == {
        "cleanup.policy": "compact"
    }


def test_lists_of_one_listener_grow_and_shrink_too() -> None:
    name = "listener.name.plaintext.ssl.enabled.protocols"
    assert decide(change(BROKER, "1", (name, Operation.SUBTRACT, "TLSv1.2"))) == {name: "TLSv1.3"}
    assert decide(change(BROKER, "1", ("listener.name.plaintext.ssl.nonsense", Operation.APPEND, "x"))) == (
        ErrorCode.INVALID_CONFIG
    )


def test_broker_settings_for_one_and_for_all() -> None:
    wish = change(BROKER, "", ("message.max.bytes", Operation.SET, "7"))
    assert decide(wish) == {"message.max.bytes": "7"}
    wish = change(BROKER, "1", ("message.max.bytes", Operation.SET, "8"))
    assert decide(wish, broker_configs={CLUSTER_WIDE: {"message.max.bytes": "7"}}) == {"message.max.bytes": "8"}


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        (change(TOPIC, "none", ("retention.ms", 0, "1")), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (change(TOPIC, "", ("retention.ms", 0, "1")), ErrorCode.INVALID_REQUEST),
        (change(TOPIC, "a b", ("retention.ms", 0, "1")), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (change(TOPIC, "t", ("retention.ms", 0, "x")), ErrorCode.INVALID_CONFIG),
        (change(TOPIC, "t", ("nothing", 0, "1")), ErrorCode.INVALID_CONFIG),
        (change(TOPIC, "t", ("retention.ms", 0, None)), ErrorCode.INVALID_REQUEST),
        (change(TOPIC, "t", ("retention.ms", 4, "1")), ErrorCode.INVALID_REQUEST),
        (change(TOPIC, "t", ("retention.ms", 2, "1")), ErrorCode.INVALID_CONFIG),
        (change(TOPIC, "t", ("retention.ms", 0, "1"), ("retention.ms", 1, None)), ErrorCode.INVALID_REQUEST),
        (change(BROKER, "2", ("message.max.bytes", 0, "1")), ErrorCode.INVALID_REQUEST),
        (change(BROKER, "one", ("message.max.bytes", 0, "1")), ErrorCode.INVALID_REQUEST),
        (change(BROKER, "1", ("log.dirs", 0, "x")), ErrorCode.INVALID_REQUEST),
        (change(BROKER, "1", ("num.io.threads", 0, "9")), ErrorCode.INVALID_REQUEST),
        (change(BROKER, "1", ("message.max.bytes", 0, "-1")), ErrorCode.INVALID_REQUEST),
        (change(ResourceType.BROKER_LOGGER, "1", ("x", 0, "INFO")), ErrorCode.INVALID_REQUEST),
        (change(ResourceType.GROUP, "", ("consumer.session.timeout.ms", 0, "50000")), ErrorCode.INVALID_REQUEST),
        (change(ResourceType.GROUP, "g", ("x", 0, "1")), ErrorCode.INVALID_CONFIG),
        (change(ResourceType.GROUP, "g", ("consumer.session.timeout.ms", 0, "x")), ErrorCode.INVALID_CONFIG),
        (change(ResourceType.GROUP, "g", ("consumer.session.timeout.ms", 0, "44999")), ErrorCode.INVALID_CONFIG),
        (change(ResourceType.GROUP, "g", ("consumer.heartbeat.interval.ms", 0, "15001")), ErrorCode.INVALID_CONFIG),
        (change(77, "g"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_is_refused_with_kafkas_code(wish: ConfigChange, code: ErrorCode) -> None:
    assert decide(wish) == code


def test_a_resource_named_twice_is_refused_and_the_others_go_on() -> None:
    twice = change(TOPIC, "t", ("retention.ms", 0, "1"))
    other = change(BROKER, "", ("message.max.bytes", 0, "1"))
    outcomes = plan_config_changes([twice, other, twice], cluster({}, {}), NODE, BrokerSettings())
    assert [outcome.refusal is None for outcome in outcomes] == [False, True, False]


@given(st.lists(st.tuples(st.sampled_from([Operation.APPEND, Operation.SUBTRACT]), st.sampled_from("abc")), max_size=8))
def test_a_list_behaves_like_an_ordered_set(steps: list[tuple[Operation, str]]) -> None:
    configs: dict[str, str] = {"cleanup.policy": ""}
    model: dict[str, None] = {}
    for operation, word in steps:
        wish = change(TOPIC, "t", ("cleanup.policy", operation, word))
        configs = altered(configs, wish, TOPIC_SETTINGS)
        if operation is Operation.APPEND:
            model[word] = None
        else:
            model.pop(word, None)
    assert configs["cleanup.policy"] == ",".join(model)


def test_settings_of_other_brokers_are_decided_here_too() -> None:
    set_it = [Alteration("log.cleaner.backoff.ms", Operation.SET, "7")]
    image = ClusterImage(brokers={1: BrokerImage(1, None, ()), 2: BrokerImage(2, None, ())})
    for name, refused in (("2", False), ("02", False), ("3", True), ("two", True)):
        wish = ConfigChange(ResourceType.BROKER, name, set_it)
        (outcome,) = plan_config_changes([wish], image, 1, BrokerSettings())
        assert (outcome.refusal is not None) is refused
        assert (outcome.configs == {"log.cleaner.backoff.ms": "7"}) is not refused


def test_what_is_left_of_a_broker_that_is_gone_can_be_taken_away() -> None:
    image = ClusterImage(brokers={1: BrokerImage(1, None, ())}, broker_configs={"9": {"message.max.bytes": "8"}})
    wish = ConfigChange(ResourceType.BROKER, "9", [Alteration("message.max.bytes", Operation.DELETE, None)])
    (outcome,) = plan_config_changes([wish], image, 1, BrokerSettings())
    assert outcome.configs == {}
