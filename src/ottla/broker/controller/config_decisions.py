"""What becomes of a request to change settings of topics, brokers and groups.

Pure: image and settings in, the new texts or refusals out.
"""

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from ottla.cluster.image import CLUSTER_WIDE, ClusterImage
from ottla.config.broker import BROKER_SETTINGS, BrokerSettings
from ottla.config.group import GROUP_SETTINGS, validate_group_overrides
from ottla.config.live import with_dynamic
from ottla.config.per_listener import declared_as, is_per_listener
from ottla.config.setting import ConfigError, Setting, SettingType, format_value
from ottla.config.topic import TOPIC_SETTINGS, validate_topic_overrides
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import check_topic_name
from ottla.model.wire_numbers import ResourceType as ResourceType  # noqa: PLC0414 (known from here)
from ottla.telemetry.subscriptions import MATCH, METRICS, BadSubscription
from ottla.telemetry.subscriptions import parse as parse_subscription

_UNSERVED: Mapping[int, str] = {
    ResourceType.BROKER_LOGGER: "log levels are those of one broker: ask it itself",
}


_LIST = Setting(name="", attribute="", type=SettingType.LIST, default=(), doc="")


class Operation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Alteration(NamedTuple):
    """One step of a change: set a value, take it away, or add to or take from a list."""

    name: str
    operation: int
    value: str | None


class ConfigChange(NamedTuple):
    """The change that someone wants for one resource. With `replace_all` what is not named goes away."""

    resource_type: int
    resource_name: str
    alterations: Sequence[Alteration]
    replace_all: bool = False


class ConfigOutcome(NamedTuple):
    """What was decided about one resource: all its settings as they are to be, or the refusal."""

    change: ConfigChange
    configs: Mapping[str, str] | None
    refusal: ApiError | None


def plan_config_changes(
    wanted: Sequence[ConfigChange], image: ClusterImage, node_id: int, static: BrokerSettings
) -> list[ConfigOutcome]:
    """Decide on changes, in the order asked. `static` is what this broker was started with."""
    times = Counter((change.resource_type, change.resource_name) for change in wanted)
    outcomes: list[ConfigOutcome] = []
    for change in wanted:
        try:
            if times[change.resource_type, change.resource_name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "the request names this resource more than once")
            _check_alterations(change)
            match change.resource_type:
                case ResourceType.TOPIC:
                    configs = _topic_configs(change, image)
                case ResourceType.BROKER:
                    configs = _broker_configs(change, image, node_id, static)
                case ResourceType.GROUP:
                    configs = _group_configs(change, image, static)
                case ResourceType.CLIENT_METRICS:
                    configs = _subscription(change, image)
                case other:
                    raise unserved_resource(other)
            outcomes.append(ConfigOutcome(change, configs, None))
        except ApiError as refusal:
            outcomes.append(ConfigOutcome(change, None, refusal))
    return outcomes


def unserved_resource(resource_type: int) -> ApiError:
    """Why nothing can be said about the settings of such a thing."""
    reason = _UNSERVED.get(resource_type)
    return ApiError(ErrorCode.INVALID_REQUEST, reason or f"there is no resource type {resource_type}")


def broker_key(resource_name: str) -> str:
    """Whose settings a broker resource means: all brokers' (no name) or those of one, its id as text."""
    if not resource_name:
        return CLUSTER_WIDE
    if not resource_name.isdecimal():
        raise ApiError(ErrorCode.INVALID_REQUEST, f"a broker's name is its id, a number, not '{resource_name}'")
    return str(int(resource_name))


def _check_alterations(change: ConfigChange) -> None:
    times = Counter(alteration.name for alteration in change.alterations)
    twice = [name for name, count in times.items() if count > 1]
    if twice:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"settings named more than once: {', '.join(twice)}")
    empty = [a.name for a in change.alterations if a.value is None and a.operation != Operation.DELETE]
    if empty:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"null is not a value: {', '.join(empty)}")
    odd = [a.operation for a in change.alterations if a.operation not in Operation.__members__.values()]
    if odd:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"there is no operation {odd[0]}")


