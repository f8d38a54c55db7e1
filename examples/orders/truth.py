"""What must come out of the pipeline, computed from the events without Spark."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from examples.orders.generator import DEAD, Customer, Event, Kind

WINDOW = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Sale:
    """An order as the pipeline writes it."""

    id: str
    customer: str
    name: str
    country: str
    item: str
    quantity: int
    total_cents: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Revenue:
    orders: int
    total_cents: int


WindowKey = tuple[datetime, str]
"""When a window begins, and the country."""


@dataclass(frozen=True, slots=True)
class Truth:
    kinds: Counter[Kind] = field(default_factory=Counter)
    sales: dict[str, Sale] = field(default_factory=dict)
    revenue: dict[WindowKey, Revenue] = field(default_factory=dict)
    dead_values: Counter[bytes] = field(default_factory=Counter)

    @property
    def records(self) -> int:
        return self.kinds.total()

    @property
    def dead(self) -> int:
        return self.dead_values.total()


def expected(events: Iterable[Event], customers: Mapping[str, Customer]) -> Truth:
    truth = Truth()
    for event in events:
        truth.kinds[event.kind] += 1
        if event.kind in DEAD:
            truth.dead_values[event.value] += 1
        if event.kind is not Kind.GOOD:
            continue
        order = event.order
        assert order is not None
        customer = customers[order.customer]
        total = order.quantity * order.price_cents
        truth.sales[order.id] = Sale(
            order.id, order.customer, customer.name, customer.country, order.item, order.quantity, total, order.at
        )
    truth.revenue.update(revenue_of(truth.sales.values()))
    return truth


def window_of(at: datetime) -> datetime:
    return at - timedelta(seconds=at.timestamp() % WINDOW.total_seconds())


def revenue_of(sales: Iterable[Sale]) -> dict[WindowKey, Revenue]:
    """Every window but the last, which nothing has closed."""
    orders: Counter[WindowKey] = Counter()
    totals: Counter[WindowKey] = Counter()
    for sale in sales:
        key = (window_of(sale.at), sale.country)
        orders[key] += 1
        totals[key] += sale.total_cents
    last = max((start for start, _ in orders), default=None)
    return {key: Revenue(orders[key], totals[key]) for key in orders if key[0] != last}
