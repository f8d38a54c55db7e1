"""Another version of a pipeline's outputs beside the first: the same file with other places to write to."""

import dataclasses
import re

import msgspec

from ottla.pipelines.errors import FatalFailure
from ottla.pipelines.parts import CheckedPipeline, PhaseParts, SinkPart, SourcePart

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")


def with_version(checked: CheckedPipeline, version: str | None) -> CheckedPipeline:
    """The pipeline with the outputs of `version`; FatalFailure if one of its sinks cannot have two."""
    if version is None:
        return checked
    if not _NAME.fullmatch(version):
        raise FatalFailure(f"`{version}` cannot name a version: use letters, digits, `_` and `-`, at most 32")
    errors = checked.spec.errors
    if errors.dead_letter is not None:
        errors = msgspec.structs.replace(errors, dead_letter=f"{errors.dead_letter}.{version}")
    phases = [_phase(phase, version, _written_topics(checked)) for phase in checked.phases]
    return dataclasses.replace(checked, spec=msgspec.structs.replace(checked.spec, errors=errors), phases=phases)


def _phase(phase: PhaseParts, version: str, written: set[str]) -> PhaseParts:
    """From the beginning; and a phase that reads what another one writes reads that one's new version."""
    sources = {name: _source(part, version, written) for name, part in phase.sources.items()}
    return dataclasses.replace(phase, sources=sources, sinks=[_sink(sink, version) for sink in phase.sinks])


def _source(part: SourcePart, version: str, written: set[str]) -> SourcePart:
    if part.kind != "topic":
        return part
    topic = part.entry["topic"]
    entry = {**part.entry, "start": "earliest"}
    if isinstance(topic, str) and topic in written:
        entry["topic"] = f"{topic}.{version}"
    return dataclasses.replace(part, entry=entry)


def _written_topics(checked: CheckedPipeline) -> set[str]:
    return {sink.entry["topic"] for sink in checked.sinks() if sink.kind == "topic"}


def _sink(sink: SinkPart, version: str) -> SinkPart:
    option, pattern = _place(sink)
    entry = {**sink.entry, option: pattern.format(str(sink.entry[option]).rstrip("/"), version=version)}
    return dataclasses.replace(sink, entry=entry)


def _place(sink: SinkPart) -> tuple[str, str]:
    place: tuple[str, str] | None = getattr(sink.type, "VERSIONED", None)
    if place is None or place[0] not in sink.entry:
        raise FatalFailure(
            f"sink {sink.name} ({sink.kind}) cannot be written in a second version beside the first; "
            "take it out of a copy of the file and reprocess that"
        )
    return place


def places(checked: CheckedPipeline) -> dict[str, str]:
    """Where each sink writes to, and the dead letters."""
    found = {sink.name: str(sink.entry[_place(sink)[0]]) for sink in checked.sinks()}
    if checked.spec.errors.dead_letter is not None:
        found["dead letters"] = checked.spec.errors.dead_letter
    return found
