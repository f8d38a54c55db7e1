"""What is remembered of groups, and lag as time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.names import TopicPartition
from ottla.monitoring.lag.book import GroupLag, LagBook
from ottla.monitoring.lag.rules import Rules, Status
from ottla.monitoring.lag.seconds import caught_up_seconds, waiting_seconds
from ottla.monitoring.lag.window import Commit, End
from ottla.monitoring.readings import GroupReading, Owner, Reading

P = TopicPartition("orders", 0)
OWNER = {P: Owner("10.0.0.7", "app")}
SECOND = 1000


def reading(end: int, commit: int | None, *, owned: bool = True, whole: bool = True) -> Reading:
    group = GroupReading({} if commit is None else {P: commit}, OWNER if owned else {}, "Stable", 1)
    return Reading({P: end}, {"readers": group}, {"orders": 1}, whole)


def book_of(*looks: Reading, every_ms: int = 10 * SECOND) -> tuple[LagBook, int]:
    book = LagBook(Rules())
    now = 0
    for look in looks:
        now += every_ms
        book.note(look, now)
    return book, now


def status(*looks: Reading) -> Status:
    book, now = book_of(*looks)
    group = book.group("readers", now)
    assert group is not None
    return group.partitions[0].status


def test_a_member_that_lives_and_does_not_move_is_stalled_and_one_that_left_has_stopped() -> None:
    assert status(*(reading(100 + 10 * n, 50) for n in range(10))) is Status.STALL
    assert status(*(reading(100 + 10 * n, 50, owned=False) for n in range(10))) is Status.STOP
    assert status(*(reading(100 + 10 * n, 5 * n) for n in range(10))) is Status.WARN
    assert status(*(reading(100 + 10 * n, 10 * n + 100) for n in range(10))) is Status.OK
    assert (
        status(*(reading(200, 100 + n) for n in range(5)), *(reading(200, 10 + n) for n in range(5))) is Status.REWIND
    )


def test_what_is_gone_is_forgotten_but_not_what_could_not_be_asked() -> None:
    book, now = book_of(reading(9, 3))
    book.note(Reading({P: 10}, {}, {"orders": 1}, whole=False), now + 1)
    assert book.groups == ["readers"]
    book.note(Reading({P: 10}, {}, {"orders": 1}, whole=True), now + 2)
    assert book.groups == []
    book.note(Reading({}, {}, {"others": 2}, whole=True), now + 3)
    assert (book.topics, book.ends("orders"), book.ends("others")) == (["others"], None, [0, 0])


def test_a_silent_group_is_forgotten_after_its_time() -> None:
    rules = Rules(expire_group_ms=60 * SECOND)
    book = LagBook(rules)
    for now in range(0, 61 * SECOND, SECOND):
        book.note(reading(9, 3, owned=False), now)
    assert book.groups == ["readers"]
    book.note(reading(9, 3, owned=False), 62 * SECOND)
    assert book.groups == []


def test_a_group_that_somebody_deleted_stays_away_until_it_commits_again() -> None:
    book, now = book_of(reading(9, 3, owned=False))
    assert book.forget("readers")
    assert not book.forget("readers")
    book.note(reading(12, 3, owned=False), now + 1)
    assert book.groups == []
    book.note(reading(12, 4, owned=False), now + 2)
    assert book.groups == ["readers"]
    book.forget("readers")
    book.note(reading(12, 4, owned=True), now + 3)
    assert book.groups == ["readers"], "a member has come back to it"


@pytest.mark.parametrize(
    ("allow", "deny", "wanted"), [("", "", True), ("^read", "", True), ("^x", "", False), ("", "^(read|x)", False)]
)
def test_groups_are_chosen_by_pattern(allow: str, deny: str, wanted: bool) -> None:
    book = LagBook(Rules(), allow=allow, deny=deny)
    book.note(reading(9, 3), 1)
    assert book.groups == (["readers"] if wanted else [])


@given(st.lists(st.integers(1, 50), min_size=2, max_size=10), st.integers(0, 400), st.integers(0, 30))
def test_the_age_of_a_record_lies_between_the_looks_that_passed_it(grown: list[int], offset: int, later: int) -> None:
    ends = [End(0, 0)]
    for n, more in enumerate(grown, 1):
        ends.append(End(ends[-1].offset + more, n * SECOND))
    now = ends[-1].observed_ms + later * SECOND
    age = waiting_seconds(offset, ends, now)
    if offset >= ends[-1].offset:
        assert age == 0
        return
    seen = next(end for end in ends if end.offset > offset)
    before = max((end for end in ends if end.offset <= offset), key=lambda end: end.observed_ms)
    assert age is not None
    assert (now - seen.observed_ms) / SECOND <= age <= (now - before.observed_ms) / SECOND


def test_the_age_of_what_was_written_before_the_window_is_asked_of_the_record() -> None:
    book, now = book_of(*(reading(100 + n, 50) for n in range(3)))

    def judged(now_ms: int) -> list[GroupLag]:
        group = book.group("readers", now_ms)
        assert group is not None
        return [group]

    assert book.without_age(judged(now)) == [(P, 50)]
    book.note_age(P, 50, now - 90 * SECOND)
    (group,) = judged(now)
    assert group.partitions[0].waiting_s == 90
    assert book.without_age(judged(now)) == []
    book.note(reading(110, 105), now + 1)
    assert book.without_age(judged(now + 1)) == []
    assert not book._ages_ms, "what was read is forgotten"


def test_when_a_consumer_will_have_caught_up() -> None:
    commits = [Commit(offset, n * SECOND, n * SECOND, 1) for n, offset in enumerate((0, 30, 60))]
    ends = [End(100 + 10 * n, n * SECOND) for n in range(3)]
    assert caught_up_seconds(commits, ends, 60) == 3, "30 a second against 10 a second"
    assert caught_up_seconds(commits, ends, 0) == 0
    assert caught_up_seconds([each._replace(offset=5 * n) for n, each in enumerate(commits)], ends, 60) is None
    assert caught_up_seconds(commits[:1], ends, 60) is None
