"""What `lint` says about clusters: their settings, their names, and what can be together in one transaction."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ottla.client.security import SECURITY_SETTINGS
from ottla.client.settings import CLIENT_SETTINGS
from ottla.pipelines.connectors.transactional import is_transactional
from ottla.pipelines.parts import CLUSTER, PhaseParts
from ottla.pipelines.registry import hint
from ottla.pipelines.spec import Pipeline
from ottla.pipelines.structs import Problem, at

BOOTSTRAP = "bootstrap.servers"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def client_problems(client: Mapping[str, str], place: str) -> list[Problem]:
    problems: list[Problem] = []
    known = sorted((CLIENT_SETTINGS | SECURITY_SETTINGS) - {BOOTSTRAP})
    for name in client:
        if name == BOOTSTRAP:
            problems.append((f"{place}.{name}", "the brokers are named by `bootstrap`"))
        elif name not in known:
            problems.append((f"{place}.{name}", f"the client has no setting `{name}`{hint(name, known)}"))
    return problems


def cluster_problems(spec: Pipeline) -> list[Problem]:
    """Names and settings of clusters, and names that are none of them."""
    problems: list[Problem] = []
    for name, cluster in spec.clusters.items():
        place = f"clusters.{name}"
        if not _NAME.fullmatch(name):
            problems.append((place, "wants letters, digits, `.`, `_` and `-`"))
        if not cluster.bootstrap.strip():
            problems.append((f"{place}.bootstrap", "is empty: name its brokers, host:port"))
        problems += client_problems(cluster.client, f"{place}.client")
    for place, named in _named_clusters(spec):
        if isinstance(named, str) and named not in spec.clusters:
            there = hint(named, sorted(spec.clusters)) if spec.clusters else ": the file has no `clusters`"
            problems.append((place, f"there is no cluster `{named}`{there}"))
    if spec.errors.dead_letter_cluster is not None and spec.errors.dead_letter is None:
        problems.append(("errors.dead_letter_cluster", "there is no `dead_letter` that could be there"))
    return problems + _letters_elsewhere(spec)


def _named_clusters(spec: Pipeline) -> Iterator[tuple[str, Any]]:
    for number, phase in enumerate(spec.all_phases()):
        place = f"phases[{number}]" if spec.phases else ""
        for kind, entries in (("sources", phase.sources), ("tables", phase.tables)):
            for name, entry in entries.items():
                yield at(place, f"{kind}.{name}.{CLUSTER}"), entry.get(CLUSTER)
        for index, entry in enumerate(phase.sinks):
            yield at(place, f"sinks[{index}].{CLUSTER}"), entry.get(CLUSTER)
    yield "errors.dead_letter_cluster", spec.errors.dead_letter_cluster


def _letters_elsewhere(spec: Pipeline) -> list[Problem]:
    wanted = spec.errors.dead_letter_cluster
    sinks = [entry for phase in spec.all_phases() for entry in phase.sinks if "topic" in entry]
    if wanted is None or all(entry.get(CLUSTER) == wanted for entry in sinks):
        return []
    text = "dead letters share the transaction of the batch's topics, so they are in the cluster that those are in"
    return [("errors.dead_letter_cluster", text)]


def mixed_clusters(parts: PhaseParts, place: str) -> list[Problem]:
    """What shares a batch, and so a transaction or a note of positions, is in one cluster."""
    problems: list[Problem] = []
    if len({part.cluster for part in parts.sources.values() if part.kind == "topic"}) > 1:
        text = "topics of one phase are read from one cluster: make a phase for each, or mirror one of them first"
        problems.append((at(place, "sources"), text))
    written: dict[str | None, set[str | None]] = {}
    for sink in parts.sinks:
        if is_transactional(sink.type):
            written.setdefault(sink.input, set()).add(sink.cluster)
    if any(len(clusters) > 1 for clusters in written.values()):
        text = "a transaction cannot span two clusters: topics of one frame are in one cluster, or make two phases"
        problems.append((at(place, "sinks"), text))
    return problems
