"""Throughput of clients with a quota, and of one without beside them: `make soak`, since it takes minutes."""

import pytest
from benchmarks.quotas import RATE, Look, minutes, of_ottla, rate_over_waves
from tests.chance import SOAK

WITHIN = 0.10
SECONDS = 132.0
"""Twelve waves: quotas let ten seconds' worth through at once, and a wave more or less would be a tenth of a minute."""


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.skipif(not SOAK, reason="takes four minutes; make soak runs it")
def test_clients_come_within_a_tenth_of_their_bound() -> None:
    figures = of_ottla(SECONDS)
    assert abs(figures.produced.over_waves / RATE - 1) < WITHIN, figures
    assert abs(figures.consumed.over_waves / RATE - 1) < WITHIN, figures
    assert figures.beside.over_waves > (1 - WITHIN) * figures.alone.over_waves, figures


def test_only_whole_waves_are_measured() -> None:
    """Each has ten seconds' worth; nine of the ten seconds are silent."""
    counted = [10 * (1 + second // 10) for second in range(40)]
    looks = [Look(float(second), counted[second]) for second in range(3, 40)]
    assert rate_over_waves(looks) == pytest.approx(1.0)
    assert (looks[-1].counted - looks[0].counted) / (looks[-1].at - looks[0].at) == pytest.approx(30 / 36)
    smooth = [Look(float(second), 2 * second) for second in range(40)]
    assert rate_over_waves(smooth) == pytest.approx(2.0)


def test_the_slowest_and_the_fastest_minute() -> None:
    counted = [10 * (1 + second // 10) for second in range(100)]
    looks = [Look(float(second), counted[second]) for second in range(100)]
    assert minutes(looks) == (1.0, 1.0), "six waves in each"
    assert minutes([Look(second, 3 * max(0, second - 30)) for second in range(100)]) == (1.5, 3.0)
    assert minutes([Look(0, 0), Look(10, 5)]) == (0.5, 0.5), "less than a minute"
