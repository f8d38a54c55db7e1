"""Where a broker's metrics are read.

Nothing is counted here. Whoever does the work keeps plain integers of its own and says once how to read them; reading
happens when somebody asks, so that a request pays for an addition and no more.
"""

from collections.abc import Callable, Iterable, Iterator

from ottla.telemetry.metric import PAUSE, Distribution, Metric, Row, Sample, Table, Value

Reading = Callable[[], Iterable[tuple[tuple[str, ...], Value]]]
"""Labels and values, as they are now."""
Rows = Callable[[], Iterable[Row]]
"""The same of several metrics at once: what is gone through to find them is gone through once."""


class Telemetry:
    def __init__(self) -> None:
        self._readings: dict[tuple[Metric, ...], Rows] = {}
        self._observed: dict[Metric, tuple[Metric, ...]] = {}
        self.anywhere: set[tuple[Metric, ...]] = set()
        self.pushed: Callable[[], Iterable[Table]] = tuple
        """What others say of themselves: nobody declared it."""

    @property
    def observed(self) -> tuple[Metric, ...]:
        return tuple(self._observed)

    @property
    def groups(self) -> tuple[tuple[Metric, ...], ...]:
        """Metrics that are read together."""
        return tuple(self._readings)

    def observe(self, metric: Metric, read: Reading, *, anywhere: bool = False) -> None:
        """From now on this is how the metric is read. One place measures it: a second is a mistake."""
        self.observe_together((metric,), lambda: ((labels, (value,)) for labels, value in read()), anywhere=anywhere)

    def observe_one(self, metric: Metric, read: Callable[[], Value], *, anywhere: bool = False) -> None:
        """A metric without labels."""
        self.observe_together((metric,), lambda: (((), (read(),)),), anywhere=anywhere)

    def observe_together(self, metrics: tuple[Metric, ...], read: Rows, *, anywhere: bool = False) -> None:
        """What may be read `anywhere`, in any thread, is better not read on a loop: it asks the system."""
        if anywhere:
            self.anywhere.add(metrics)
        for metric in metrics:
            assert metric not in self._observed, f"{metric.name} is measured twice"
            self._observed[metric] = metrics
        self._readings[metrics] = read

    def rows(self, group: tuple[Metric, ...]) -> Iterable[Row]:
        """One after the other, with `PAUSE` among them: whoever reads thousands lets others have their turn."""
        return self._readings[group]()

    def tables(self) -> list[Table]:
        """Every metric as it is now, in the order in which they were taken up."""
        return [self.table(group) for group in self._readings]

    def table(self, group: tuple[Metric, ...]) -> Table:
        return Table(group, [row for row in self._readings[group]() if row is not PAUSE])

    def table_of(self, metric: Metric) -> Table:
        """The metric as it is now, with those that are read together with it."""
        return self.table(self._observed[metric])

    def read(self, metric: Metric) -> list[Sample]:
        """One metric as it is now."""
        return [sample for sample in samples(self.table_of(metric)) if sample.metric is metric]

    def snapshot(self) -> list[Sample]:
        """Every metric as it is now; of a distribution, how many values there were."""
        return [sample for table in self.tables() for sample in samples(table)]


def samples(table: Table) -> Iterator[Sample]:
    for position, metric in enumerate(table.metrics):
        for labels, values in table.rows:
            yield Sample(metric, labels, _number(values[position]))


def _number(value: Value) -> float:
    return value.number if isinstance(value, Distribution) else value
