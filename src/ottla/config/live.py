"""The settings in force now: what the broker was started with, and what was changed since through the protocol."""

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import immutables

from ottla.config.broker import BROKER_SETTINGS, BrokerSettings
from ottla.config.group import GROUP_SETTINGS
from ottla.config.load import check_together
from ottla.config.log import UNIT_FAMILIES
from ottla.config.per_listener import declared_as, is_per_listener, read_name
from ottla.config.refused import refusal
from ottla.config.setting import ConfigError, Setting, SettingType, Value, format_value
from ottla.config.spellings import unknown_setting
from ottla.config.topic import TOPIC_SETTINGS, TopicSettings, resolve_topic
from ottla.config.without_effect import without_effect
from ottla.model.wire_numbers import ConfigSource as ConfigSource  # noqa: PLC0414 (known from here)


class ConfigSynonym(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One setting as DescribeConfigs shows it; the first synonym is the one in force."""

    name: str
    value: str | None
    source: ConfigSource
    type: SettingType
    read_only: bool
    sensitive: bool
    doc: str
    synonyms: tuple[ConfigSynonym, ...]


class LiveConfig:
    """Broker and topic settings that follow the changes made at run time.

    Whoever watches the metadata calls `update_broker` and `update_topic`; everyone else reads.
    """

    def __init__(self, static: BrokerSettings) -> None:
        self.static = static
        self.broker = static
        self.cluster_wide: Mapping[str, str] = {}
        self.per_broker: Mapping[str, str] = {}
        self._overrides: dict[str, Mapping[str, str]] = {}
        self._plain_topic = resolve_topic({}, static)
        self._plain_entries: list[ConfigEntry] | None = None
        self._resolved: dict[str, TopicSettings] = {}

    def update_broker(self, cluster_wide: Mapping[str, str], per_broker: Mapping[str, str]) -> None:
        """Put these dynamic settings in force; every topic follows its new defaults."""
        self.broker = with_dynamic(self.static, cluster_wide, per_broker)
        self.cluster_wide, self.per_broker = cluster_wide, per_broker
        self._plain_topic = resolve_topic({}, self.broker)
        self._plain_entries = None
        self._resolved.clear()

    def update_topic(self, name: str, overrides: Mapping[str, str] | None) -> None:
        """Put a topic's overrides in force; None when the topic is gone."""
        self._resolved.pop(name, None)
        if overrides:
            self._overrides[name] = overrides
        else:
            self._overrides.pop(name, None)

    def topic(self, name: str) -> TopicSettings:
        """The settings of a topic; for a topic without overrides, or not known, the broker's defaults."""
        overrides = self._overrides.get(name)
        if overrides is None:
            return self._plain_topic
        resolved = self._resolved.get(name)
        if resolved is None:
            resolved = self._resolved[name] = resolve_topic(overrides, self.broker)
        return resolved

    def describe_broker(self) -> list[ConfigEntry]:
        """Every broker setting with where it comes from, and those that single listeners have of their own."""
        return [
            *(self._broker_entry(declared) for declared in BROKER_SETTINGS.values()),
            *(self._listener_entry(name) for name in sorted(self.broker.per_listener)),
        ]

    def describe_cluster_default(self) -> list[ConfigEntry]:
        """The settings changed for all brokers at once, which is all that the default broker shows."""
        return [
            _entry(
                declared_as(name),
                (ConfigSynonym(name, text, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),),
                read_only=False,
            )
            for name, text in sorted(self.cluster_wide.items())
        ]

    def describe_topic(self, overrides: Mapping[str, str]) -> list[ConfigEntry]:
        """Every setting of a topic with these overrides. What is not overridden is the same entry for all topics."""
        if self._plain_entries is None:
            self._plain_entries = [self._topic_entry(declared, {}) for declared in TOPIC_SETTINGS.values()]
        return [
            self._topic_entry(TOPIC_SETTINGS[entry.name], overrides) if entry.name in overrides else entry
            for entry in self._plain_entries
        ]

    def describe_group(self, overrides: Mapping[str, str]) -> list[ConfigEntry]:
        """Every setting of a group with these overrides."""
        entries = []
        for declared in GROUP_SETTINGS.values():
            synonyms: tuple[ConfigSynonym, ...] = ()
            if declared.name in overrides:
                own = format_value(declared.parse(overrides[declared.name]))
                synonyms = (ConfigSynonym(declared.name, own, ConfigSource.DYNAMIC_GROUP_CONFIG),)
            synonyms += self._synonyms(tuple(synonym.name for synonym in declared.synonyms))
            entries.append(_entry(declared, synonyms, value=synonyms[0].value, read_only=False))
        return entries

    def _broker_entry(self, declared: Setting) -> ConfigEntry:
        family = UNIT_FAMILIES.get(declared.name, (declared.name,))
        value: Value = getattr(self.broker, declared.attribute)
        synonyms = self._synonyms(family)
        return _entry(declared, synonyms, value=format_value(value), read_only=declared.dynamic == "read-only")

    def _listener_entry(self, name: str) -> ConfigEntry:
        """What holds for one listener; behind it what holds for those that have none of their own."""
        declared = declared_as(name)
        dynamic = self.per_broker.get(name), self.cluster_wide.get(name)
        static = format_value(self.static.per_listener.get(name))
        sources = ConfigSource.DYNAMIC_BROKER_CONFIG, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        levels = [*zip(dynamic, sources, strict=True), (static, ConfigSource.STATIC_BROKER_CONFIG)]
        own = tuple(ConfigSynonym(name, text, source) for text, source in levels if text is not None)
        general = self._synonyms((read_name(name).declared.name,))
        return _entry(declared, own + general, value=own[0].value, read_only=declared.dynamic == "read-only")

    def _topic_entry(self, declared: Setting, overrides: Mapping[str, str]) -> ConfigEntry:
        synonyms: tuple[ConfigSynonym, ...] = ()
        if declared.name in overrides:
            own = format_value(declared.parse(overrides[declared.name]))
            synonyms = (ConfigSynonym(declared.name, own, ConfigSource.DYNAMIC_TOPIC_CONFIG),)
            value = own
        else:
            value = format_value(getattr(self._plain_topic, declared.attribute))
        if declared.synonyms:
            synonyms += self._synonyms(tuple(synonym.name for synonym in declared.synonyms))
        else:
            synonyms += (ConfigSynonym(declared.name, format_value(declared.default), ConfigSource.DEFAULT_CONFIG),)
        return _entry(declared, synonyms, value=value, read_only=False)

    def _synonyms(self, names: tuple[str, ...]) -> tuple[ConfigSynonym, ...]:
        """Values of these settings at every level that has one, the one in force first.

        The finer unit wins whatever its level, so all levels of one name come before the next name.
        """
        found: list[ConfigSynonym] = []
        for name in names:
            declared = BROKER_SETTINGS[name]
            levels = (
                (self.per_broker.get(name), ConfigSource.DYNAMIC_BROKER_CONFIG),
                (self.cluster_wide.get(name), ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
            )
            found += [ConfigSynonym(name, text, source) for text, source in levels if text is not None]
            static: Value = getattr(self.static, declared.attribute)
            if static is not None and (name in self.static.explicit or static != declared.default):
                found.append(ConfigSynonym(name, format_value(static), ConfigSource.STATIC_BROKER_CONFIG))
            if declared.default is not None:
                found.append(ConfigSynonym(name, format_value(declared.default), ConfigSource.DEFAULT_CONFIG))
        return tuple(found)


def _entry(
    declared: Setting, synonyms: tuple[ConfigSynonym, ...], *, read_only: bool, value: str | None = None
) -> ConfigEntry:
    if declared.sensitive:
        synonyms = tuple(ConfigSynonym(s.name, None, s.source) for s in synonyms)
        value = None
    elif value is None and synonyms and synonyms[0].name == declared.name:
        value = synonyms[0].value
    # Without a value of its own a setting is at its default (which is none), whatever its coarser units say.
    source = synonyms[0].source if synonyms and value is not None else ConfigSource.DEFAULT_CONFIG
    return ConfigEntry(
        declared.name, value, source, declared.type, read_only, declared.sensitive, declared.doc, synonyms
    )


def validate_dynamic(overrides: Mapping[str, str], *, for_one_broker: bool) -> dict[str, Value]:
    """Parse dynamic broker settings; ConfigError lists everything that is wrong with them."""
    values: dict[str, Value] = {}
    problems: list[str] = []
    for name, text in overrides.items():
        try:
            declared = declared_as(name) if is_per_listener(name) else BROKER_SETTINGS.get(name)
            if declared is None:
                _refuse_unserved(name, text)
            elif declared.dynamic == "read-only":
                problems.append(f"{name}: it is read when the broker starts and cannot be changed while it runs")
            elif declared.dynamic == "per-listener" and not is_per_listener(name):
                problems.append(
                    f"{name}: while the broker runs it can be changed for one listener, listener.name.NAME.{name}"
                )
            elif declared.dynamic in ("per-broker", "per-listener") and not for_one_broker:
                problems.append(f"{name}: it belongs to one broker and cannot be set for all at once")
            else:
                values[name] = declared.parse(text)
        except ConfigError as error:
            problems.extend(error.problems)
    if problems:
        raise ConfigError(problems)
    return values


def with_dynamic(
    static: BrokerSettings, cluster_wide: Mapping[str, str], per_broker: Mapping[str, str]
) -> BrokerSettings:
    """The settings in force when these are laid over the static ones."""
    values = validate_dynamic(cluster_wide, for_one_broker=False)
    values |= validate_dynamic(per_broker, for_one_broker=True)
    plain = {BROKER_SETTINGS[name].attribute: value for name, value in values.items() if not is_per_listener(name)}
    own = {name: value for name, value in values.items() if is_per_listener(name)}
    per_listener = immutables.Map({**static.per_listener, **own})
    changed = dataclasses.replace(static, **plain, per_listener=per_listener)  # type: ignore[arg-type]
    problems = check_together(changed)
    if problems:
        raise ConfigError(problems)
    return changed


def _refuse_unserved(name: str, text: str) -> None:
    """A change at run time is meant to have an effect, so not even a harmless value is taken."""
    idle = without_effect(name)
    if idle is not None:
        raise ConfigError([f"{name}: it has no effect here: {idle.reason}"])
    try:
        reason = refusal(name, text)
    except KeyError:
        raise ConfigError([unknown_setting(name)]) from None
    raise ConfigError([f"{name}={text}: {reason or 'the broker always behaves like this; it is not a setting here'}"])
