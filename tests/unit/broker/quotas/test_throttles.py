"""Which replicas are throttled, and when they must wait."""

from ottla.broker.quotas.rates import NO_LIMIT, ByteQuota
from ottla.broker.quotas.throttles import ReplicationThrottle, throttled_partitions


def throttle(limit: int, **topics: tuple[str, ...]) -> ReplicationThrottle:
    return ReplicationThrottle(1, ByteQuota(lambda: limit, 11, 1.0), lambda topic: topics.get(topic, ()))


def test_lists_name_partitions_and_brokers() -> None:
    assert throttled_partitions(("0:1", "1:2", "5:1"), 1) == frozenset({0, 5})
    assert throttled_partitions(("0:1", "1:2", "5:1"), 3) == frozenset()
    assert throttled_partitions((), 1) == frozenset()
    assert throttled_partitions(("*",), 1) is None


def test_only_listed_replicas_are_held_up_and_counted() -> None:
    some = throttle(1000, t=("0:1", "1:2"), all=("*",))
    assert not some.holds_up("t", 0, 0.0)
    some.note("t", 1, 10**9, 0.0)
    some.note("other", 0, 10**9, 0.0)
    assert not some.holds_up("t", 0, 0.0)
    some.note("t", 0, 1500, 0.0)
    some.note("all", 7, 1500, 0.0)
    assert some.holds_up("t", 0, 0.0)
    assert some.holds_up("all", 3, 0.0)
    assert not some.holds_up("t", 1, 0.0)
    assert not some.holds_up("other", 0, 0.0)
    assert some.seconds_to_wait(0.0) == 3.0
    assert not some.holds_up("t", 0, 3.0)


def test_without_a_limit_nothing_waits() -> None:
    free = throttle(NO_LIMIT, t=("*",))
    free.note("t", 0, 10**15, 0.0)
    assert not free.holds_up("t", 0, 0.0)
