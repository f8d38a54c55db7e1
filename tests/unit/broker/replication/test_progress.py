"""The rules of progress: what counts as caught up; nothing is ever committed that an in-sync replica misses."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.replication.progress import Progress
from ottla.broker.replication.suspension import SuspensionState, may_go_on

LAG_S = 10.0
REPLICAS = (1, 2, 3)


def progress(isr: tuple[int, ...] = REPLICAS, epoch_start: int = 0) -> Progress:
    return Progress(1, REPLICAS, isr, epoch_start=epoch_start, lag_max_s=LAG_S, now_s=0.0)


def test_committed_is_what_the_slowest_in_sync_replica_has() -> None:
    known = progress()
    known.fetched(2, 10, 0, 12, 1.0, -1)
    known.fetched(3, 7, 0, 12, 1.0, -1)
    assert known.committed_to(12, 1.0) == 7
    known.adopt(REPLICAS, (1, 2), 1.0)
    assert known.committed_to(12, 50.0) == 10


def test_one_that_never_fetched_holds_everything_back() -> None:
    known = progress()
    known.fetched(2, 10, 0, 12, 1.0, -1)
    assert known.committed_to(12, 1.0) == -1


def test_a_leader_without_others_in_sync_is_alone() -> None:
    assert progress(isr=(1,)).committed_to(12, 1.0) is None


def test_it_is_caught_up_when_it_reaches_where_the_leader_was_at_its_fetch_before() -> None:
    known = progress()
    known.fetched(2, 5, 0, 10, 1.0, -1)
    known.fetched(2, 10, 0, 20, 2.0, -1)
    follower = known.follower(2)
    assert follower is not None
    assert follower.caught_up_s == 1.0
    known.fetched(2, 19, 0, 30, 3.0, -1)
    assert follower.caught_up_s == 1.0, "it did not get to 20"
    known.fetched(2, 40, 0, 40, 4.0, -1)
    assert follower.caught_up_s == 4.0


def test_laggards_are_those_who_have_not_caught_up_for_too_long() -> None:
    known = progress()
    known.fetched(2, 10, 0, 10, 1.0, -1)
    known.fetched(3, 5, 0, 10, 1.0, -1)
    assert known.laggards(10, 9.0) == []
    assert known.laggards(10, 12.0) == [3], "at the beginning of a leader epoch everyone in sync gets the full time"
    known.begin_change((1, 2))
    assert known.laggards(10, 100.0) == [], "one change at a time"


def test_a_follower_may_join_that_has_all_that_is_committed_and_all_that_the_leader_found() -> None:
    known = progress(isr=(1, 2), epoch_start=8)
    known.fetched(3, 7, 0, 10, 1.0, -1)
    assert not known.joiner(3, 5)
    known.fetched(3, 8, 0, 10, 1.0, -1)
    assert known.joiner(3, 5)
    assert not known.joiner(3, 9)
    known.begin_change((1, 2, 3))
    assert not known.joiner(3, 5)


def test_who_is_being_taken_in_counts_at_once_and_who_is_being_left_out_until_that_is_written() -> None:
    known = progress(isr=(1, 2))
    known.fetched(2, 10, 0, 10, 1.0, -1)
    known.fetched(3, 9, 0, 10, -100.0, -1)
    assert known.committed_to(10, 1.0) == 10
    known.begin_change((1, 2, 3))
    assert known.committed_to(10, 1.0) == 9
    known.adopt(REPLICAS, (1, 2, 3), 1.0)
    known.begin_change((1, 2))
    assert known.committed_to(10, 100.0) == 9
    known.adopt(REPLICAS, (1, 2), 100.0)
    assert known.committed_to(10, 100.0) == 10


def test_one_that_keeps_up_is_waited_for_before_it_joins() -> None:
    known = progress(isr=(1,))
    known.fetched(2, 10, 0, 10, 1.0, -1)
    assert known.committed_to(15, 2.0) == 10
    assert known.committed_to(15, 1.0 + LAG_S + 0.1) is None


def test_a_new_life_is_not_believed_what_the_last_one_had() -> None:
    known = progress(isr=(1, 2))
    known.fetched(3, 10, 0, 10, 1.0, 77)
    known.forget(3)
    assert not known.joiner(3, 0)
    known.fetched(2, 10, 0, 10, 1.0, 78)
    known.forget(2)
    assert known.committed_to(10, 1.0) == -1


def test_the_low_watermark_is_that_of_the_living() -> None:
    known = progress()
    known.fetched(2, 10, 3, 10, 1.0, -1)
    known.fetched(3, 10, 1, 10, 1.0, -1)
    assert known.low_watermark(5, (1, 2, 3)) == 1
    assert known.low_watermark(5, (1, 2)) == 3
    assert known.low_watermark(5, (1,)) == 5


def test_a_silent_store_lets_those_go_on_whom_everyone_follows() -> None:
    assert may_go_on(1, (1,), {}, 1000.0, 6.0)
    assert may_go_on(1, (1, 2), {2: 995.0}, 1000.0, 6.0)
    assert not may_go_on(1, (1, 2), {2: 993.0}, 1000.0, 6.0)
    assert not may_go_on(1, (1, 2, 3), {2: 1000.0}, 1000.0, 6.0)


def test_a_silent_store_and_a_broker_that_slept_are_doubtful_after_a_session_timeout() -> None:
    suspension = SuspensionState()
    suspension.timeout_s = 6.0
    suspension.tick(0.0)
    suspension.begin(1.0)
    assert not suspension.is_due(2.0)
    suspension.tick(2.0)
    suspension.tick(4.0)
    suspension.tick(6.0)
    assert not suspension.is_due(7.0)
    assert suspension.is_due(7.1)
    suspension.end()
    assert not suspension.is_due(7.2)
    suspension.tick(8.0)
    assert not suspension.is_due(12.0), "it slept, but not long enough to be declared dead"
    assert suspension.is_due(14.1)
    for now in range(15, 18):
        suspension.tick(float(now))
        assert suspension.is_due(now)
    suspension.tick(18.1)
    assert not suspension.is_due(18.2), "had the session ended, the store would have said so"


def test_a_store_that_never_forgets_leaves_no_doubt() -> None:
    suspension = SuspensionState()
    suspension.timeout_s = 1e12
    suspension.tick(0.0)
    assert not suspension.is_watching


EVENTS = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 5)),
    st.tuples(st.just("fetch"), st.sampled_from((2, 3)), st.integers(0, 5)),
    st.tuples(st.just("begin"), st.sets(st.sampled_from((2, 3)))),
    st.tuples(st.just("written"), st.booleans()),
    st.tuples(st.just("time"), st.floats(0, 15)),
    st.tuples(st.just("new broker epoch"), st.sampled_from((2, 3))),
)


@given(st.lists(EVENTS, max_size=60))
def test_whatever_happens_the_in_sync_have_what_is_committed(events: list[tuple]) -> None:  # type: ignore[type-arg]
    """Whoever the metadata may call in sync has everything below the high watermark."""
    known = progress()
    end, now_s, high_watermark = 0, 0.0, 0
    has = {2: 0, 3: 0}
    asked: tuple[int, ...] | None = None
    for event, *arguments in events:
        if event == "append":
            end += arguments[0]
        elif event == "fetch":
            replica, more = arguments
            has[replica] = min(end, has[replica] + more)
            known.fetched(replica, has[replica], 0, end, now_s, -1)
        elif event == "begin" and known.pending is None:
            isr = (1, *sorted(arguments[0]))
            if all(replica in known.isr or known.joiner(replica, high_watermark) for replica in arguments[0]):
                known.begin_change(isr)
                asked = isr
        elif event == "written" and asked is not None:
            known.adopt(REPLICAS, asked if arguments[0] else known.isr, now_s)
            asked = None
        elif event == "time":
            now_s += arguments[0]
        elif event == "new broker epoch":
            known.forget(arguments[0])
        reached = known.committed_to(end, now_s)
        high_watermark = max(high_watermark, end if reached is None else reached)
        for replica in {*known.isr, *(asked or ())} - {1}:
            assert has[replica] >= high_watermark
