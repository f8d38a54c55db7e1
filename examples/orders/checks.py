"""What came out beside what had to come out."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from examples.orders.generator import Kind
from examples.orders.reading import read_topic, revenue_in_topic, sales_in_parquet, sales_in_topic
from examples.orders.truth import Sale, Truth


@dataclass(frozen=True, slots=True)
class Check:
    what: str
    expected: int
    found: int

    @property
    def good(self) -> bool:
        return self.expected == self.found


def check_everything(truth: Truth, bootstrap: str, lake: Path, *, processed: int, late: int) -> list[Check]:
    """`processed` and `late` are what the pipeline says of itself; all else is read from where it wrote."""
    dead = list(read_topic(bootstrap, "orders.dead"))
    dead_values = Counter(message.value() or b"" for message in dead)
    topic = list(sales_in_topic(bootstrap, "orders.sales"))
    cancelled = truth.kinds[Kind.CANCELLED]
    return [
        Check("orders processed", truth.records, processed),
        *_sales("topic", truth, topic),
        *_sales("Parquet", truth, sales_in_parquet(lake)),
        *_revenue(truth, bootstrap),
        Check("dead letters", truth.dead, len(dead)),
        Check("dead letters with other bytes than were sent", 0, (dead_values - truth.dead_values).total()),
        Check("orders that came too late", truth.kinds[Kind.LATE], late),
        Check(
            "duplicates left out", truth.kinds[Kind.DUPLICATE], processed - len(topic) - len(dead) - cancelled - late
        ),
    ]


def _sales(where: str, truth: Truth, found: Iterable[Sale]) -> list[Check]:
    sales = list(found)
    by_id = {sale.id: sale for sale in sales}
    other = sum(1 for sale in sales if truth.sales.get(sale.id) != sale)
    return [
        Check(f"sales in the {where}" if where == "topic" else f"sales in {where}", len(truth.sales), len(sales)),
        Check("  of these, twice", 0, len(sales) - len(by_id)),
        Check("  of these, not as they should be", 0, other),
    ]


def _revenue(truth: Truth, bootstrap: str) -> list[Check]:
    rows = list(revenue_in_topic(bootstrap, "orders.revenue"))
    return [
        Check("windows of revenue", len(truth.revenue), len(rows)),
        Check("  of these, not as they should be", 0, sum(1 for key, value in rows if truth.revenue.get(key) != value)),
        Check(
            "revenue in cents",
            sum(value.total_cents for value in truth.revenue.values()),
            sum(value.total_cents for _, value in rows),
        ),
    ]
