"""The SQL in a pipeline file: which of its texts are queries, expressions, schemas and types, and where they stand."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ottla.pipelines.parts import PhaseParts
from ottla.pipelines.spark_grammar import EXPRESSION, QUERY, SCHEMA, TYPE
from ottla.pipelines.spec import Entry, Phase
from ottla.pipelines.structs import at


class SqlText(NamedTuple):
    place: str
    kind: str
    text: str


# By the kind of a step: its options that hold SQL, and what each of them (or each value of a mapping) is.
_IN_STEPS: dict[str, dict[str, str]] = {
    "sql": {"sql": QUERY},
    "filter": {"filter": EXPRESSION},
    "expect": {"rule": EXPRESSION},
    "map": {"columns": EXPRESSION},
    "window": {"aggregates": EXPRESSION},
    "cast": {"columns": TYPE},
    "python": {"adds": SCHEMA, "schema": SCHEMA},
    "stateful": {"schema": SCHEMA},
}
_IN_TOPIC_SINKS = {"key": EXPRESSION, "partition": EXPRESSION, "timestamp": EXPRESSION, "headers": EXPRESSION}
_DDL_FORMATS = frozenset({"json", "csv", "parquet", "orc"})
"""Formats whose `schema` is Spark's; that of others is their own."""


def texts_of_source(entry: Entry, place: str) -> Iterator[SqlText]:
    if isinstance(entry.get("schema"), str) and entry.get("format") in _DDL_FORMATS and entry["schema"] != "registry":
        yield SqlText(f"{place}.schema", SCHEMA, entry["schema"])


def texts_of_step(kind: str, entry: Entry, place: str) -> Iterator[SqlText]:
    options, where = options_of(kind, entry, place)
    for option, what in _IN_STEPS.get(kind, {}).items():
        yield from _texts(options.get(option), what, f"{where}.{option}")


def texts_of_sink(kind: str, entry: Entry, place: str) -> Iterator[SqlText]:
    if kind == "topic":
        for option, what in _IN_TOPIC_SINKS.items():
            yield from _texts(entry.get(option), what, f"{place}.{option}")


def options_of(kind: str, entry: Entry, place: str) -> tuple[Mapping[str, Any], str]:
    """A step's options stand beside its kind, or in it."""
    inner = entry.get(kind)
    return (inner, f"{place}.{kind}") if isinstance(inner, Mapping) else (entry, place)


def all_texts(phase: Phase, parts: PhaseParts, place: str) -> Iterator[SqlText]:
    for group, entries in (("sources", phase.sources), ("tables", phase.tables)):
        for name, entry in entries.items():
            yield from texts_of_source(entry, at(place, f"{group}.{name}"))
    for step in parts.steps:
        index = step.number - 1
        yield from texts_of_step(step.kind, phase.steps[index], at(place, f"steps[{index}]"))
    for number, (sink, entry) in enumerate(zip(parts.sinks, phase.sinks, strict=True)):
        yield from texts_of_sink(sink.kind, entry, at(place, f"sinks[{number}]"))


def _texts(value: Any, kind: str, place: str) -> Iterator[SqlText]:
    if isinstance(value, str):
        yield SqlText(place, kind, value)
    elif isinstance(value, Mapping):
        for name, text in value.items():
            yield from _texts(text, kind, f"{place}.{name}")
