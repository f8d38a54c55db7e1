"""The index of rules against a plain model that looks at every rule, and how long a question takes it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.counting import calls_of

from ottla.broker.security.acls.index import AclIndex, select
from ottla.broker.security.acls.prefixes import Prefixes
from ottla.model.acls import (
    ALL_OPERATIONS,
    ANY,
    AclBinding,
    AclEntry,
    AclFilter,
    PatternType,
    Permission,
    ResourcePattern,
)
from ottla.model.rights import Operation, Resource

DESCRIBES = {Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
DESCRIBES_CONFIGS = {Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}

names = st.text("ab", min_size=1, max_size=4)
resources = st.sampled_from([Resource.TOPIC, Resource.GROUP])
operations = st.sampled_from(list(Operation))
principals = st.sampled_from(["User:a", "User:b", "User:*"])
hosts = st.sampled_from(["10.0.0.1", "10.0.0.2", "*"])
patterns = st.builds(
    ResourcePattern, resources, names | st.just("*"), st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED])
)
entries = st.builds(
    AclEntry, principals, hosts, operations | st.just(ALL_OPERATIONS), st.sampled_from(list(Permission))
)
bindings = st.builds(AclBinding, patterns, entries)


def by_pattern(rules: list[AclBinding]) -> dict[ResourcePattern, list[AclEntry]]:
    found: dict[ResourcePattern, list[AclEntry]] = {}
    for pattern, entry in rules:
        found.setdefault(pattern, []).append(entry)
    return found


def speaks_of(entry: AclEntry, operation: Operation) -> bool:
    if entry.operation in (ALL_OPERATIONS, operation):
        return True
    if entry.permission is Permission.DENY:
        return False
    return (operation is Operation.DESCRIBE and entry.operation in DESCRIBES) or (
        operation is Operation.DESCRIBE_CONFIGS and entry.operation in DESCRIBES_CONFIGS
    )


def is_about(entry: AclEntry, principal: str, host: str) -> bool:
    return entry.principal in ("User:*", principal) and entry.host in ("*", host)


def model(
    rules: list[AclBinding], principal: str, host: str, operation: Operation, resource: Resource, name: str
) -> bool | None:
    """Every rule is looked at; None: none is about this."""
    said = {
        entry.permission
        for pattern, entry in rules
        if pattern.resource is resource
        and pattern.covers(name)
        and is_about(entry, principal, host)
        and speaks_of(entry, operation)
    }
    if Permission.DENY in said:
        return False
    return True if Permission.ALLOW in said else None


def model_for_any(rules: list[AclBinding], principal: str, host: str, operation: Operation, resource: Resource) -> bool:
    """A pattern that is allowed and of which not everything is denied by one rule."""
    concerned = [
        (pattern, entry.permission)
        for pattern, entry in rules
        if pattern.resource is resource
        and is_about(entry, principal, host)
        and entry.operation in (ALL_OPERATIONS, operation)
    ]
    denied = {pattern for pattern, permission in concerned if permission is Permission.DENY}

    def is_denied(allowed: ResourcePattern) -> bool:
        for pattern in denied:
            if pattern.type is PatternType.LITERAL and pattern.name == "*":
                return True
            if allowed.name == "*" and allowed.type is PatternType.LITERAL:
                continue
            if pattern == allowed or (pattern.type is PatternType.PREFIXED and allowed.name.startswith(pattern.name)):
                return True
        return False

    return any(permission is Permission.ALLOW and not is_denied(pattern) for pattern, permission in concerned)


@given(st.lists(bindings, max_size=12), st.sampled_from(["User:a", "User:b"]), hosts, operations, resources, names)
def test_decides_as_a_plain_look_at_every_rule(
    rules: list[AclBinding], principal: str, host: str, operation: Operation, resource: Resource, name: str
) -> None:
    index = AclIndex(by_pattern(rules))
    expected = model(rules, principal, host, operation, resource, name)
    assert index.decide(principal, host, operation, resource, name) is expected
    rule = index.rule(principal, host, operation, resource, name)
    assert (rule is None) is (expected is None)
    if rule is not None:
        assert rule in rules
        assert rule.pattern.covers(name)
        assert speaks_of(rule.entry, operation)
        assert (rule.entry.permission is Permission.ALLOW) is expected
    covered = any(pattern.resource is resource and pattern.covers(name) for pattern, _ in rules)
    assert index.covers(resource, name) is covered


@given(st.lists(bindings, max_size=12), st.sampled_from(["User:a", "User:b"]), hosts, operations, resources)
def test_any_name_is_allowed_if_a_rule_allows_one_that_none_denies(
    rules: list[AclBinding], principal: str, host: str, operation: Operation, resource: Resource
) -> None:
    index = AclIndex(by_pattern(rules))
    expected = model_for_any(rules, principal, host, operation, resource)
    assert index.allows_for_any(principal, host, operation, resource) is expected


@given(st.lists(st.tuples(patterns, st.lists(entries, max_size=3)), max_size=15), operations, resources, names)
def test_an_index_that_grew_step_by_step_is_one_that_was_built_at_once(
    steps: list[tuple[ResourcePattern, list[AclEntry]]], operation: Operation, resource: Resource, name: str
) -> None:
    grown = AclIndex()
    rules: dict[ResourcePattern, list[AclEntry]] = {}
    for pattern, now in steps:
        grown.put(pattern, now)
        grown.decide("User:a", "10.0.0.1", operation, resource, name)  # what is remembered must not outlive a change
        rules[pattern] = now
    built = AclIndex({pattern: now for pattern, now in rules.items() if now})
    for principal in ("User:a", "User:b"):
        question = (principal, "10.0.0.1", operation, resource, name)
        assert grown.decide(*question) is built.decide(*question)
        assert grown.covers(resource, name) is built.covers(resource, name)
        assert grown.allows_for_any(*question[:4]) is built.allows_for_any(*question[:4])


@given(st.sets(names), st.sets(names), names)
def test_prefixes_of_a_name_come_longest_first(prefixes: set[str], removed: set[str], name: str) -> None:
    found = Prefixes()
    for prefix in prefixes:
        found.add(prefix)
    for prefix in prefixes & removed:
        found.of(name)
        found.remove(prefix)
    assert len(found) == len(prefixes - removed)
    expected = sorted((each for each in prefixes - removed if name.startswith(each)), key=len, reverse=True)
    assert found.of(name) == expected


filters = st.builds(
    AclFilter,
    st.just(ANY) | resources,
    st.none() | names | st.just("*"),
    st.sampled_from([ANY, *PatternType]),
    st.none() | principals,
    st.none() | hosts,
    st.just(ANY) | st.just(ALL_OPERATIONS) | operations,
    st.sampled_from([ANY, *Permission]),
)


@given(st.lists(bindings, max_size=12), filters)
def test_a_filter_finds_what_it_matches(rules: list[AclBinding], wanted: AclFilter) -> None:
    found = select(by_pattern(rules), wanted)
    assert found == by_pattern([binding for binding in rules if wanted.matches(binding)])


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (AclFilter(Resource.TOPIC, "abc", PatternType.MATCH), {"abc", "*", "ab", "a"}),
        (AclFilter(Resource.TOPIC, "ab", PatternType.PREFIXED), {"ab"}),
        (AclFilter(Resource.TOPIC, "ab", ANY), {"ab"}),
        (AclFilter(Resource.TOPIC, "*", PatternType.LITERAL), {"*"}),
        (AclFilter(Resource.TOPIC, None, PatternType.PREFIXED), {"ab", "a", "x"}),
        (AclFilter(Resource.GROUP), {"g"}),
    ],
)
def test_match_finds_every_pattern_that_covers_a_name(wanted: AclFilter, expected: set[str]) -> None:
    entry = AclEntry("User:a", "*", Operation.READ, Permission.ALLOW)
    rules = {ResourcePattern(Resource.TOPIC, name): [entry] for name in ("abc", "*", "b")}
    rules |= {ResourcePattern(Resource.TOPIC, name, PatternType.PREFIXED): [entry] for name in ("ab", "a", "x")}
    rules |= {ResourcePattern(Resource.GROUP, "g"): [entry]}
    assert {pattern.name for pattern in select(rules, wanted)} == expected


def test_a_question_costs_the_same_however_many_rules_there_are() -> None:
    """Counted in calls, for machines are shared; what it takes on a quiet one is in docs/security-acls.md."""
    questions = [(f"User:u{number}", f"team-{number:04d}.app{number:03d}.events") for number in range(20)]

    def cost(rules: int) -> int:
        index = AclIndex(_rules(rules))
        return calls_of(lambda: [index.decide(*each) for each in _asked(questions)])

    assert cost(20_000) <= cost(200) * 1.5


def _rules(count: int) -> dict[ResourcePattern, list[AclEntry]]:
    """Of many teams, half of them for all that begins with a name."""
    found = {}
    for number in range(count):
        prefixed = number % 2
        name = f"team-{number % 1000:04d}.app{number // 1000:03d}" + ("." if prefixed else ".events")
        pattern = ResourcePattern(Resource.TOPIC, name, PatternType.PREFIXED if prefixed else PatternType.LITERAL)
        found[pattern] = [AclEntry(f"User:u{number % 5000}", "*", Operation.WRITE, Permission.ALLOW)]
    return found


def _asked(questions: list[tuple[str, str]]) -> list[tuple[str, str, Operation, Resource, str]]:
    return [(principal, "10.0.0.1", Operation.WRITE, Resource.TOPIC, name) for principal, name in questions]
