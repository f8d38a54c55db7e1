"""Settings of one listener, or of one SASL mechanism of one listener.

`listener.name.{listener}.{mechanism}.KEY` wins over `listener.name.{listener}.KEY`, and that over `KEY`; listener and
mechanism are written in lower case. Which settings may be given so their declarations say (`per=`). `settings_for`
gives all settings as one listener sees them.
"""

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

from ottla.config.broker import BROKER_SETTINGS, BrokerSettings
from ottla.config.refused import refusal
from ottla.config.setting import ConfigError, Setting, Value
from ottla.config.spellings import unknown_setting
from ottla.config.without_effect import without_effect

PREFIX = "listener.name."
MECHANISMS = ("gssapi", "plain", "scram-sha-256", "scram-sha-512", "oauthbearer")


class ListenerSetting(NamedTuple):
    """What a name with the prefix is about."""

    listener: str
    mechanism: str | None
    declared: Setting
    """As declared for all listeners."""


def is_per_listener(name: str) -> bool:
    return name.startswith(PREFIX)


def read_name(name: str) -> ListenerSetting:
    """Take a name with the prefix apart; ConfigError says why it is none that is served."""
    words = name.removeprefix(PREFIX).split(".")
    for start in range(1, len(words)):  # a listener's name may have dots: the longest key that is a setting counts
        declared = BROKER_SETTINGS.get(".".join(words[start:]))
        if declared is not None:
            break
    else:
        raise ConfigError([_unserved(name, words)])
    owner, mechanism = words[:start], None
    if len(owner) > 1 and owner[-1].lower() in MECHANISMS:
        mechanism = owner.pop()
    listener = ".".join(owner)
    if listener != listener.lower() or (mechanism or "") != (mechanism or "").lower():
        raise ConfigError([f"{name}: listeners and mechanisms are written in lower case here, {name.lower()}"])
    if declared.per == "broker":
        raise ConfigError([f"{name}: {declared.name} is the broker's and cannot differ between listeners"])
    if mechanism is not None and declared.per != "mechanism":
        raise ConfigError([f"{name}: {declared.name} cannot differ between mechanisms, take .{mechanism} out"])
    return ListenerSetting(listener, mechanism, declared)


def declared_as(name: str) -> Setting:
    """What is declared under this name, with or without the prefix; KeyError for neither."""
    if not is_per_listener(name):
        return BROKER_SETTINGS[name]
    return dataclasses.replace(read_name(name).declared, name=name)


def parse(name: str, text: str) -> Value:
    """The value of a setting with the prefix; ConfigError says what is wrong with it, under its whole name."""
    return declared_as(name).parse(text)


def settings_for(settings: BrokerSettings, listener: str, mechanism: str | None = None) -> BrokerSettings:
    """All settings as this listener has them, or this mechanism of it. Its name is taken in any case."""
    values: dict[str, Value] = {}
    for its_mechanism in (None, mechanism.lower() if mechanism else None):
        for name, value in settings.per_listener.items():
            found = read_name(name)
            if found.listener == listener.lower() and found.mechanism == its_mechanism:
                values[found.declared.attribute] = value
    return dataclasses.replace(settings, **values) if values else settings  # type: ignore[arg-type]


def own_value(settings: BrokerSettings, listener: str, key: str, mechanism: str | None = None) -> Value:
    """What was given for this listener alone; None if nothing was, whatever holds for all listeners."""
    middle = f"{listener}.{mechanism}" if mechanism else listener
    return settings.per_listener.get(f"{PREFIX}{middle.lower()}.{key}")


def names_given(given: Mapping[str, Value], listener: str) -> frozenset[str]:
    """The keys that were given for this listener, without prefix and mechanism."""
    found = (read_name(name) for name in given)
    return frozenset(one.declared.name for one in found if one.listener == listener.lower())


def per_listener_problems(settings: BrokerSettings, listeners: frozenset[str]) -> list[str]:
    """Names of listeners that there are not. Those of Kafka's controllers are not opened and may have settings."""
    known = {name.lower() for name in (*listeners, *settings.controller_listener_names)}
    return [
        f"{name}: there is no listener {read_name(name).listener}; there are {', '.join(sorted(known))}"
        for name in settings.per_listener
        if read_name(name).listener not in known
    ]


def _unserved(name: str, words: list[str]) -> str:
    for start in range(1, len(words)):
        key = ".".join(words[start:])
        idle = without_effect(key)
        if idle is not None:
            return f"{name}: it has no effect here: {idle.reason}"
        try:
            reason = refusal(key, "")
        except KeyError:
            continue
        return f"{name}: {reason or 'it is not served for one listener'}"
    return unknown_setting(name)
