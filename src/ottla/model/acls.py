"""Access control lists as they are written down: on which resources, for whom, from where, what, allowed or denied.

The words are Kafka's, as its tools print them and as it kept them in ZooKeeper: `Topic`, `DescribeConfigs`, `Allow`.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from ottla.model.rights import GRANTABLE, Operation, Resource

ANY = 1
"""In a filter: whatever it is. Resource types, pattern types, operations and permissions share this number."""
ALL_OPERATIONS = 2
"""The operation of a rule that is about every operation."""
WILDCARD = "*"
"""A literal name that stands for every name; a host that stands for every host."""
EVERYBODY = "User:*"
CLUSTER_NAME = "kafka-cluster"
"""The one cluster that there is to have rights on."""


class PatternType(IntEnum):
    __hash__ = int.__hash__  # as for Resource: patterns are keys

    MATCH = 2
    """Only in filters: every pattern that covers the name, whatever its type."""
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    __hash__ = int.__hash__

    DENY = 2
    ALLOW = 3


class ResourcePattern(NamedTuple):
    """The resources that a rule is about: one by name, all of a kind (`*`), or those whose names begin so."""

    resource: Resource
    name: str
    type: PatternType = PatternType.LITERAL

    def covers(self, name: str) -> bool:
        if self.type is PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in (WILDCARD, name)


class AclEntry(NamedTuple):
    """Who, from where, what. `operation` is an Operation's number or ALL_OPERATIONS."""

    principal: str
    host: str
    operation: int
    permission: Permission


class AclBinding(NamedTuple):
    pattern: ResourcePattern
    entry: AclEntry

    def __str__(self) -> str:
        """As Kafka names a rule in its log."""
        pattern, entry = self
        return (
            f"(principal={entry.principal}, host={entry.host}, operation={OPERATION_NAMES[entry.operation]}, "
            f"permissionType={entry.permission.name}) on {pattern.resource.name}:{pattern.type.name}:{pattern.name}"
        )


class AclFilter(NamedTuple):
    """Which rules are asked for. ANY and None stand for whatever it is."""

    resource: int = ANY
    name: str | None = None
    pattern_type: int = ANY
    principal: str | None = None
    host: str | None = None
    operation: int = ANY
    permission: int = ANY

    def matches_pattern(self, pattern: ResourcePattern) -> bool:
        if self.resource not in (ANY, pattern.resource):
            return False
        if self.pattern_type not in (ANY, PatternType.MATCH, pattern.type):
            return False
        if self.name is None:
            return True
        return pattern.covers(self.name) if self.pattern_type == PatternType.MATCH else pattern.name == self.name

    def matches_entry(self, entry: AclEntry) -> bool:
        return (
            (self.principal is None or self.principal == entry.principal)
            and (self.host is None or self.host == entry.host)
            and self.operation in (ANY, entry.operation)
            and self.permission in (ANY, entry.permission)
        )

    def matches(self, binding: AclBinding) -> bool:
        return self.matches_pattern(binding.pattern) and self.matches_entry(binding.entry)

    @property
    def only_pattern(self) -> ResourcePattern | None:
        """The one pattern that can match, if it is named so exactly."""
        if self.resource == ANY or self.name is None or self.pattern_type in (ANY, PatternType.MATCH):
            return None
        return ResourcePattern(Resource(self.resource), self.name, PatternType(self.pattern_type))


def _words(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


RESOURCE_WORDS = {resource: _words(resource.name) for resource in Resource}
OPERATION_NAMES: dict[int, str] = {ALL_OPERATIONS: "ALL"} | {operation: operation.name for operation in Operation}
OPERATION_WORDS = {number: _words(name) for number, name in OPERATION_NAMES.items()}
PERMISSION_WORDS = {permission: _words(permission.name) for permission in Permission}

RESOURCES_BY_WORD = {word.lower(): resource for resource, word in RESOURCE_WORDS.items()}
OPERATIONS_BY_WORD = {word.lower(): operation for operation, word in OPERATION_WORDS.items()}
PERMISSIONS_BY_WORD = {word.lower(): permission for permission, word in PERMISSION_WORDS.items()}


def grantable_on(resource: Resource) -> frozenset[int]:
    """What a rule on a resource of this kind may name, `All` included."""
    return frozenset({ALL_OPERATIONS, *GRANTABLE[resource]})


def why_not_valid(binding: AclBinding) -> str | None:
    """What is wrong with a rule that somebody wants to add; None if nothing is."""
    pattern, entry = binding
    if not pattern.name:
        return "Resource name should not be empty"
    if pattern.resource is Resource.CLUSTER and pattern.name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    kind, colon, name = entry.principal.partition(":")
    if not (kind and colon and name):
        return (
            f"Could not parse principal from `{entry.principal}` (no colon is present separating the principal type "
            "from the principal name)"
        )
    if not entry.host:
        return "Host should not be empty"
    return None


def without(entries: Iterable[AclEntry], removed: Iterable[AclEntry]) -> tuple[AclEntry, ...]:
    gone = set(removed)
    return tuple(entry for entry in entries if entry not in gone)
