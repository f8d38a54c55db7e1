"""Settings of a group: its own overrides, over the broker's settings, over the defaults."""

import dataclasses
from collections.abc import Mapping

from ottla.config.broker import BrokerSettings
from ottla.config.setting import ConfigError, Setting, Synonym, Value, setting, settings_of


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """What a group of the consumer protocol may have for itself."""

    consumer_session_timeout_ms: int = setting(
        45_000,
        at_least=1,
        synonyms=(Synonym("group.consumer.session.timeout.ms"),),
        doc="Members that are silent for this long are let go. The broker's group.consumer.min.session.timeout.ms and"
        " group.consumer.max.session.timeout.ms bound it.",
    )
    consumer_heartbeat_interval_ms: int = setting(
        5_000,
        at_least=1,
        synonyms=(Synonym("group.consumer.heartbeat.interval.ms"),),
        doc="How often members are told to speak. The broker's group.consumer.min.heartbeat.interval.ms and"
        " group.consumer.max.heartbeat.interval.ms bound it.",
    )


GROUP_SETTINGS: Mapping[str, Setting] = settings_of(GroupSettings)


def resolve_group(overrides: Mapping[str, str], broker: BrokerSettings) -> GroupSettings:
    """The settings in force for a group with these overrides. ConfigError lists everything that is wrong with them."""
    values: dict[str, Value] = {
        "consumer_session_timeout_ms": broker.group_consumer_session_timeout_ms,
        "consumer_heartbeat_interval_ms": broker.group_consumer_heartbeat_interval_ms,
    }
    problems: list[str] = []
    for name, text in overrides.items():
        declared = GROUP_SETTINGS.get(name)
        if declared is None:
            problems.append(f"{name}: groups have no such setting here, only {', '.join(GROUP_SETTINGS)}")
            continue
        try:
            values[declared.attribute] = declared.parse(text)
        except ConfigError as error:
            problems.extend(error.problems)
    if problems:
        raise ConfigError(problems)
    return GroupSettings(**values)  # type: ignore[arg-type]  # every value was parsed by its own setting


def validate_group_overrides(overrides: Mapping[str, str], broker: BrokerSettings) -> GroupSettings:
    """As `resolve_group`; what is outside of the broker's bounds is refused too."""
    resolved = resolve_group(overrides, broker)
    problems: list[str] = []
    for name, least, value, most in (
        (
            "consumer.session.timeout.ms",
            broker.group_consumer_min_session_timeout_ms,
            resolved.consumer_session_timeout_ms,
            broker.group_consumer_max_session_timeout_ms,
        ),
        (
            "consumer.heartbeat.interval.ms",
            broker.group_consumer_min_heartbeat_interval_ms,
            resolved.consumer_heartbeat_interval_ms,
            broker.group_consumer_max_heartbeat_interval_ms,
        ),
    ):
        if name in overrides and not least <= value <= most:
            problems.append(f"{name}: {value} is not between {least} and {most}, which the broker allows")
    if resolved.consumer_heartbeat_interval_ms >= resolved.consumer_session_timeout_ms:
        problems.append("consumer.heartbeat.interval.ms: it is not less than consumer.session.timeout.ms")
    if problems:
        raise ConfigError(problems)
    return resolved
