"""Everything that can be said about a pipeline file without starting Spark: all of its problems at once."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ottla.model.errors import ApiError
from ottla.model.names import check_topic_name
from ottla.pipelines.cluster_lint import client_problems, cluster_problems, mixed_clusters
from ottla.pipelines.durations import seconds_of
from ottla.pipelines.entries import Entries
from ottla.pipelines.errors import InvalidPipeline
from ottla.pipelines.loading import Document, load
from ottla.pipelines.parts import CheckedPipeline, PhaseParts, StepPart
from ottla.pipelines.secrets import misspelt, references
from ottla.pipelines.spark_grammar import Refuses
from ottla.pipelines.spec import Case, Errors, Limits, Phase, Pipeline
from ottla.pipelines.sql_lint import check_sql
from ottla.pipelines.steps.base import INPUT
from ottla.pipelines.structs import Problem, at, read_struct

_CLIENT = re.compile(r"(clusters\.[^.]+\.)?client\.")
_HIDDEN_CLIENT_SETTING = re.compile(r"(clusters\.[^.]+\.)?client\.(sasl|ssl)\.")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_PHASE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_FRAME_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


def check_file(path: Path) -> CheckedPipeline:
    """Load and check; InvalidPipeline lists all that is wrong."""
    return check(load(path))


def check(document: Document) -> CheckedPipeline:
    checked, problems = find_problems(document)
    if problems or checked is None:
        raise _invalid(document, problems)
    return checked


def check_with_sql(path: Path, refuses: Refuses) -> tuple[CheckedPipeline, list[str]]:
    """As `check_file`, and the file's SQL, too. With it comes what could not be checked."""
    document = load(path)
    checked, problems = find_problems(document)
    unchecked: list[Problem] = []
    if checked is not None and _is_whole(checked):
        found = check_sql(checked, refuses)
        problems, unchecked = problems + found.problems, found.unchecked
    if problems or checked is None:
        raise _invalid(document, problems)
    return checked, [_placed(document, each) for each in unchecked]


def _is_whole(checked: CheckedPipeline) -> bool:
    """Every entry has become a part, so that a name that is missing is not one that was left out."""
    return all(
        (len(parts.sources), len(parts.tables), len(parts.steps), len(parts.sinks))
        == (len(phase.sources), len(phase.tables), len(phase.steps), len(phase.sinks))
        for phase, parts in zip(checked.spec.all_phases(), checked.phases, strict=True)
    )


def _invalid(document: Document, problems: list[Problem]) -> InvalidPipeline:
    return InvalidPipeline(str(document.path), [_placed(document, each) for each in problems])


def _placed(document: Document, problem: Problem) -> str:
    place, text = problem
    return f"{document.where(place)}: {text}" if place else text


def find_problems(document: Document) -> tuple[CheckedPipeline | None, list[Problem]]:
    base_dir = document.path.resolve().parent
    spec, problems = _read_spec(document.values)
    if not isinstance(document.values, Mapping):
        return None, problems
    problems += _secrets_in_the_wrong_place(document.values)
    if spec is None:
        return None, problems + _entries_of_a_broken_file(document.values, base_dir)
    problems += _settings(spec)
    phases = []
    for phase, place in zip(spec.all_phases(), _places(spec), strict=True):
        parts, found = _check_phase(phase, place, base_dir)
        problems += found
        phases.append(parts)
    problems += _tests(spec, phases)
    return CheckedPipeline(path=document.path, spec=spec, phases=phases), problems


def _read_spec(values: Any) -> tuple[Pipeline | None, list[Problem]]:
    """The top of the file; its structs one by one, so that a mistake in one does not hide those in the next."""
    if not isinstance(values, Mapping):
        return read_struct(values, Pipeline, "", "a pipeline")
    problems: list[Problem] = []
    shallow = dict(values)
    for key, struct in (("errors", Errors), ("limits", Limits)):
        if key in shallow:
            problems += read_struct(shallow.pop(key), struct, key, f"`{key}`")[1]
    for key, item, name in (("phases", Phase, "a phase"), ("tests", Case, "a test")):
        if isinstance(shallow.get(key), list):
            for number, value in enumerate(shallow.pop(key)):
                problems += read_struct(value, item, f"{key}[{number}]", name)[1]
    _, found = read_struct(shallow, Pipeline, "", "a pipeline")
    if problems or found:
        return None, problems + found
    return read_struct(values, Pipeline, "", "a pipeline")


