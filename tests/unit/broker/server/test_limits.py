"""Limits on connections and request memory."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.server.limits import ADDRESSES_KEPT_MAX, ConnectionLimits, RequestMemory
from ottla.config.broker import BrokerSettings
from ottla.config.load import settings_from


def limits_of(rates: dict[str | None, int] | None = None, **settings: str) -> ConnectionLimits:
    """With a listener for clients and one between brokers."""
    given = {name.replace("__", ".name.").replace("_", "."): value for name, value in settings.items()}
    made = settings_from(
        {
            "listeners": "CLIENTS://127.0.0.1:1,BROKERS://127.0.0.1:2",
            "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
            "inter.broker.listener.name": "BROKERS",
            **given,
        }
    )
    limits = ConnectionLimits(lambda: made, lambda: rates or {})
    limits.use_listeners(["CLIENTS", "BROKERS"], "BROKERS")
    return limits


def test_a_place_is_needed_on_broker_and_listener_but_brokers_need_none_of_the_brokers() -> None:
    limits = limits_of(max_connections="4", listener__clients_max_connections="3")
    for _ in range(3):
        assert limits.has_room("CLIENTS")
        limits.opened("CLIENTS", "h")
    assert not limits.has_room("CLIENTS"), "of the listener"
    limits.closed("CLIENTS", "h")
    for _ in range(2):
        assert limits.has_room("BROKERS")
        limits.opened("BROKERS", "h")
    assert not limits.has_room("CLIENTS"), "of the broker"
    assert limits.excess() == 0
    for _ in range(2):
        assert limits.has_room("BROKERS")
        limits.opened("BROKERS", "h")
    assert not limits.has_room("BROKERS"), "its own limit is the broker's"
    assert limits.excess() == 2
    limits.closed("CLIENTS", "h")
    limits.closed("CLIENTS", "h")
    assert limits.excess() == 0, "brokers are never closed"


def test_the_only_listener_is_not_protected() -> None:
    limits = ConnectionLimits(lambda: replace(BrokerSettings(), max_connections=1))
    limits.use_listeners(["PLAINTEXT"], "PLAINTEXT")
    limits.opened("PLAINTEXT", "h")
    assert not limits.has_room("PLAINTEXT")
    assert not limits.is_protected("PLAINTEXT")


def test_an_address_has_so_many() -> None:
    limits = limits_of(max_connections_per_ip="2", max_connections_per_ip_overrides="10.0.0.9:1")
    for _ in range(2):
        assert limits.most_from("10.0.0.1") is None
        limits.opened("CLIENTS", "10.0.0.1")
    assert limits.most_from("10.0.0.1") == 2
    limits.opened("CLIENTS", "10.0.0.9")
    assert limits.most_from("10.0.0.9") == 1
    limits.closed("CLIENTS", "10.0.0.1")
    assert limits.most_from("10.0.0.1") is None


def test_connections_come_no_faster_than_the_rate() -> None:
    limits = limits_of(max_connection_creation_rate="10")
    assert [limits.arrived("CLIENTS", 0) for _ in range(100)] == [0] * 100, "ten seconds' worth"
    assert limits.arrived("CLIENTS", 0) == 100
    assert limits.arrived("CLIENTS", 0) == 200
    assert [limits.arrived("CLIENTS", 0) for _ in range(20)][-1] == 1000, "never longer than a window"
    assert limits.arrived("BROKERS", 0) == 0, "others do not use up the rate of brokers"


def test_a_listener_may_have_a_rate_of_its_own() -> None:
    limits = limits_of(listener__clients_max_connection_creation_rate="1")
    assert [limits.arrived("CLIENTS", 0) for _ in range(11)] == [0] * 10 + [1000]
    assert [limits.arrived("BROKERS", 0) for _ in range(50)] == [0] * 50


def test_an_address_that_comes_too_often_counts_nowhere() -> None:
    limits = limits_of({"10.0.0.1": 1, None: 3}, max_connection_creation_rate="2")
    for _ in range(10):
        assert limits.arrived("CLIENTS", 0) == 0
        assert limits.address_waits_ms("CLIENTS", "10.0.0.1", 0) == 0
    for _ in range(50):
        assert limits.arrived("CLIENTS", 0) == 0, "those that were not served do not count"
        assert limits.address_waits_ms("CLIENTS", "10.0.0.1", 0) == 1000
    for _ in range(10):
        assert limits.arrived("CLIENTS", 0) == 0
        assert limits.address_waits_ms("CLIENTS", "10.0.0.2", 0) == 0
    assert limits.arrived("CLIENTS", 0) == 500
    assert limits.address_waits_ms("CLIENTS", "10.0.0.1", 60_000) == 0, "later it may"


def test_addresses_without_a_quota_are_not_measured_and_many_are_forgotten() -> None:
    limits = limits_of({"10.0.0.1": 1})
    assert limits.address_waits_ms("CLIENTS", "10.0.0.2", 0) == 0
    assert not limits._came_from
    limits = limits_of({None: 1})
    for number in range(3 * ADDRESSES_KEPT_MAX):
        assert limits.address_waits_ms("CLIENTS", f"h{number}", number * 10) == 0
    assert len(limits._came_from) <= ADDRESSES_KEPT_MAX + 1


@given(st.lists(st.tuples(st.sampled_from(["CLIENTS", "BROKERS"]), st.sampled_from("abc"), st.booleans())))
def test_counts_are_those_of_what_is_open(events: list[tuple[str, str, bool]]) -> None:
    opened: list[tuple[str, str]] = []
    limits = limits_of(max_connections="3", max_connections_per_ip="2")
    for listener, host, comes in events:
        if comes and limits.has_room(listener) and limits.most_from(host) is None:
            limits.opened(listener, host)
            opened.append((listener, host))
        elif not comes and (listener, host) in opened:
            limits.closed(listener, host)
            opened.remove((listener, host))
        clients = [each for each in opened if each[0] == "CLIENTS"]
        assert limits.total == len(opened)
        assert limits.has_room("CLIENTS") == (len(opened) < 3)
        assert limits.excess() == min(max(0, len(opened) - 3), len(clients))
        assert (limits.most_from("a") is not None) == (sum(1 for _, at in opened if at == "a") >= 2)


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
