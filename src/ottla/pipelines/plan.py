"""Which queries a pipeline becomes: pure, so that it can be shown and tested without Spark.

Sinks that read the same frame share a query. Of its steps, those up to the last stateful one are part of Spark's
streaming plan, because their state lives there; so is every step that combines streams, and what follows as long as it
looks at each row by itself: what is in the stream is planned once. The rest runs on each batch as a static frame.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from ottla.pipelines.connectors.options import shown_entry
from ottla.pipelines.connectors.transactional import is_transactional
from ottla.pipelines.parts import CheckedPipeline, PhaseParts, SinkPart, SourcePart, StepPart
from ottla.pipelines.spec import ONLY_PHASE

TOPIC = "topic"


@dataclass(frozen=True, kw_only=True)
class QueryPlan:
    pipeline: str
    phase: str
    name: str
    """Its checkpoint's name, too: it changes only if the file's phases or `as` names do."""
    sources: dict[str, SourcePart]
    tables: dict[str, SourcePart]
    streaming_steps: list[StepPart]
    batch_steps: list[StepPart]
    sinks: list[SinkPart]
    target: str | None
    """The frame that the sinks get; None: what the last step makes."""
    group: str
    """The consumer group that shows how far it has come."""
    transactional_id: str
    dead_letter: str | None
    source_cluster: str | None = None
    """The named cluster that its topics are read from; None: the pipeline's own."""
    target_cluster: str | None = None
    """The one that its topics, dead letters among them, are written to."""
    in_line: bool = False
    """Every step works on what the step before it made: then rows that fail are marked, and stay in the frame."""

    @property
    def writes_topics(self) -> bool:
        return self.dead_letter is not None or any(is_transactional(sink.type) for sink in self.sinks)

    @property
    def crosses_clusters(self) -> bool:
        """Reads topics here and writes topics there: no transaction can hold both."""
        return self.writes_topics and self.source_cluster != self.target_cluster and self.reads_topics

    @property
    def reads_topics(self) -> bool:
        return any(part.kind == TOPIC for part in self.sources.values())

    @property
    def steps(self) -> list[StepPart]:
        return [*self.streaming_steps, *self.batch_steps]


@dataclass(frozen=True, kw_only=True)
class Plan:
    checked: CheckedPipeline
    queries: list[QueryPlan]

    @property
    def name(self) -> str:
        return self.checked.name


def make_plan(checked: CheckedPipeline, version: str | None = None) -> Plan:
    """`version` keeps the groups and transactions of another set of outputs apart."""
    queries = [
        _plan_query(checked, phase, target, sinks, [version] if version else [])
        for phase in checked.phases
        for target, sinks in _by_target(phase)
    ]
    return Plan(checked=checked, queries=queries)


def _by_target(phase: PhaseParts) -> list[tuple[str | None, list[SinkPart]]]:
    """Sinks by the frame that they read. Naming the last step's result is the same as naming nothing."""
    last = phase.steps[-1].result if phase.steps else next(iter(phase.sources), None)
    groups: dict[str | None, list[SinkPart]] = {}
    for sink in phase.sinks:
        groups.setdefault(None if sink.input == last else sink.input, []).append(sink)
    return list(groups.items())