def _entries_of_a_broken_file(values: Mapping[str, Any], base_dir: Path) -> list[Problem]:
    """Entries are checked even if something else in the file is wrong: people mend all at once."""
    entries = Entries(base_dir)
    for key in ("sources", "tables"):
        if isinstance(values.get(key), Mapping):
            for name, entry in values[key].items():
                entries.source(str(name), entry, f"{key}.{name}")
    for number, entry in enumerate(_list(values.get("steps"))):
        entries.step(number, entry, f"steps[{number}]")
    for number, entry in enumerate(_list(values.get("sinks"))):
        entries.sink(number, entry, f"sinks[{number}]")
    return entries.problems


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _places(spec: Pipeline) -> list[str]:
    return [f"phases[{number}]" for number in range(len(spec.phases))] or [""]


def _settings(spec: Pipeline) -> list[Problem]:
    problems: list[Problem] = []
    if not _NAME.fullmatch(spec.name):
        problems.append(("name", "wants letters, digits, `.`, `_` and `-`: it names folders and groups"))
    for place, text in (
        ("limits.trigger", spec.limits.trigger),
        ("errors.backoff", spec.errors.backoff),
        ("errors.backoff_max", spec.errors.backoff_max),
    ):
        try:
            seconds_of(text)
        except ValueError as error:
            problems.append((place, str(error)))
    if spec.limits.max_records is not None and spec.limits.max_records < 1:
        problems.append(("limits.max_records", "wants at least 1"))
    if spec.errors.retries < 0:
        problems.append(("errors.retries", "wants 0 or more"))
    if spec.errors.dead_letter is not None:
        try:
            check_topic_name(spec.errors.dead_letter)
        except ApiError as error:
            problems.append(("errors.dead_letter", str(error)))
    if spec.phases and (spec.sources or spec.steps or spec.sinks):
        problems.append(("phases", "sources, steps and sinks stand inside the phases, or there are no phases"))
    names = [phase.name for phase in spec.phases]
    for number, name in enumerate(names):
        if not _PHASE_NAME.fullmatch(name):
            problems.append((f"phases[{number}].name", "wants letters, digits, `_` and `-`"))
        elif name in names[:number]:
            problems.append((f"phases[{number}].name", f"there is a phase `{name}` already"))
    return problems + client_problems(spec.client, "client") + cluster_problems(spec)


def _check_phase(phase: Phase, place: str, base_dir: Path) -> tuple[PhaseParts, list[Problem]]:
    entries = Entries(base_dir)
    parts = PhaseParts(
        name=phase.name,
        sources=dict(_named(entries.source(n, e, at(place, f"sources.{n}")) for n, e in phase.sources.items())),
        tables=dict(_named(entries.source(n, e, at(place, f"tables.{n}")) for n, e in phase.tables.items())),
        steps=[
            step
            for number, entry in enumerate(phase.steps)
            if (step := entries.step(number, entry, at(place, f"steps[{number}]"))) is not None
        ],
        sinks=[
            sink
            for number, entry in enumerate(phase.sinks)
            if (sink := entries.sink(number, entry, at(place, f"sinks[{number}]"))) is not None
        ],
    )
    problems = entries.problems
    if not phase.sources:
        problems.append((at(place, "sources"), "there is none: where does the data come from?"))
    if not phase.sinks:
        problems.append((at(place, "sinks"), "there is none: where does the data go to?"))
    deliveries = {entry.get("delivery", "exactly_once") for entry in phase.sinks if "topic" in entry}
    if len(deliveries) > 1:
        problems.append((at(place, "sinks"), "topics are written together, so they share one `delivery`"))
    return parts, problems + mixed_clusters(parts, place) + _names(phase, parts, place)


def _named(parts: Iterable[Any]) -> Iterable[tuple[str, Any]]:
    return ((part.name, part) for part in parts if part is not None)


