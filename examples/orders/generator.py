"""A made-up shop: customers, and a stream of orders with all that goes wrong in real ones.

Everything follows from a seed, so that whoever checks the outcome can make the same events again.
"""

import json
import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

FIRST_ORDER = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
EVENT_TIME = timedelta(hours=2)
"""How much time the orders of a run stand for."""
LATE_BY = timedelta(hours=6)
CLOSING_AFTER = timedelta(hours=6)
"""The last order comes so much later that every window before it is over."""

COUNTRIES = ("AT", "CH", "CZ", "DE", "FR", "IT", "PL", "SE")
ITEMS = ("apple", "bread", "cheese", "coffee", "honey", "pear", "soap", "tea", "walnut", "wine")
NAMES = ("Ada", "Bela", "Cleo", "Dora", "Emil", "Fritz", "Greta", "Hugo", "Ida", "Jan", "Kaja", "Leo", "Mila", "Nils")

QUANTITY_MAX = 100
"""The pipeline's own rule: more of one thing than this is a mistake."""

DUPLICATE_WITHIN = 300
"""A duplicate follows its original after at most so many orders."""


class Kind(StrEnum):
    GOOD = "good"
    DUPLICATE = "sent twice"
    LATE = "too late"
    CANCELLED = "cancelled"
    BROKEN_TEXT = "not JSON"
    WRONG_TYPE = "wrong type"
    TOO_MANY = "against a rule"
    STRANGER = "unknown customer"


DEAD = (Kind.BROKEN_TEXT, Kind.WRONG_TYPE, Kind.TOO_MANY, Kind.STRANGER)
"""Those that must end as dead letters."""

# How many in a thousand; the rest is good. Late ones come in the second half only: a pipeline cannot know that
# something is late before it has seen what is not.
SHARES = {
    Kind.DUPLICATE: 40,
    Kind.LATE: 10,
    Kind.CANCELLED: 30,
    Kind.BROKEN_TEXT: 4,
    Kind.WRONG_TYPE: 4,
    Kind.TOO_MANY: 4,
    Kind.STRANGER: 4,
}


@dataclass(frozen=True, slots=True)
class Customer:
    id: str
    name: str
    country: str


@dataclass(frozen=True, slots=True)
class Order:
    id: str
    customer: str
    item: str
    quantity: int
    price_cents: int
    at: datetime

    def to_json(self) -> bytes:
        fields = {
            "id": self.id,
            "customer": self.customer,
            "item": self.item,
            "quantity": self.quantity,
            "price_cents": self.price_cents,
            "at": self.at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
        return json.dumps(fields).encode()


@dataclass(frozen=True, slots=True)
class Event:
    kind: Kind
    key: bytes
    value: bytes
    order: Order | None
    """What the value says, where it can be read."""


def customers(seed: int, count: int) -> Iterator[tuple[bytes, bytes | None, Customer | None]]:
    """Records of a compacted topic: every customer, then changes, then some that leave (a null value)."""
    chosen = random.Random(f"{seed} customers")
    for number in range(count):
        yield _customer(chosen, number)
    for number in chosen.sample(range(count), count // 5):
        yield _customer(chosen, number)
    for number in chosen.sample(range(count), count // 20):
        yield customer_id(number).encode(), None, None


def customer_id(number: int) -> str:
    return f"c{number:04d}"


def _customer(chosen: random.Random, number: int) -> tuple[bytes, bytes, Customer]:
    customer = Customer(customer_id(number), chosen.choice(NAMES), chosen.choice(COUNTRIES))
    value = json.dumps({"id": customer.id, "name": customer.name, "country": customer.country})
    return customer.id.encode(), value.encode(), customer


def latest_customers(seed: int, count: int) -> dict[str, Customer]:
    """The table that the topic stands for."""
    table: dict[str, Customer] = {}
    for key, _, customer in customers(seed, count):
        if customer is None:
            table.pop(key.decode(), None)
        else:
            table[customer.id] = customer
    return table


def events(seed: int, count: int, customer_count: int) -> Iterator[Event]:
    """`count` records and a last one that closes every window."""
    chosen = random.Random(f"{seed} orders")
    known = sorted(latest_customers(seed, customer_count))
    recent: deque[Order] = deque(maxlen=DUPLICATE_WITHIN)
    for number in range(count):
        at = FIRST_ORDER + EVENT_TIME * number / count
        kind = _kind(chosen, late_allowed=number > count // 2, duplicate_allowed=bool(recent))
        event = _event(chosen, kind, number, at, known, recent)
        if event.kind is Kind.GOOD and event.order is not None:
            recent.append(event.order)
        yield event
    last = Order(f"o{count:07d}", known[0], ITEMS[0], 1, 100, FIRST_ORDER + EVENT_TIME + CLOSING_AFTER)
    yield Event(Kind.GOOD, last.id.encode(), last.to_json(), last)


def _kind(chosen: random.Random, *, late_allowed: bool, duplicate_allowed: bool) -> Kind:
    number = chosen.randrange(1000)
    for kind, share in SHARES.items():
        if number < share:
            forbidden = (kind is Kind.LATE and not late_allowed) or (kind is Kind.DUPLICATE and not duplicate_allowed)
            return Kind.GOOD if forbidden else kind
        number -= share
    return Kind.GOOD


def _event(
    chosen: random.Random, kind: Kind, number: int, at: datetime, known: list[str], recent: Sequence[Order]
) -> Event:
    if kind is Kind.DUPLICATE:
        again = chosen.choice(recent)
        return Event(kind, again.id.encode(), again.to_json(), again)
    order = Order(
        id=f"o{number:07d}",
        customer="nobody" if kind is Kind.STRANGER else chosen.choice(known),
        item=chosen.choice(ITEMS),
        quantity=_quantity(chosen, kind),
        price_cents=chosen.randrange(50, 5_000),
        at=at - LATE_BY if kind is Kind.LATE else at,
    )
    key = order.id.encode()
    if kind is Kind.BROKEN_TEXT:
        return Event(kind, key, order.to_json()[: -chosen.randrange(1, 20)], None)
    if kind is Kind.WRONG_TYPE:
        text = order.to_json().replace(b'"quantity": %d' % order.quantity, b'"quantity": "a few"')
        return Event(kind, key, text, None)
    return Event(kind, key, order.to_json(), order)


def _quantity(chosen: random.Random, kind: Kind) -> int:
    if kind is Kind.CANCELLED:
        return 0
    return chosen.randrange(QUANTITY_MAX + 1, 10 * QUANTITY_MAX) if kind is Kind.TOO_MANY else chosen.randrange(1, 10)