def _plan_query(
    checked: CheckedPipeline, phase: PhaseParts, target: str | None, sinks: list[SinkPart], version: list[str]
) -> QueryPlan:
    steps, names = _needed(phase, target)
    sources = {name: part for name, part in phase.sources.items() if name in names}
    in_line = _in_line(steps, list(sources))
    split = _split(steps, list(sources), target)
    if in_line:
        split += _row_by_row(steps[split:], checked.base_dir)
    topics = [part.name for part in sources.values() if part.kind == TOPIC]
    frame = [target] if target else []
    phase_name = [] if phase.name == ONLY_PHASE and len(topics) == 1 else [phase.name]
    name = ".".join([phase.name, *frame])
    return QueryPlan(
        pipeline=checked.name,
        phase=phase.name,
        name=name,
        sources=sources,
        tables={table: part for table, part in phase.tables.items() if table in names},
        streaming_steps=steps[:split],
        batch_steps=steps[split:],
        sinks=sinks,
        target=target,
        group=".".join(["ottla", checked.name, *phase_name, *topics[: len(topics) == 1], *frame, *version]),
        transactional_id=".".join(["ottla", checked.name, name, *version]),
        dead_letter=checked.spec.errors.dead_letter,
        source_cluster=next((part.cluster for part in sources.values() if part.kind == TOPIC), None),
        target_cluster=_target_cluster(checked, sinks),
        in_line=in_line,
    )


def _target_cluster(checked: CheckedPipeline, sinks: list[SinkPart]) -> str | None:
    """The check of the file sees to it that there is one."""
    topics = [sink.cluster for sink in sinks if is_transactional(sink.type)]
    return topics[0] if topics else checked.spec.errors.dead_letter_cluster


def _needed(phase: PhaseParts, target: str | None) -> tuple[list[StepPart], set[str]]:
    """The steps that the frame is made by, in order, and the names that they use."""
    first = next(iter(phase.sources))
    named = {*phase.sources, *phase.tables, *(step.result for step in phase.steps if step.result)}
    wanted_steps: set[int] = set()
    wanted: set[str] = set()
    made_by = {step.result: index for index, step in enumerate(phase.steps) if step.result}

    def want_step(index: int) -> None:
        if index in wanted_steps:
            return
        wanted_steps.add(index)
        step = phase.steps[index]
        if step.input is not None:
            want(step.input, index)
        elif index == 0:
            want(first, index)
        else:
            want_step(index - 1)
        for word in step.words & named:
            want(word, index)

    def want(name: str, before: int) -> None:
        """A name means the last thing before that has it; steps cannot look ahead."""
        wanted.add(name)
        index = made_by.get(name)
        if index is not None and index < before:
            want_step(index)

    if target is None and phase.steps:
        want_step(len(phase.steps) - 1)
    else:
        want(target or first, len(phase.steps))
    return [phase.steps[index] for index in sorted(wanted_steps)], wanted


def _split(steps: Sequence[StepPart], sources: Sequence[str], target: str | None) -> int:
    """How many steps belong to the streaming plan: the fewest such that one frame is all that the others need."""
    return next(count for count in range(len(steps) + 1) if _one_frame_is_enough(steps, sources, target, count))


def _one_frame_is_enough(steps: Sequence[StepPart], sources: Sequence[str], target: str | None, count: int) -> bool:
    if count == len(steps):
        return True
    if count == 0 and len(sources) > 1:
        return False
    if any(step.step.STATEFUL for step in steps[count:]):
        return False
    handed_over = {steps[count - 1].result} if count else set(sources)
    hidden = {*sources, *(step.result for step in steps[:count])} - handed_over
    if target in hidden:
        return False
    return not any(step.input in hidden or step.words & hidden for step in steps[count:])


def _in_line(steps: Sequence[StepPart], sources: Sequence[str]) -> bool:
    """Whether no step looks back at a frame that is not its input. Words that only look like names count as names."""
    if len(sources) != 1:
        return False
    given: str | None = sources[0]
    behind: set[str] = set()
    for step in steps:
        if step.input not in {None, given} or step.words & behind:
            return False
        behind |= {given} if given else set()
        given = step.result
    return True


def _row_by_row(steps: Sequence[StepPart], base_dir: Path) -> int:
    """How many of the steps, from the first on, are as well planned once for all batches as anew for each."""
    alike = (is_row_by_row(step, base_dir) for step in steps)
    return sum(1 for _ in takewhile(bool, alike))


