"""Limits on connections and request memory."""

from dataclasses import replace

from ottla.broker.server.limits import ConnectionLimits, RequestMemory
from ottla.config.broker import BrokerSettings


def test_connections_are_limited_in_all_and_by_address() -> None:
    settings = replace(
        BrokerSettings(), max_connections=3, max_connections_per_ip=2, max_connections_per_ip_overrides="10.0.0.9:1"
    )
    limits = ConnectionLimits(lambda: settings)
    for host in ("10.0.0.1", "10.0.0.1"):
        assert limits.refusal(host) is None
        limits.opened(host)
    assert "per.ip" in (limits.refusal("10.0.0.1") or "")
    assert limits.refusal("10.0.0.9") is None
    limits.opened("10.0.0.9")
    assert "max.connections is 3" in (limits.refusal("10.0.0.2") or "")
    limits.closed("10.0.0.1")
    assert "per.ip is 1" in (limits.refusal("10.0.0.9") or "")
    assert limits.refusal("10.0.0.2") is None


def test_connections_come_no_faster_than_the_rate() -> None:
    settings = replace(BrokerSettings(), max_connection_creation_rate=10)
    limits = ConnectionLimits(lambda: settings)
    assert [limits.wait_before_next(0.0) for _ in range(10)] == [0.0] * 10
    wait = limits.wait_before_next(0.0)
    assert 0 < wait <= 0.1
    assert limits.wait_before_next(wait + 1e-9) == 0.0


def test_who_waits_for_memory_goes_on_when_it_is_given_back() -> None:
    memory = RequestMemory(lambda: 100)
    resumed: list[str] = []
    seen = []
    for _ in range(2):
        memory.take(60)
        seen.append(memory.exhausted)
    assert seen == [False, True]
    memory.when_available(lambda: resumed.append("a"))
    memory.give_back(10)
    assert not resumed
    memory.give_back(20)
    assert resumed == ["a"]
    assert not RequestMemory(lambda: -1).exhausted
