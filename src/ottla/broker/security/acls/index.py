"""All rules, laid out so that one question costs the same with ten of them as with a hundred thousand. Pure.

A client's own rules are in one book per kind of resource, those for everybody (`User:*`) in another; in each a rule is
found by the resource's name, by `*`, or by a prefix of the name. Which operations are allowed and denied there is one
integer each, a bit per operation. It decides as Kafka's authorizer does:

- a rule that denies counts more than any that allows, wherever it stands;
- who may read, write, delete or alter may describe as well; who may alter settings may describe them. To deny one of
  these denies nothing else;
- who no rule speaks of is denied; a setting may allow to everybody what no rule covers at all.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from ottla.broker.security.acls.prefixes import Prefixes
from ottla.model.acls import (
    ALL_OPERATIONS,
    EVERYBODY,
    WILDCARD,
    AclBinding,
    AclEntry,
    AclFilter,
    PatternType,
    Permission,
    ResourcePattern,
)
from ottla.model.rights import Operation, Resource

_O = Operation
_EVERY_BIT = -1
IMPLIED = {
    _O.READ: _O.DESCRIBE,
    _O.WRITE: _O.DESCRIBE,
    _O.DELETE: _O.DESCRIBE,
    _O.ALTER: _O.DESCRIBE,
    _O.ALTER_CONFIGS: _O.DESCRIBE_CONFIGS,
}
"""What comes with being allowed something."""


T = TypeVar("T")
_LITERAL, _PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
_ALLOW, _DENY = Permission.ALLOW, Permission.DENY


class _Client:
    """The rules at one pattern for one principal from one host."""

    __slots__ = ("allowed", "denied", "entries")

    def __init__(self) -> None:
        self.allowed = self.denied = 0
        self.entries: list[AclEntry] = []

    def add(self, entry: AclEntry) -> None:
        self.entries.append(entry)
        if entry.permission is Permission.DENY:
            self.denied |= bits(entry)
        else:
            self.allowed |= bits(entry)

    def rule(self, bit: int, permission: Permission) -> AclEntry:
        """The one that decided it."""
        return next(entry for entry in self.entries if entry.permission is permission and bits(entry) & bit)


def bits(entry: AclEntry) -> int:
    """The operations that a rule is about."""
    if entry.operation == ALL_OPERATIONS:
        return _EVERY_BIT
    implied = IMPLIED.get(Operation(entry.operation)) if entry.permission is Permission.ALLOW else None
    return 1 << entry.operation | (0 if implied is None else 1 << implied)


_Found = tuple[Permission, PatternType, str, _Client]
_Hosts = dict[str, _Client]
"""The rules at one pattern for one principal, by host."""


class _Patterns(Generic[T]):
    """Something for each pattern of one kind of resource, found by the names that it covers."""

    __slots__ = ("everywhere", "literal", "prefixed", "prefixes")

    def __init__(self) -> None:
        self.literal: dict[str, T] = {}
        self.everywhere: T | None = None
        self.prefixed: dict[str, T] = {}
        self.prefixes = Prefixes()

    def __bool__(self) -> bool:
        return bool(self.literal or self.prefixed) or self.everywhere is not None

    def put(self, name: str, type_: PatternType, value: T | None) -> None:
        if type_ is PatternType.PREFIXED:
            if (name in self.prefixed) is (value is None):
                (self.prefixes.remove if value is None else self.prefixes.add)(name)
            _put(self.prefixed, name, value)
        elif name == WILDCARD:
            self.everywhere = value
        else:
            _put(self.literal, name, value)

    def covers(self, name: str) -> bool:
        return self.everywhere is not None or name in self.literal or bool(self.prefixes.of(name))

    def items(self, resource: Resource) -> Iterator[tuple[ResourcePattern, T]]:
        for name, value in self.literal.items():
            yield ResourcePattern(resource, name), value
        for name, value in self.prefixed.items():
            yield ResourcePattern(resource, name, PatternType.PREFIXED), value
        if self.everywhere is not None:
            yield ResourcePattern(resource, WILDCARD), self.everywhere


def _put(mapping: dict[str, T], name: str, value: T | None) -> None:
    if value is None:
        mapping.pop(name, None)
    else:
        mapping[name] = value


_Book = _Patterns[_Hosts]
"""The rules for one principal about one kind of resource."""


class AclIndex:
    def __init__(self, rules: Mapping[ResourcePattern, Iterable[AclEntry]] | None = None) -> None:
        kinds = range(max(Resource) + 1)
        self._books: list[dict[str, _Book]] = [{} for _ in kinds]
        self._covered: list[_Patterns[frozenset[str]]] = [_Patterns() for _ in kinds]
        """The principals that the rules at each pattern speak of."""
        for pattern, entries in (rules or {}).items():
            self.put(pattern, entries)

    def put(self, pattern: ResourcePattern, entries: Iterable[AclEntry]) -> None:
        """These are the rules at this pattern from now on; none: it is gone."""
        resource, name, type_ = pattern
        books, covered = self._books[resource], self._covered[resource]
        spoken_of: dict[str, _Hosts] = {}
        for entry in entries:
            hosts = spoken_of.setdefault(entry.principal, {})
            client = hosts.get(entry.host)
            if client is None:
                client = hosts[entry.host] = _Client()
            client.add(entry)
        for principal in self._principals(covered, pattern) - spoken_of.keys():
            books[principal].put(name, type_, None)
            if not books[principal]:
                del books[principal]
        for principal, hosts in spoken_of.items():
            book = books.get(principal)
            if book is None:
                book = books[principal] = _Patterns()
            book.put(name, type_, hosts)
        covered.put(name, type_, frozenset(spoken_of) or None)

    @staticmethod
    def _principals(covered: _Patterns[frozenset[str]], pattern: ResourcePattern) -> frozenset[str]:
        found = (covered.prefixed if pattern.type is PatternType.PREFIXED else covered.literal).get(pattern.name)
        if pattern.type is PatternType.LITERAL and pattern.name == WILDCARD:
            found = covered.everywhere
        return found or frozenset()

    def covers(self, resource: int, name: str) -> bool:
        """Whether there is any rule about this resource, for whomever."""
        return self._covered[resource].covers(name)

    def decide(self, principal: str, host: str, operation: int, resource: int, name: str) -> bool | None:
        """What the rules for this client say; None if none is about this."""
        found = self._find(principal, host, 1 << operation, resource, name)
        return None if found is None else found[0] is _ALLOW

    def rule(self, principal: str, host: str, operation: int, resource: int, name: str) -> AclBinding | None:
        """The rule that decides it, for those who want to know."""
        found = self._find(principal, host, 1 << operation, resource, name)
        if found is None:
            return None
        permission, type_, covering, client = found
        return AclBinding(ResourcePattern(Resource(resource), covering, type_), client.rule(1 << operation, permission))

    def _find(self, principal: str, host: str, bit: int, resource: int, name: str) -> _Found | None:
        books = self._books[resource]
        allowing: _Found | None = None
        for who in (principal, EVERYBODY):
            book = books.get(who)
            if book is None:
                continue
            for type_, covering, hosts in _covering(book, name):
                for where in (host, WILDCARD):
                    client = hosts.get(where)
                    if client is None:
                        continue
                    if client.denied & bit:
                        return _DENY, type_, covering, client
                    if client.allowed & bit:
                        allowing = _ALLOW, type_, covering, client
        return allowing

    def allows_for_any(self, principal: str, host: str, operation: int, resource: Resource) -> bool:
        """Whether rules allow it for any name at all: some pattern that allows it is not under one that denies it.

        As in Kafka, only rules that name this operation, or all, count here, not those that imply it.
        """
        allowed: set[ResourcePattern] = set()
        denied: set[ResourcePattern] = set()
        for who in {principal, EVERYBODY}:
            book = self._books[resource].get(who)
            for pattern, hosts in () if book is None else book.items(resource):
                for entry in (entry for where in {host, WILDCARD} if where in hosts for entry in hosts[where].entries):
                    if entry.operation in (operation, ALL_OPERATIONS):
                        (denied if entry.permission is Permission.DENY else allowed).add(pattern)
        everything = ResourcePattern(resource, WILDCARD)
        if everything in denied:
            return False
        return everything in allowed or any(
            pattern not in denied and not _is_under(pattern, denied) for pattern in allowed
        )


def _covering(book: _Book, name: str) -> list[tuple[PatternType, str, _Hosts]]:
    """Where rules about a name stand."""
    found: list[tuple[PatternType, str, _Hosts]] = []
    literal = book.literal.get(name)
    if literal is not None:
        found.append((_LITERAL, name, literal))
    if book.everywhere is not None:
        found.append((_LITERAL, WILDCARD, book.everywhere))
    prefixed = book.prefixed
    if prefixed:
        found += [(_PREFIXED, prefix, prefixed[prefix]) for prefix in book.prefixes.of(name)]
    return found


def _is_under(pattern: ResourcePattern, denied: set[ResourcePattern]) -> bool:
    """Whether a prefix that is denied covers all of it."""
    resource, name, _ = pattern
    return any(
        ResourcePattern(resource, name[:length], PatternType.PREFIXED) in denied for length in range(1, len(name) + 1)
    )


def select(
    rules: Mapping[ResourcePattern, Iterable[AclEntry]], wanted: AclFilter
) -> dict[ResourcePattern, list[AclEntry]]:
    """The rules that a filter asks for, by pattern."""
    only = wanted.only_pattern
    candidates: Iterable[tuple[ResourcePattern, Iterable[AclEntry]]]
    candidates = rules.items() if only is None else [(only, rules.get(only, ()))]
    found: dict[ResourcePattern, list[AclEntry]] = {}
    for pattern, entries in candidates:
        if wanted.matches_pattern(pattern):
            matching = [entry for entry in entries if wanted.matches_entry(entry)]
            if matching:
                found[pattern] = matching
    return found