def has_batches_without_records(query: QueryPlan, *, once: bool) -> bool:
    """Whether a batch of no records can change anything. What goes by the clock always has something to do: to read
    what is there now would never end."""
    stateful = [step.step for step in query.streaming_steps if step.step.STATEFUL]
    if once and any(getattr(step, "GOES_BY_THE_CLOCK", False) for step in stateful):
        return False
    return not all(getattr(step, "QUIET_WITHOUT_ROWS", False) for step in stateful)


def is_row_by_row(step: StepPart, base_dir: Path) -> bool:
    asked = getattr(step.step, "row_by_row", None)
    return asked is not None and bool(asked(base_dir))


# How a plan looks.


def describe(plan: Plan) -> dict[str, object]:
    """For `--json`. Entries are shown as the file has them: secrets are references there, or are left out."""
    return {
        "pipeline": plan.name,
        "queries": [
            {
                "name": query.name,
                "sources": {name: {"kind": part.kind, **_shown(part)} for name, part in query.sources.items()},
                "tables": {name: {"kind": part.kind, **_shown(part)} for name, part in query.tables.items()},
                "streaming": [step.label for step in query.streaming_steps],
                "per_batch": [step.label for step in query.batch_steps],
                "sinks": {sink.name: _shown(sink) for sink in query.sinks},
                "dead_letter": query.dead_letter,
                "clusters": {"source": query.source_cluster, "target": query.target_cluster},
                "group": query.group,
                "transactional_id": query.transactional_id if query.writes_topics else None,
            }
            for query in plan.queries
        ],
    }


def graph_of(query: QueryPlan) -> dict[str, list[str]]:
    """What a query is made of, in few words each: for whoever draws it."""
    return {
        "sources": [_in_short(part) for part in query.sources.values()],
        "tables": [_in_short(part) for part in query.tables.values()],
        "steps": [step.label for step in query.steps],
        "sinks": [_in_short(part) for part in query.sinks],
    }


def _in_short(part: SourcePart | SinkPart) -> str:
    named = _shown(part).get(part.kind)
    return f"{part.kind} {named if isinstance(named, str) else part.name}"


def tree_lines(plan: Plan) -> Iterator[tuple[int, str]]:
    """(depth, text) for people."""
    limits = plan.checked.spec.limits
    yield 0, f"pipeline {plan.name}"
    for query in plan.queries:
        most = f", at most {limits.max_records} records per source" if limits.max_records else ""
        yield 1, f"query {query.name}: a batch every {limits.trigger}{most}"
        for kind, parts in (("source", query.sources), ("table", query.tables)):
            for name, part in parts.items():
                yield 2, f"{kind} {name}: {_entry(part)}{_reading(part)}"
        for where, steps in (("in the stream", query.streaming_steps), ("in each batch", query.batch_steps)):
            if steps:
                yield 2, where
            for step in steps:
                named = f" as {step.result}" if step.result else ""
                yield 3, f"step {step.label}{named}{' (stateful)' if step.step.STATEFUL else ''}"
        for sink in query.sinks:
            yield 2, f"sink {sink.name}: {_entry(sink)}"
        if query.dead_letter:
            yield 2, f"dead letters: topic {query.dead_letter}"
        once = "topics and offsets in one transaction per batch" if query.writes_topics else "offsets after each batch"
        if query.crosses_clusters:
            once = (
                "topics and the batch's number in one transaction of the target, then offsets in the source's cluster"
            )
        yield 2, f"progress: group {query.group}, {once}"


def _shown(part: SourcePart | SinkPart) -> dict[str, Any]:
    return shown_entry(part.entry, part.type.Options)


def _entry(part: SourcePart | SinkPart) -> str:
    entry = _shown(part)
    rest = ", ".join(f"{key}: {value}" for key, value in entry.items() if key != part.kind)
    return f"{part.kind} {entry[part.kind]}" + (f" ({rest})" if rest else "")


def _reading(part: SourcePart) -> str:
    return f", read as {part.reading.format}" if part.reading else ""