def _names(phase: Phase, parts: PhaseParts, place: str) -> list[Problem]:
    """Names of frames: well formed, used once, and there when somebody asks for them."""
    problems: list[Problem] = []
    known: list[str] = []

    def add(name: str, where: str) -> None:
        if not _FRAME_NAME.fullmatch(name):
            problems.append((where, f"`{name}` cannot be a table in SQL: use letters, digits and `_`"))
        elif name == INPUT:
            problems.append((where, f"`{INPUT}` is what every step calls the frame it is given; choose another name"))
        elif name in known:
            problems.append((where, f"`{name}` has that name already"))
        known.append(name)

    for kind, names in (("sources", phase.sources), ("tables", phase.tables)):
        for name in names:
            add(name, at(place, f"{kind}.{name}"))
    for step in parts.steps:
        where = at(place, f"steps[{step.number - 1}]")
        if step.input is not None and step.input not in known:
            problems.append((f"{where}.from", f"nothing before it is called `{step.input}`"))
        if step.result is not None:
            add(step.result, f"{where}.as")
    for number, sink in enumerate(parts.sinks):
        if sink.input is not None and sink.input not in known:
            problems.append((at(place, f"sinks[{number}].from"), f"nothing is called `{sink.input}`"))
    return problems + _unused(parts, place)


def _unused(parts: PhaseParts, place: str) -> list[Problem]:
    used = {step.input for step in parts.steps} | {sink.input for sink in parts.sinks} | _all_words(parts.steps)
    first = next(iter(parts.sources), None)
    return [
        (at(place, f"sources.{name}"), "nothing reads it: name it in a SQL step, or in `from`")
        for name in parts.sources
        if name != first and name not in used
    ]


def _all_words(steps: list[StepPart]) -> set[str | None]:
    return {word for step in steps for word in step.words}


def _tests(spec: Pipeline, phases: list[PhaseParts]) -> list[Problem]:
    sources = {name for phase in phases for name in (*phase.sources, *phase.tables)}
    sinks = {sink.name for phase in phases for sink in phase.sinks}
    problems: list[Problem] = []
    for number, case in enumerate(spec.tests):
        place = f"tests[{number}]"
        problems += [
            (f"{place}.given.{name}", "there is no source or table of this name")
            for name in case.given
            if name not in sources
        ]
        if isinstance(case.expect, dict):
            problems += [
                (f"{place}.expect.{name}", f"there is no such sink; there is: {_join(sinks)}")
                for name in case.expect
                if name not in sinks
            ]
        elif case.expect is not None and len(sinks) > 1 and not _one_frame(phases):
            problems.append((f"{place}.expect", f"say which sink: {{SINK: FILE}}; there is: {_join(sinks)}"))
        if case.expect is None and case.dead_letters is None:
            problems.append((place, "expects nothing: give it `expect` or `dead_letters`"))
    return problems


def _one_frame(phases: list[PhaseParts]) -> bool:
    """All sinks get the same rows, so that it does not matter which one a test means."""
    return len(phases) == 1 and len({sink.input for sink in phases[0].sinks}) == 1


def _join(names: set[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def _secrets_in_the_wrong_place(values: Mapping[str, Any]) -> list[Problem]:
    """Secrets belong to connectors. Anywhere else they would be part of a plan, which Spark shows to everybody."""
    problems: list[Problem] = []
    for place, value in _leaves(values, ""):
        if not references(value):
            continue
        problems += [(place, text) for text in misspelt(value)]
        if place == "bootstrap" or re.fullmatch(r"clusters\.[^.]+\.bootstrap", place):
            problems.append((place, "an address is no secret: leave it out and export OTTLA_BOOTSTRAP"))
        elif _CLIENT.match(place) and not _HIDDEN_CLIENT_SETTING.match(place):
            problems.append((place, "Spark shows this setting in its plans; only those of sasl and ssl are hidden"))
        elif not re.match(r"(phases\[\d+\]\.)?(sources|tables|sinks|client)\b", place) and not _CLIENT.match(place):
            problems.append((place, "a secret can stand in sources, tables, sinks and client only"))
    return problems


def _leaves(value: Any, place: str) -> Iterable[tuple[str, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, at(place, str(key)))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _leaves(item, f"{place}[{number}]")
