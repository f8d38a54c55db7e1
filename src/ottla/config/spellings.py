"""Older and shorter spellings of broker settings, read as what they mean today, and hints for others."""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.config.broker import BROKER_SETTINGS
from ottla.config.guessing import nearest
from ottla.config.refused import REFUSED
from ottla.config.replication import LEADER_SELECTOR, RACK_AWARE_SELECTOR
from ottla.config.topic import TOPIC_SETTINGS
from ottla.config.without_effect import WITHOUT_EFFECT
from ottla.model.defaults import DEFAULT_PORT

GENERATED = "-1"
"""As broker.id: Kafka's way to say that it is not set."""

_LISTENER_NAMES = ("host.name", "port")
_ADVERTISED_NAMES = ("advertised.host.name", "advertised.port")
_DIFFERENCE = "log.message.timestamp.difference.max.ms"

# Classes that may be named without their package, and the names that Kafka 3 had for what are words now.
_VALUES: Mapping[str, Mapping[str, str]] = {
    "replica.selector.class": {name.rpartition(".")[2]: name for name in (RACK_AWARE_SELECTOR, LEADER_SELECTOR)},
    "group.consumer.assignors": {
        "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
        "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
    },
}

# Names that books and old files have, and what does it today.
_TODAY: Mapping[str, str] = {
    "log.segment.ms": "log.roll.ms",
    "log.segment.hours": "log.roll.hours",
    "log.retention.size": "log.retention.bytes",
    "log.retention.days": "log.retention.hours",
    "log.retention.seconds": "log.retention.ms",
    "log.file.size": "log.segment.bytes",
    "log.flush.interval": "log.flush.interval.messages",
    "log.default.flush.interval.ms": "log.flush.interval.ms",
    "log.default.flush.scheduler.interval.ms": "log.flush.scheduler.interval.ms",
    "log.cleanup.interval.mins": "log.retention.check.interval.ms",
    "log.retention.check.interval.mins": "log.retention.check.interval.ms",
    "log.index.max.size.bytes": "log.index.size.max.bytes",
    "log.delete.delay.ms": "log.segment.delete.delay.ms",
    "replica.lag.max.messages": "replica.lag.time.max.ms",
    "replica.max.lag.bytes": "replica.lag.time.max.ms",
    "max.message.size": "message.max.bytes",
    "max.socket.request.bytes": "socket.request.max.bytes",
    "socket.send.buffer": "socket.send.buffer.bytes",
    "socket.receive.buffer": "socket.receive.buffer.bytes",
    "brokerid": "broker.id",
    "hostname": "listeners",
    "advertised.listener": "advertised.listeners",
    "listener": "listeners",
    "zk.connect": "zookeeper.connect",
    "zk.connectiontimeout.ms": "zookeeper.connection.timeout.ms",
    "zk.sessiontimeout.ms": "zookeeper.session.timeout.ms",
    "delegation.token.master.key": "delegation.token.secret.key",
    "replication.factor": "default.replication.factor",
}


class Read(NamedTuple):
    """Names and texts by today's names; what to say of those that were not, and what is wrong with them."""

    given: dict[str, str]
    notes: list[str]
    problems: list[str]


def read_spellings(given: Mapping[str, str]) -> Read:
    """Old names and short values replaced by what they stand for."""
    found = Read(dict(given), [], [])
    for name, meanings in _VALUES.items():
        if name in found.given:
            words = [word.strip() for word in found.given[name].split(",")]
            found.given[name] = ",".join(meanings.get(word, word) for word in words)
    _read_addresses(found)
    _read_difference(found)
    if found.given.get("broker.id", "").strip() == GENERATED:
        del found.given["broker.id"]
        if "node.id" not in found.given:
            found.problems.append("broker.id: -1 asks for a generated id; give every broker one of its own here")
    return found


def unknown_setting(name: str) -> str:
    """What to tell someone who used a name that no broker setting has."""
    said = f"{name}: there is no such setting"
    today = _TODAY.get(name)
    if today is not None:
        return f"{said}, use {today}"
    topic = TOPIC_SETTINGS.get(name)
    if topic is not None and topic.synonyms:
        return f"{said} of a broker; it is one of topics, whose default for all is {topic.synonyms[0].name} here"
    if topic is not None:
        return f"{said} of a broker; it is one of topics (kafka-configs --entity-type topics --entity-name TOPIC)"
    close = nearest(name, [*BROKER_SETTINGS, *WITHOUT_EFFECT, *REFUSED])
    return said + (f", did you mean {close}?" if close else "")


def _read_addresses(found: Read) -> None:
    """host.name and port, as Kafka before 3.0 had them: they counted where the listeners were not given."""
    own = _taken(found, _LISTENER_NAMES)
    told = _taken(found, _ADVERTISED_NAMES)
    port = _port(found, "port", own.get("port"))
    if own or told:
        # Nothing said of the host: this machine alone, as without these settings, unless others are told to come.
        anywhere = "" if told.get("advertised.host.name") else "127.0.0.1"
        address = f"PLAINTEXT://{_bracketed(own.get('host.name') or anywhere)}:{port or DEFAULT_PORT}"
        _translate(found, "listeners", address, list(own), implied=not own)
    if told:
        host = told.get("advertised.host.name") or own.get("host.name") or "127.0.0.1"
        there = _port(found, "advertised.port", told.get("advertised.port")) or port or DEFAULT_PORT
        _translate(found, "advertised.listeners", f"PLAINTEXT://{_bracketed(host)}:{there}", list(told))


def _translate(found: Read, today: str, value: str, old: list[str], *, implied: bool = False) -> None:
    if today in found.given:
        if old:
            found.notes.append(f"{', '.join(old)}: no effect, because {today} is given")
        return
    found.given[today] = value
    if not implied:
        found.notes.append(f"{', '.join(old)}: old for {today}={value}")


def _read_difference(found: Read) -> None:
    """One bound for records from the past and from the future, which are two since Kafka 3.6."""
    text = found.given.pop(_DIFFERENCE, None)
    if text is None:
        return
    for today in ("log.message.timestamp.before.max.ms", "log.message.timestamp.after.max.ms"):
        _translate(found, today, text, [_DIFFERENCE])


def _taken(found: Read, names: tuple[str, ...]) -> dict[str, str]:
    return {name: found.given.pop(name).strip() for name in names if name in found.given}


def _port(found: Read, name: str, text: str | None) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or int(text) > 65_535:
        found.problems.append(f"{name}: {text!r} is not the number of a port")
        return None
    return int(text)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
