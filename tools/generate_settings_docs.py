"""Writes docs/settings.md from the tables of settings; with --check only tells whether it is current."""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ottla.config.broker import BROKER_SETTINGS
from ottla.config.group import GROUP_SETTINGS
from ottla.config.refused import REFUSED
from ottla.config.setting import LONG_MAX, Setting, Value, format_value
from ottla.config.topic import TOPIC_SETTINGS
from ottla.config.without_effect import WITHOUT_EFFECT

TARGET = Path(__file__).parent.parent / "docs" / "settings.md"

INTRODUCTION = """\
# Settings

<!-- Written by tools/generate_settings_docs.py from src/ottla/config; do not edit. -->

Names, types and defaults are those of Apache Kafka 4.3; where a default differs, the table says why. Give settings in a
`server.properties` file or as `--set name=value`, which wins. Two rules hold throughout:

- **A setting works, or the broker says why not.** What only tunes Kafka's own machinery (its threads, its Raft log) may
  stay in the file with any value; the broker says at start that it has no effect. What would be missed (security,
  limits, plug-ins) is refused, all problems of a file at once, unless its value describes what the broker does anyway
  (Kafka's default, as a rule). Both are listed at the end, with the reasons.
- **Unknown names are errors**, with what may have been meant as a hint. Old spellings are read as what they are today:
  `port`, `host.name`, `advertised.port` and `advertised.host.name` as `listeners` and `advertised.listeners`,
  `log.message.timestamp.difference.max.ms` as `log.message.timestamp.before.max.ms` and `.after.max.ms`.

What changes while the broker runs: settings marked *cluster-wide* can be set for one broker or, with an empty broker
name, for all (`kafka-configs --entity-type brokers`), *per-listener* ones for a listener of one broker, with
`listener.name.NAME.` before the name; topic settings can always be changed. Changes are in force when
the request is answered. Of settings that exist in several units (`log.retention.ms`, `.minutes`, `.hours`) the finest
one that is set wins.
"""

TOPICS = """\
## Topic settings

Set them when a topic is created or later (`kafka-configs --entity-type topics`). A topic that does not set one follows
the broker's setting in the fourth column, at once when that changes.

| name | type | default | broker setting | what it does |
|---|---|---|---|---|
"""

GROUPS = """\

## Group settings

A group may have them before it exists.

| name | type | default | broker setting | what it does |
|---|---|---|---|---|
"""

BROKERS = """\

## Broker settings

| name | type | default | changes while running | what it does |
|---|---|---|---|---|
"""

NOT_SERVED = """\

## Kafka's settings that are refused

Each takes the values given here, which change nothing, and is refused with any other.
"""

WITHOUT = """\

## Kafka's settings without effect

Each takes any value. The broker names those that a file has when it starts.
"""


def render() -> str:
    lines = [INTRODUCTION, "\n", TOPICS]
    lines += [_topic_row(declared) for declared in _sorted(TOPIC_SETTINGS.values())]
    lines.append(GROUPS)
    lines += [_topic_row(declared) for declared in _sorted(GROUP_SETTINGS.values())]
    lines.append(BROKERS)
    lines += [_broker_row(declared) for declared in _sorted(BROKER_SETTINGS.values())]
    lines.append(NOT_SERVED)
    refused: dict[str, list[str]] = {}
    for name, refusal in REFUSED.items():
        values = ", ".join(f"`{value}`" for value in refusal.given if value)
        refused.setdefault(refusal.reason, []).append(f"`{name}`" + (f" ({values})" if values else ""))
    lines += _by_reason(refused)
    lines.append(WITHOUT)
    idle: dict[str, list[str]] = {}
    for name, known in WITHOUT_EFFECT.items():
        idle.setdefault(known.reason, []).append(f"`{name}`")
    lines += _by_reason(idle)
    return "".join(lines)


def _by_reason(names: Mapping[str, Sequence[str]]) -> list[str]:
    return [f"\n**{reason[0].upper()}{reason[1:]}.** {', '.join(those)}\n" for reason, those in names.items()]


def _sorted(settings: Iterable[Setting]) -> list[Setting]:
    return sorted(settings, key=lambda declared: declared.name)


def _topic_row(declared: Setting) -> str:
    synonyms = ", ".join(f"`{synonym.name}`" for synonym in declared.synonyms) or "none"
    return _row(declared, synonyms)


def _broker_row(declared: Setting) -> str:
    return _row(declared, "no" if declared.dynamic == "read-only" else declared.dynamic)


def _row(declared: Setting, third: str) -> str:
    said = declared.doc
    if declared.fixed:
        said += f" Only the default is served: {declared.fixed}."
    if declared.differs:
        said += f" (Kafka's default: {_value(declared.kafka_default)}; here {declared.differs}.)"
    said += _bounds(declared)
    kind = declared.type.name.lower()
    return f"| `{declared.name}` | {kind} | {_value(declared.default)} | {third} | {said.replace('|', '/')} |\n"


def _bounds(declared: Setting) -> str:
    if declared.choices:
        return f" One of: {', '.join(declared.choices)}."
    if declared.fixed or (declared.at_least is None and declared.at_most is None):
        return ""
    if declared.at_most is None:
        return f" At least {declared.at_least}."
    return f" From {declared.at_least} to {declared.at_most}."


def _value(value: Value) -> str:
    if value == LONG_MAX:
        return f"`{value}` (no limit)"
    text = format_value(value)
    return "none" if text is None else f"`{text}`" if text else "empty"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the file is not current")
    arguments = parser.parse_args()
    text = render()
    if not arguments.check:
        TARGET.write_text(text, encoding="utf-8")
        return 0
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"{TARGET.name} is not current: run python tools/generate_settings_docs.py\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
