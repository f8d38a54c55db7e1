"""From a server.properties file and key=value pairs to BrokerSettings, or to every reason why not."""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path

from ottla.config.broker import BROKER_SETTINGS, BrokerSettings
from ottla.config.listeners import listener_problems
from ottla.config.properties import parse_properties
from ottla.config.refused import REFUSED, refusal
from ottla.config.setting import ConfigError, Value
from ottla.config.zookeeper import zookeeper_problems


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
    return settings_from(given)


def settings_from(given: Mapping[str, str]) -> BrokerSettings:
    """Settings of a broker from names and texts; ConfigError lists everything that is wrong."""
    values: dict[str, Value] = {}
    problems: list[str] = []
    for name, text in given.items():
        declared = BROKER_SETTINGS.get(name)
        try:
            if declared is not None:
                values[name] = declared.parse(text)
            else:
                _check_refused(name, text)
        except ConfigError as error:
            problems.extend(error.problems)
    problems += _settle_node_id(values)
    if not problems:
        arguments = {BROKER_SETTINGS[name].attribute: value for name, value in values.items()}
        settings = BrokerSettings(**arguments, explicit=frozenset(given) & frozenset(BROKER_SETTINGS))  # type: ignore[arg-type]
        problems = check_together(settings)
        if not problems:
            return settings
    raise ConfigError(problems)


def check_together(settings: BrokerSettings) -> list[str]:
    """Problems that only show when several settings are seen together."""
    problems = [*listener_problems(settings), *zookeeper_problems(settings)]
    if 0 <= settings.queued_max_request_bytes < settings.socket_request_max_bytes:
        problems.append(
            f"queued.max.request.bytes: {settings.queued_max_request_bytes} is less than one request may have "
            f"(socket.request.max.bytes={settings.socket_request_max_bytes}); raise it, or -1 for no bound"
        )
    if settings.group_min_session_timeout_ms > settings.group_max_session_timeout_ms:
        problems.append("group.min.session.timeout.ms: it is greater than group.max.session.timeout.ms")
    problems += _consumer_group_problems(settings)
    if settings.default_replication_factor != 1 and not settings.zookeeper_connect:
        problems.append(
            "default.replication.factor: a broker on its own can hold one replica of each partition, give 1"
        )
    voters = settings.controller_quorum_voters
    if len(voters) > 1 or any(voter.partition("@")[0] != str(settings.node_id) for voter in voters):
        problems.append(
            f"controller.quorum.voters: only this node itself (id {settings.node_id}) may be named; "
            "clusters of several nodes are not served yet"
        )
    if len(settings.controller_quorum_bootstrap_servers) > 1:
        problems.append(
            "controller.quorum.bootstrap.servers: only this node itself may be named; "
            "clusters of several nodes are not served yet"
        )
    if len(set(settings.data_dirs)) != len(settings.data_dirs):
        problems.append("log.dirs: the same directory is given twice")
    return problems


def unknown_setting(name: str) -> str:
    """What to tell someone who used a name that no broker setting has."""
    close = difflib.get_close_matches(name, [*BROKER_SETTINGS, *REFUSED], n=1)
    return f"{name}: there is no such setting" + (f", did you mean {close[0]}?" if close else "")


def _check_refused(name: str, text: str) -> None:
    try:
        reason = refusal(name, text)
    except KeyError:
        raise ConfigError([unknown_setting(name)]) from None
    if reason is not None:
        raise ConfigError([f"{name}={text}: {reason}"])


def _settle_node_id(values: dict[str, Value]) -> list[str]:
    """broker.id is the old name of node.id: either one gives both."""
    node, broker = values.get("node.id"), values.get("broker.id")
    if node is not None and broker is not None and node != broker:
        return [f"broker.id: {broker} is not node.id ({node}); they are one thing, give one of them"]
    one = node if node is not None else broker
    if one is not None:
        values["node.id"] = values["broker.id"] = one
    return []


def _consumer_group_problems(settings: BrokerSettings) -> list[str]:
    problems = []
    for name, least, value, most in (
        (
            "group.consumer.session.timeout.ms",
            settings.group_consumer_min_session_timeout_ms,
            settings.group_consumer_session_timeout_ms,
            settings.group_consumer_max_session_timeout_ms,
        ),
        (
            "group.consumer.heartbeat.interval.ms",
            settings.group_consumer_min_heartbeat_interval_ms,
            settings.group_consumer_heartbeat_interval_ms,
            settings.group_consumer_max_heartbeat_interval_ms,
        ),
    ):
        if not least <= value <= most:
            problems.append(f"{name}: {value} is not between its least ({least}) and its greatest ({most}) value")
    if settings.group_consumer_heartbeat_interval_ms >= settings.group_consumer_session_timeout_ms:
        problems.append("group.consumer.heartbeat.interval.ms: it is not less than group.consumer.session.timeout.ms")
    if "classic" not in settings.group_coordinator_rebalance_protocols:
        problems.append("group.coordinator.rebalance.protocols: classic cannot be left out")
    if not settings.group_consumer_assignors:
        problems.append("group.consumer.assignors: at least one is needed")
    return problems
