"""A pipeline that has been checked: every entry has its connector or step, every name means something."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ottla.pipelines.connectors.base import Sink, Source
from ottla.pipelines.connectors.options import secret_fields
from ottla.pipelines.secrets import Secrets
from ottla.pipelines.spec import Entry, Pipeline
from ottla.pipelines.steps.base import Step

P = TypeVar("P")

CLUSTER = "cluster"
"""The key of an entry that says which of the file's clusters it means."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How the records of a source become rows. Only sources of records have one."""

    format: str = "raw"
    schema: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    keep: dict[str, str] = field(default_factory=dict)
    """Columns of the record that the row keeps, by their new names."""
    key: "KeyReading | None" = None
    """None: a key that is kept is text."""

    def filled(self, secrets: Secrets) -> "Reading":
        """With the secrets that a registry asks for."""
        secrets.learn(self.options)
        key = self.key
        if key is not None:
            secrets.learn(key.options)
            key = replace(key, options=secrets.fill_in(key.options))
        return replace(self, options=secrets.fill_in(self.options), key=key)


@dataclass(frozen=True, kw_only=True)
class KeyReading:
    """How the key of a record becomes a column."""

    format: str
    schema: str | None = None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class SourcePart:
    name: str
    kind: str
    type: type[Source]
    entry: Entry
    """What its `Options` are made from; secrets are still references."""
    reading: Reading | None

    @property
    def cluster(self) -> str | None:
        """The named cluster that it reads; None: the pipeline's own, or none at all."""
        return self.entry.get(CLUSTER)

    def open(self, secrets: Secrets) -> Source:
        return _open(self.type, self.entry, secrets)

    def filled(self, secrets: Secrets) -> "SourcePart":
        """To read with: the format has its secrets."""
        return self if self.reading is None else replace(self, reading=self.reading.filled(secrets))


@dataclass(frozen=True, kw_only=True)
class StepPart:
    number: int
    label: str
    kind: str
    step: Step
    input: str | None
    """The frame it starts from, where the file says so."""
    result: str | None
    """The name of what it makes."""
    words: frozenset[str]
    """Every word in its options: the frames that it may look at by name."""


@dataclass(frozen=True, kw_only=True)
class SinkPart:
    name: str
    kind: str
    type: type[Sink]
    entry: Entry
    input: str | None

    @property
    def cluster(self) -> str | None:
        return self.entry.get(CLUSTER)

    def open(self, secrets: Secrets) -> Sink:
        return _open(self.type, self.entry, secrets)


@dataclass(frozen=True, kw_only=True)
class PhaseParts:
    name: str
    sources: dict[str, SourcePart]
    tables: dict[str, SourcePart]
    steps: list[StepPart]
    sinks: list[SinkPart]


@dataclass(frozen=True, kw_only=True)
class CheckedPipeline:
    path: Path
    spec: Pipeline
    phases: list[PhaseParts]

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def base_dir(self) -> Path:
        return self.path.resolve().parent

    def sinks(self) -> Iterator[SinkPart]:
        for phase in self.phases:
            yield from phase.sinks


def _open(part: type[P], entry: Entry, secrets: Secrets) -> P:
    kind: Any = part.Options  # type: ignore[attr-defined]
    secrets.learn(entry, secret_fields(kind))
    for name in ("format_options", "key_format_options"):
        if isinstance(entry.get(name), Mapping):
            secrets.learn(entry[name])
    options: Any = msgspec.convert(secrets.fill_in(entry), kind)
    return part(options)  # type: ignore[call-arg]
