"""How a metric is declared."""

from enum import Enum
from typing import NamedTuple


class Kind(Enum):
    COUNTER = "counter"
    """Only grows while the broker runs."""
    GAUGE = "gauge"
    """How it is now."""
    HISTOGRAM = "histogram"
    """How values are distributed over the last minutes, and how many there ever were (`Distribution`)."""


class Metric(NamedTuple):
    """One metric: under which names it is known, and what it says.

    The attribute of Kafka's MBean is a meter's count or the value itself; the keys of the MBean that vary are the
    labels, in the same order.
    """

    name: str
    mbean: str
    attribute: str
    kind: Kind
    unit: str
    doc: str
    labels: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    """Further names under which dashboards ask for it."""
    rate_of: str = ""
    """The name of the counter of which this is the rate; whoever keeps time works it out (`rates`)."""


class Sample(NamedTuple):
    """What a metric says for one set of labels."""

    metric: Metric
    labels: tuple[str, ...]
    value: float


class Distribution(NamedTuple):
    """What a histogram says: over the last minutes, but `number`, which is of all time."""

    number: int
    recent: int
    """How many of them are in the figures below."""
    mean: float
    deviation: float
    least: float
    most: float
    quantiles: tuple[float, ...]
    """At each of `QUANTILES`."""


QUANTILES = ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")
"""As JMX writes them, which is what dashboards ask for."""

NOTHING = Distribution(0, 0, 0.0, 0.0, 0.0, 0.0, (0.0,) * len(QUANTILES))

Value = float | Distribution
Row = tuple[tuple[str, ...], tuple[Value, ...]]
"""Labels, and what each metric of a table says for them."""


PAUSE: Row = ((), ())
"""Between rows, or before a row that takes long: whoever reads may let others have their turn here."""


class Table(NamedTuple):
    """Metrics that were read together: they have the same labels, and their values stand in the rows in this order."""

    metrics: tuple[Metric, ...]
    rows: list[Row]
