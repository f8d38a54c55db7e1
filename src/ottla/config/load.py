"""From a server.properties file and key=value pairs to BrokerSettings, or to every reason why not."""

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import immutables

from ottla.config.access import access_notes
from ottla.config.broker import BROKER_SETTINGS, BrokerSettings, Note
from ottla.config.group_coordinator import group_problems
from ottla.config.listeners import listener_problems
from ottla.config.log import log_problems
from ottla.config.network import network_problems
from ottla.config.per_listener import is_per_listener, parse
from ottla.config.properties import parse_properties
from ottla.config.quorum import quorum_notes, quorum_problems
from ottla.config.references import resolve
from ottla.config.refused import refusal, same_value
from ottla.config.sasl_listeners import sasl_problems
from ottla.config.setting import ConfigError, Value
from ottla.config.spellings import read_spellings, unknown_setting
from ottla.config.without_effect import without_effect
from ottla.config.zookeeper import zookeeper_problems

_SECRET = re.compile(r"password|passphrase|secret|jaas|\.key$|master\.key")


def load_settings(path: str | None, overrides: Sequence[str] = ()) -> BrokerSettings:
    """Settings of a broker from a file, if any, and `key=value` words that win over it."""
    given: dict[str, str] = {}
    if path is not None:
        try:
            given.update(parse_properties(Path(path).read_text(encoding="utf-8")))
        except OSError as error:
            raise ConfigError([f"{path}: {error.strerror}"]) from None
        except UnicodeDecodeError:
            raise ConfigError([f"{path}: the file is not UTF-8 text"]) from None
    problems: list[str] = []
    for word in overrides:
        name, equals, value = word.partition("=")
        if not equals or not name.strip():
            problems.append(f"{word!r} is not of the form key=value")
        given[name.strip()] = value.strip()
    if problems:
        raise ConfigError(problems)
    return settings_from(resolve(given))


def settings_from(given: Mapping[str, str]) -> BrokerSettings:
    """Settings of a broker from names and texts; ConfigError lists everything that is wrong."""
    today = read_spellings(given)
    values: dict[str, Value] = {}
    per_listener: dict[str, Value] = {}
    problems = list(today.problems)
    for name, text in today.given.items():
        declared = BROKER_SETTINGS.get(name)
        try:
            if declared is not None:
                values[name] = declared.parse(text)
            elif is_per_listener(name):
                per_listener[name] = parse(name, text)
            elif without_effect(name) is None:
                _check_refused(name, text)
        except ConfigError as error:
            problems.extend(error.problems)
    problems += _resolve_node_id(values)
    if not problems:
        arguments = {BROKER_SETTINGS[name].attribute: value for name, value in values.items()}
        explicit = frozenset(today.given) & frozenset(BROKER_SETTINGS)
        settings = BrokerSettings(**arguments, explicit=explicit, per_listener=immutables.Map(per_listener))  # type: ignore[arg-type]
        problems = check_together(settings)
        if not problems:
            notes = [*map(Note, today.notes), *_idle_notes(today.given), *quorum_notes(settings)]
            notes += map(Note, access_notes(settings))
            return dataclasses.replace(settings, notes=(*notes, *_unserved_groups(settings)))
    raise ConfigError(problems)


def check_together(settings: BrokerSettings) -> list[str]:
    """Problems that only show when several settings are seen together."""
    return [problem for check in CHECKS for problem in check(settings)]


def _check_refused(name: str, text: str) -> None:
    try:
        reason = refusal(name, text)
    except KeyError:
        raise ConfigError([unknown_setting(name)]) from None
    if reason is not None:
        shown = "" if _SECRET.search(name) else f"={text}"
        raise ConfigError([f"{name}{shown}: {reason}"])


def _idle_notes(given: Mapping[str, str]) -> Iterator[Note]:
    """One line for all settings that have no effect for the same reason."""
    by_reason: dict[str, list[str]] = {}
    mattering: set[str] = set()
    for name, text in given.items():
        idle = without_effect(name)
        if idle is not None:
            by_reason.setdefault(idle.reason, []).append(name)
            if not same_value(text, idle.default):
                mattering.add(idle.reason)
    for reason, names in by_reason.items():
        yield Note(f"{', '.join(names)}: no effect here, {reason}", reason in mattering)


def _unserved_groups(settings: BrokerSettings) -> Iterator[Note]:
    idle = [name for name in settings.group_coordinator_rebalance_protocols if name in ("share", "streams")]
    if idle:
        text = f"group.coordinator.rebalance.protocols: no effect of {', '.join(idle)}, these groups are not served"
        yield Note(text, matters=idle != ["streams"])


def _resolve_node_id(values: dict[str, Value]) -> list[str]:
    """broker.id is the old name of node.id: either one gives both."""
    node, broker = values.get("node.id"), values.get("broker.id")
    if node is not None and broker is not None and node != broker:
        return [f"broker.id: {broker} is not node.id ({node}); they are one thing, give one of them"]
    one = node if node is not None else broker
    if one is not None:
        values["node.id"] = values["broker.id"] = one
    return []


def _replica_problems(settings: BrokerSettings) -> list[str]:
    if settings.default_replication_factor != 1 and not settings.zookeeper_connect:
        return ["default.replication.factor: a broker on its own can hold one replica of each partition, give 1"]
    return []


CHECKS: tuple[Callable[[BrokerSettings], list[str]], ...] = (
    listener_problems,
    sasl_problems,
    lambda settings: zookeeper_problems(settings, settings.explicit),
    quorum_problems,
    network_problems,
    group_problems,
    _replica_problems,
    log_problems,
)
"""What judges values of several settings together, in the order in which the problems are told."""
