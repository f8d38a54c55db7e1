"""What becomes of access control lists when rules are added and removed. Pure."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from ottla.broker.controller.writes import Version
from ottla.broker.security.acls.index import select
from ottla.cluster.acl_documents import Acls, acl_document, acl_path
from ottla.cluster.store import ABSENT, Write
from ottla.model.acls import AclBinding, AclEntry, AclFilter, ResourcePattern


class AclOutcome(NamedTuple):
    """The rules at one pattern as they are to be, and which of them are gone by that."""

    pattern: ResourcePattern
    entries: tuple[AclEntry, ...]
    removed: tuple[AclEntry, ...] = ()


def plan_additions(wanted: Iterable[AclBinding], acls: Acls, done: Collection[object]) -> list[AclOutcome]:
    """A rule that is there already is added without further ado."""
    added: dict[ResourcePattern, dict[AclEntry, None]] = {}
    for pattern, entry in wanted:
        if pattern not in done:
            added.setdefault(pattern, dict.fromkeys(acls.get(pattern, ())))[entry] = None
    return [AclOutcome(pattern, tuple(entries)) for pattern, entries in added.items()]


def plan_removals(wanted: Iterable[AclFilter], acls: Acls, done: Collection[object]) -> list[AclOutcome]:
    gone: dict[ResourcePattern, dict[AclEntry, None]] = {}
    for each in wanted:
        for pattern, entries in select(acls, each).items():
            if pattern not in done:
                gone.setdefault(pattern, {}).update(dict.fromkeys(entries))
    return [
        AclOutcome(pattern, tuple(entry for entry in acls[pattern] if entry not in removed), tuple(removed))
        for pattern, removed in gone.items()
    ]


def acl_writes(outcome: AclOutcome, acls: Acls, version: Version) -> list[Write]:
    pattern, entries, _ = outcome
    if entries == acls.get(pattern, ()):
        return []
    path = acl_path(pattern)
    known = version(path)
    if entries:
        return [Write(path, acl_document(entries), known)]
    return [Write(path, None, known)] if known != ABSENT else []


def removed_by(wanted: Iterable[AclFilter], outcomes: Iterable[AclOutcome]) -> list[list[AclBinding]]:
    """For each filter the rules that are gone and that it asked for; one that two asked for is told twice."""
    rules: Mapping[ResourcePattern, tuple[AclEntry, ...]] = {outcome.pattern: outcome.removed for outcome in outcomes}
    return [
        [AclBinding(pattern, entry) for pattern, entries in select(rules, each).items() for entry in entries]
        for each in wanted
    ]
