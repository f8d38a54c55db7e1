"""Connections that come: how often, how long limits keep them waiting, and what their clients run."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator

from ottla.broker.server.listener import Server
from ottla.telemetry.declared import limits
from ottla.telemetry.metric import Metric, Value
from ottla.telemetry.registry import Telemetry

ADDRESSES_TOLD_MAX = 1_000
SOFTWARE_TOLD_MAX = 100
"""Clients say what they like: the kinds with the most connections are told."""

Readings = Iterator[tuple[tuple[str, ...], Value]]


def show(telemetry: Telemetry, server: Callable[[], Server | None]) -> None:
    def observe(metric: Metric, read: Callable[[Server, int], Readings]) -> None:
        def readings() -> Readings:
            found = server()
            if found is not None:
                yield from read(found, int(found.loop.time() * 1000))

        telemetry.observe(metric, readings)

    observe(limits.BROKER_ACCEPT_RATE, lambda found, now_ms: iter((((), found.limits.accept_rate(None, now_ms)),)))
    observe(
        limits.ACCEPT_RATE,
        lambda found, now_ms: (((name,), found.limits.accept_rate(name, now_ms)) for name in _listeners(found)),
    )
    observe(limits.ADDRESS_ACCEPT_RATE, _address_rates)
    observe(
        limits.ACCEPT_WAIT,
        lambda found, now_ms: (((name,), waits.mean_ms(now_ms)) for name, waits in found.limits.waits.items()),
    )
    observe(
        limits.ADDRESS_ACCEPT_WAIT,
        lambda found, now_ms: (((name,), waits.mean_ms(now_ms)) for name, waits in found.limits.address_waits.items()),
    )
    observe(
        limits.BLOCKED_SECONDS,
        lambda found, _: (((each.address.name,), each.blocked_seconds) for each in found.listeners),
    )
    observe(limits.SOFTWARE, _software)


def _listeners(server: Server) -> list[str]:
    return [each.address.name for each in server.listeners]


def _address_rates(server: Server, now_ms: int) -> Readings:
    for host, rate in itertools.islice(server.limits.address_rates(now_ms), ADDRESSES_TOLD_MAX):
        yield (host,), rate


def _software(server: Server, _: int) -> Readings:
    sessions = (each.session for each in tuple(server.connections))
    counted = Counter((each.listener, each.software_name, each.software_version) for each in sessions)
    yield from counted.most_common(SOFTWARE_TOLD_MAX)
