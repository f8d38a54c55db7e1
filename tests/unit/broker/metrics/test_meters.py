"""Rates of meters, as JMX tells them."""

import math

import pytest

from ottla.broker.metrics.jolokia import Meters
from ottla.telemetry.declared.topics import BYTES_IN
from ottla.telemetry.registry import Telemetry


def test_rates_weigh_the_last_minutes_most_and_stop_when_nobody_asks() -> None:
    telemetry, counted = Telemetry(), [0]
    telemetry.observe(BYTES_IN, lambda: [(("news",), counted[0])])
    meters = Meters(telemetry)

    def one_minute() -> float:
        return meters.rates(telemetry.table_of(BYTES_IN))[BYTES_IN, ("news",)].one_minute

    meters.tick()
    counted[0] = 50
    meters.tick()
    assert one_minute() == 0, "nobody has asked for MBeans"
    meters.wanted()
    meters.tick()
    counted[0] = 100
    meters.tick()
    assert one_minute() == pytest.approx(10 * (1 - math.exp(-5 / 60)))
    for _ in range(200):
        counted[0] += 50
        meters.tick()
    assert one_minute() == pytest.approx(10, rel=0.01)
    for _ in range(200):
        meters.tick()
    assert one_minute() == pytest.approx(0, abs=0.01)
