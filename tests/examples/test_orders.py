"""The orders example: generator and truth agree with themselves, the plot is right, and the demo as a whole passes."""

from collections import Counter
from pathlib import Path

import pytest
from examples.orders.demo import main, pipeline_file
from examples.orders.generator import DEAD, EVENT_TIME, FIRST_ORDER, Kind, customers, events, latest_customers
from examples.orders.plot import Sample, as_picture, as_text, bars, rates
from examples.orders.stopwatch import Stopwatch
from examples.orders.truth import Revenue, expected, window_of

RECORDS = 3_000
CUSTOMERS = 100


def test_the_same_seed_makes_the_same_events() -> None:
    assert list(events(1, RECORDS, CUSTOMERS)) == list(events(1, RECORDS, CUSTOMERS))
    assert list(events(1, RECORDS, CUSTOMERS)) != list(events(2, RECORDS, CUSTOMERS))


def test_every_kind_occurs_and_is_what_it_says() -> None:
    found = list(events(1, RECORDS, CUSTOMERS))
    known = latest_customers(1, CUSTOMERS)
    assert {event.kind for event in found} == set(Kind)
    seen: Counter[str] = Counter()
    for number, event in enumerate(found):
        order = event.order
        if event.kind is Kind.LATE:
            assert number > RECORDS // 2
            assert order is not None
            assert order.at < FIRST_ORDER
        if event.kind is Kind.STRANGER:
            assert order is not None
            assert order.customer not in known
        if event.kind is Kind.GOOD:
            assert order is not None
            assert order.customer in known
            seen[order.id] += 1
        if event.kind is Kind.DUPLICATE:
            assert order is not None
            assert seen[order.id] == 1
    assert set(seen.values()) == {1}


def test_customers_leave_and_change() -> None:
    records = list(customers(1, CUSTOMERS))
    assert len(records) > CUSTOMERS
    assert sum(1 for _, value, _ in records if value is None) == CUSTOMERS // 20
    assert len(latest_customers(1, CUSTOMERS)) == CUSTOMERS - CUSTOMERS // 20


def test_the_truth_counts_every_event_once() -> None:
    truth = expected(events(1, RECORDS, CUSTOMERS), latest_customers(1, CUSTOMERS))
    assert truth.records == RECORDS + 1
    assert len(truth.sales) == truth.kinds[Kind.GOOD]
    assert truth.dead == sum(truth.kinds[kind] for kind in DEAD)
    # The last order closes the windows of all others and has one of its own, which nothing closes.
    closed = sum((value.orders for value in truth.revenue.values()), 0)
    assert closed == len(truth.sales) - 1
    assert window_of(FIRST_ORDER + EVENT_TIME / 2).minute % 5 == 0
    assert all(isinstance(value, Revenue) for value in truth.revenue.values())


def test_rates_and_bars_show_what_was_sampled(tmp_path: Path) -> None:
    samples = [Sample(0, 0, 0), Sample(1, 100, 0), Sample(2, 100, 50), Sample(4, 100, 100)]
    throughput, lag = rates(samples, 4)
    assert throughput == [0, 50, 0, 50]
    assert lag == [100, 50, 50, 0]
    assert bars([0, 4, 8], 2) == ["  █", " ██"]
    assert bars([1, 8], 1) == ["▁█"]
    text = as_text(samples, {1.5: "✗"}, columns=8, height=3)
    assert text.count("│") == 6
    assert "✗" in text
    assert as_picture(samples, {1.5: "✗"}, tmp_path / "plots" / "plot.png")
    assert (tmp_path / "plots" / "plot.png").stat().st_size > 1_000


def test_every_moment_of_a_run_belongs_to_one_part_of_it() -> None:
    times = iter([0.0, 1.0, 3.0, 7.5])
    watch = Stopwatch(lambda: next(times))
    watch.part("start")
    watch.part("work")
    assert [(part.name, part.seconds) for part in watch.stop()] == [("start", 2.0), ("work", 4.5)]


def test_batches_of_a_small_run_are_small() -> None:
    assert "max_records: 500" in pipeline_file(4_000)


@pytest.mark.timeout(1800)
def test_the_demo_kills_its_driver_and_finds_everything_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["--records", "4000", "--per-second", "1000", "--keep", str(tmp_path)])
    shown = capsys.readouterr().out
    assert code == 0, shown
    assert "kill -9" in shown
    assert "Where the time went" in shown
    assert "Every order counts exactly once." in shown