def _topic_configs(change: ConfigChange, image: ClusterImage) -> Mapping[str, str]:
    if not change.resource_name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "settings for all topics at once are the broker's settings")
    check_topic_name(change.resource_name)
    topic = image.topics.get(change.resource_name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic '{change.resource_name}'")
    configs = altered(topic.configs, change, TOPIC_SETTINGS)
    try:
        validate_topic_overrides(configs)
    except ConfigError as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, "; ".join(error.problems)) from None
    return configs


def _broker_configs(
    change: ConfigChange, image: ClusterImage, node_id: int, static: BrokerSettings
) -> Mapping[str, str]:
    """What was given to other brokers when they started is not known here: theirs are checked against our own."""
    key = broker_key(change.resource_name)
    known = image.broker_configs
    if key not in (CLUSTER_WIDE, str(node_id)) and int(key) not in image.brokers and key not in known:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"there is no broker {key}")
    configs = altered(known.get(key, {}), change, {**BROKER_SETTINGS, **_of_listeners(change)})
    if key != CLUSTER_WIDE:
        _check_together(static, known.get(CLUSTER_WIDE, {}), configs)
        return configs
    _check_together(static, configs, known.get(str(node_id), {}))
    for broker, own in known.items():
        if broker != CLUSTER_WIDE:
            _check_together(static, configs, own, f"with what broker {broker} has: ")
    return configs


def _of_listeners(change: ConfigChange) -> dict[str, Setting]:
    """Settings of single listeners that a list is changed of. What is no setting is told of later, with the others."""
    found: dict[str, Setting] = {}
    for name, operation, _ in change.alterations:
        if operation in (Operation.APPEND, Operation.SUBTRACT) and is_per_listener(name):
            with contextlib.suppress(ConfigError):
                found[name] = declared_as(name)
    return found


def _check_together(
    static: BrokerSettings, cluster_wide: Mapping[str, str], own: Mapping[str, str], prefix: str = ""
) -> None:
    try:
        with_dynamic(static, cluster_wide, own)
    except ConfigError as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, prefix + "; ".join(error.problems)) from None


def _group_configs(change: ConfigChange, image: ClusterImage, static: BrokerSettings) -> Mapping[str, str]:
    if not change.resource_name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "settings for all groups at once are the broker's settings")
    configs = altered(image.group_configs.get(change.resource_name, {}), change, GROUP_SETTINGS)
    try:
        validate_group_overrides(configs, static)
    except ConfigError as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, "; ".join(error.problems)) from None
    return configs


def _subscription(change: ConfigChange, image: ClusterImage) -> Mapping[str, str]:
    if not change.resource_name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "a subscription to metrics of clients has a name")
    lists = dict.fromkeys((METRICS, MATCH), _LIST)
    configs = altered(image.client_metrics.get(change.resource_name, {}), change, lists)
    try:
        parse_subscription(configs)
    except BadSubscription as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from None
    return configs


def altered(current: Mapping[str, str], change: ConfigChange, settings: Mapping[str, Setting]) -> dict[str, str]:
    """The texts after a change, not yet validated."""
    configs = {} if change.replace_all else dict(current)
    for name, operation, value in change.alterations:
        if operation == Operation.DELETE or value is None:
            configs.pop(name, None)
        elif operation == Operation.SET:
            configs[name] = value
        else:
            configs[name] = _altered_list(configs.get(name), settings.get(name), name, operation, value)
    return configs


def _altered_list(current: str | None, declared: Setting | None, name: str, operation: int, value: str) -> str:
    if declared is None or declared.type is not SettingType.LIST:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"{name} is not a list, nothing can be added to or taken from it")
    if current is None:
        current = format_value(declared.default) or ""
    words = [word.strip() for word in current.split(",") if word.strip()]
    for word in (part.strip() for part in value.split(",")):
        if operation == Operation.APPEND and word not in words:
            words.append(word)
        elif operation == Operation.SUBTRACT and word in words:
            words.remove(word)
    return ",".join(words)
