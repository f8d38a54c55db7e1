"""Who gets which partition."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.coordination.groups.consumer.assignments import Assignment, pairs
from ottla.broker.coordination.groups.consumer.assignors import ASSIGNORS, Candidate, assign_range, assign_uniform

T, U = UUID(int=1), UUID(int=2)
TOPICS = [UUID(int=number) for number in range(1, 5)]


def candidate(name: str, *topics: UUID, instance: str | None = None, previous: Assignment | None = None) -> Candidate:
    return Candidate(name, instance, frozenset(topics), previous or {})


def sizes(result: dict[str, Assignment]) -> list[int]:
    return sorted(len(list(pairs(assignment))) for assignment in result.values())


def test_range_gives_the_same_range_of_every_topic() -> None:
    result = assign_range([candidate("b", T, U), candidate("a", T, U)], {T: 3, U: 3})
    assert result == {
        "a": {T: frozenset({0, 1}), U: frozenset({0, 1})},
        "b": {T: frozenset({2}), U: frozenset({2})},
    }


def test_range_puts_static_members_first_and_leaves_out_who_does_not_subscribe() -> None:
    result = assign_range([candidate("a", T), candidate("z", T, U, instance="i")], {T: 2, U: 1})
    assert result == {"z": {T: frozenset({0}), U: frozenset({0})}, "a": {T: frozenset({1})}}


def test_range_with_more_members_than_partitions() -> None:
    assert sizes(assign_range([candidate(name, T) for name in "abc"], {T: 2})) == [0, 1, 1]


def test_uniform_moves_only_what_it_must() -> None:
    before = {T: frozenset(range(6))}
    joined = assign_uniform([candidate("a", T, previous=before), candidate("b", T)], {T: 6})
    assert sizes(joined) == [3, 3]
    assert joined["a"][T] < before[T]
    left = assign_uniform([candidate("b", T, previous=joined["b"])], {T: 6})
    assert left["b"][T] == frozenset(range(6))
    # Who has more keeps the extra one.
    five = [candidate("a", T, previous={T: frozenset({0, 1})}), candidate("b", T, previous={T: frozenset({2, 3, 4})})]
    assert assign_uniform(five, {T: 5}) == {"a": {T: frozenset({0, 1})}, "b": {T: frozenset({2, 3, 4})}}


def test_uniform_forgets_topics_that_are_gone_and_takes_new_partitions() -> None:
    result = assign_uniform([candidate("a", T, previous={T: frozenset({0, 9}), U: frozenset({0})})], {T: 3})
    assert result == {"a": {T: frozenset({0, 1, 2})}}


def test_uniform_balances_members_with_different_subscriptions() -> None:
    members = [candidate("a", T, previous={T: frozenset(range(6))}), candidate("b", T, U)]
    result = assign_uniform(members, {T: 6, U: 2})
    assert sizes(result) == [4, 4]
    assert result["b"][U] == frozenset({0, 1})


@st.composite
def groups(draw: st.DrawFn) -> tuple[list[Candidate], dict[UUID, int]]:
    partitions = {topic_id: draw(st.integers(0, 7)) for topic_id in TOPICS}
    names = draw(st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1))
    same = draw(st.booleans())
    everyone = draw(st.sets(st.sampled_from(TOPICS)))
    owner = {
        (topic_id, number): draw(st.sampled_from([*names, "nobody"]))
        for topic_id in TOPICS
        for number in range(draw(st.integers(0, 7)))
    }
    members = []
    for name in names:
        wanted = everyone if same else draw(st.sets(st.sampled_from(TOPICS)))
        had: dict[UUID, set[int]] = {}
        for (topic_id, number), who in owner.items():
            if who == name:
                had.setdefault(topic_id, set()).add(number)
        members.append(candidate(name, *wanted, previous={key: frozenset(value) for key, value in had.items()}))
    return members, partitions


@given(groups(), st.sampled_from(sorted(ASSIGNORS)))
def test_every_partition_goes_to_one_subscriber(group: tuple[list[Candidate], dict[UUID, int]], name: str) -> None:
    members, partitions = group
    result = ASSIGNORS[name](members, partitions)
    assert result.keys() == {member.member_id for member in members}
    given_out = [pair for assignment in result.values() for pair in pairs(assignment)]
    assert len(given_out) == len(set(given_out))
    wanted = {topic_id for member in members for topic_id in member.topics}
    assert set(given_out) == {(topic_id, number) for topic_id in wanted for number in range(partitions[topic_id])}
    for member in members:
        assert result[member.member_id].keys() <= member.topics
        assert all(result[member.member_id].values()), "a topic without partitions is left out"


@given(groups())
def test_uniform_is_balanced_and_settles(group: tuple[list[Candidate], dict[UUID, int]]) -> None:
    members, partitions = group
    result = assign_uniform(members, partitions)
    count = {name: len(list(pairs(assignment))) for name, assignment in result.items()}
    topics_of = {member.member_id: member.topics for member in members}
    for giver, assignment in result.items():
        for topic_id in assignment:
            for taker, wanted in topics_of.items():
                assert topic_id not in wanted or count[giver] - count[taker] <= 1
    again = [Candidate(m.member_id, m.instance_id, m.topics, result[m.member_id]) for m in members]
    assert assign_uniform(again, partitions) == result, "a balanced assignment stays as it is"
