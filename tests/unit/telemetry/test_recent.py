"""Times of the last minute."""

from ottla.telemetry.recent import RecentTimes


def test_the_last_window_and_the_one_before_it_count() -> None:
    times = RecentTimes()
    assert (times.mean(0), times.longest(0)) == (0, 0)
    times.note(10, 0)
    times.note(30, 29)
    assert (times.mean(29), times.longest(29)) == (20, 30)
    times.note(50, 31)
    assert (times.mean(31), times.longest(31)) == (30, 50)
    assert (times.mean(62), times.longest(62)) == (50, 50), "the first window is forgotten"
    assert (times.mean(500), times.longest(500)) == (0, 0)
