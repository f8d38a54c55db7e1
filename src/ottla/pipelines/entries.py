"""Entries of sources, steps and sinks: which kind each is, and what its own options say."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from ottla.pipelines.connectors.base import NamesFiles, Sink, Source
from ottla.pipelines.connectors.registry import SINKS, SOURCES
from ottla.pipelines.parts import Reading, SinkPart, SourcePart, StepPart
from ottla.pipelines.reading import read_reading
from ottla.pipelines.registry import Registry, UnknownKind, hint
from ottla.pipelines.spec import Entry, kind_of
from ottla.pipelines.steps.base import Step
from ottla.pipelines.steps.registry import STEPS
from ottla.pipelines.structs import Problem, read_struct
from ottla.spark.formats.registry_format import REGISTRY, key_options

T = TypeVar("T", Source, Sink, Step)

READING_KEYS = ("format", "schema", "format_options", "keep", "key_format", "key_schema", "key_format_options")
STEP_KEYS = ("name", "as", "from")
SINK_KEYS = ("name", "from")

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Entries:
    """Turns entries into parts and collects what is wrong with them. `base_dir`: where relative paths start."""

    def __init__(self, base_dir: Path) -> None:
        self._base_dir = base_dir
        self.problems: list[Problem] = []
        self._sink_names: set[str] = set()

    def source(self, name: str, entry: Any, place: str) -> SourcePart | None:
        found = self._type(entry, SOURCES, "source", place)
        if found is None:
            return None
        kind, part = found
        own, reading = dict(entry), None
        records = part.RAW and str(own.get("format")) not in getattr(part, "COLUMN_FORMATS", frozenset())
        if records:
            taken = {key: own.pop(key) for key in READING_KEYS if key in own}
            _name_topic(taken, own.get("topic"))
            reading = self._reading(taken, place)
        if self._instance(part, own, place, f"source `{kind}`") is None or (records and reading is None):
            return None
        return SourcePart(name=name, kind=kind, type=part, entry=own, reading=reading)

    def step(self, number: int, entry: Any, place: str) -> StepPart | None:
        found = self._type(entry, STEPS, "step", place)
        if found is None:
            return None
        kind, part = found
        own = dict(entry)
        taken = {key: self._text(own.pop(key), f"{place}.{key}") for key in STEP_KEYS if key in own}
        options, where = own, place
        if isinstance(own[kind], Mapping):
            for key in own:
                if key != kind:
                    known = hint(key, [*STEP_KEYS, *self._keys(part)])
                    self.problems.append((f"{place}.{key}", f"stands beside `{kind}` instead of in it{known}"))
            options, where = own[kind], f"{place}.{kind}"
        step = self._instance(part, options, where, f"step `{kind}`")
        if step is None:
            return None
        return StepPart(
            number=number + 1,
            label=taken.get("name") or f"{number + 1} {kind}",
            kind=kind,
            step=step,
            input=taken.get("from"),
            result=taken.get("as"),
            words=frozenset(_words(options)),
        )

    def sink(self, number: int, entry: Any, place: str) -> SinkPart | None:
        found = self._type(entry, SINKS, "sink", place)
        if found is None:
            return None
        kind, part = found
        own = dict(entry)
        taken = {key: self._text(own.pop(key), f"{place}.{key}") for key in SINK_KEYS if key in own}
        if self._instance(part, own, place, f"sink `{kind}`") is None:
            return None
        name = taken.get("name") or f"{kind}-{number + 1}"
        if name in self._sink_names:
            self.problems.append((f"{place}.name", f"there is a sink `{name}` already"))
        self._sink_names.add(name)
        return SinkPart(name=name, kind=kind, type=part, entry=own, input=taken.get("from"))

    def _type(self, entry: Any, registry: Registry[T], what: str, place: str) -> tuple[str, type[T]] | None:
        kinds = registry.kinds()
        if not isinstance(entry, Mapping):
            self.problems.append((place, f"a {what} is a mapping such as {{{kinds[0]}: ...}}"))
            return None
        kind = kind_of(entry, kinds)
        if kind is None:
            self.problems.append((place, _no_kind(entry, kinds, what)))
            return None
        try:
            return kind, registry.get(kind)
        except UnknownKind as error:
            self.problems.append((f"{place}.{kind}", str(error)))
            return None

    def _instance(self, part: type[T], options: Any, place: str, kind: str) -> T | None:
        read, problems = read_struct(options, part.Options, place, kind)
        if read is None:
            self.problems += problems
            return None
        instance: T = part(read)
        wrong = instance.problems()
        if not wrong and isinstance(instance, NamesFiles):
            wrong = instance.file_problems(self._base_dir)
        self.problems += [(place, text) for text in wrong]
        return None if wrong else instance

    def _reading(self, entry: Entry, place: str) -> Reading | None:
        reading, problems = read_reading(entry, place, self._base_dir)
        self.problems += problems
        return reading

    def _text(self, value: Any, place: str) -> str | None:
        if isinstance(value, str) and value:
            return value
        self.problems.append((place, "wants a name"))
        return None

    def _keys(self, part: type[Any]) -> list[str]:
        return sorted(part.Options.__struct_fields__)


def _name_topic(taken: dict[str, Any], topic: Any) -> None:
    """A registry's subjects come from the topic."""
    options, of_key = taken.get("format_options") or {}, taken.get("key_format_options") or {}
    if isinstance(options, Mapping) and isinstance(of_key, Mapping) and "key_schema" in taken:
        taken["key_format_options"] = key_options(taken["key_schema"], of_key, options, topic)
    if taken.get("schema") == REGISTRY and isinstance(topic, str) and isinstance(options, Mapping):
        taken["format_options"] = {"topic": topic, **options}


def _no_kind(entry: Mapping[str, Any], kinds: list[str], what: str) -> str:
    found = [key for key in entry if key in kinds]
    if len(found) > 1:
        return f"is it a {what} `{found[0]}` or `{found[1]}`? Make two of it"
    for key in entry:
        close = hint(str(key), kinds)
        if "did you mean" in close:
            return f"there is no {what} `{key}`{close}"
    return f"no key says what {what} this is; there is: {', '.join(kinds)}"


def _words(value: Any) -> set[str]:
    if isinstance(value, str):
        return set(_WORD.findall(value))
    if isinstance(value, Mapping):
        return {word for item in value.values() for word in _words(item)}
    if isinstance(value, list):
        return {word for item in value for word in _words(item)}
    return set()
