"""Lag under the names of several exporters: the same figures, in each one's words."""

from ottla.monitoring import metrics
from ottla.monitoring.lag.book import GroupLag, PartitionLag
from ottla.monitoring.lag.figures import Judged, lag_figures
from ottla.monitoring.lag.rules import Status
from ottla.monitoring.lag.window import Commit


def partition(number: int, lag: int, age: float | None) -> PartitionLag:
    commit = Commit(100 - lag, 0, 0, lag)
    return PartitionLag("t", number, None, Status.OK, commit, commit, lag, 1.0, age, 0.0)


def test_lag_under_the_names_of_kafka_lag_exporter() -> None:
    partitions = (partition(0, 0, None), partition(1, 5, 2.5), partition(2, 7, 4.0))
    group = GroupLag("g", Status.OK, 1.0, partitions, None, 12, "Stable", 1)
    told = dict(lag_figures([Judged("c", [group], {"t": [100, 100, 100]})]))
    assert told[metrics.LAG_EXPORTER_LAG] == [
        (("c", "g", "t", str(number)), lag) for number, lag in enumerate((0, 5, 7))
    ]
    assert told[metrics.LAG_EXPORTER_MAX_LAG] == [(("c", "g"), 7)]
    assert [value for _, value in told[metrics.LAG_EXPORTER_SECONDS]] == [0.0, 2.5, 4.0]
    assert [value for _, value in told[metrics.LAG_MILLIS]] == [0.0, 2500.0, 4000.0]
    assert told[metrics.LAG_EXPORTER_MAX_SECONDS] == [(("c", "g"), 4.0)]
    assert [value for _, value in told[metrics.LAG_EXPORTER_OFFSET]] == [100, 95, 93]
    assert told[metrics.LAG_EXPORTER_END] == [(("c", "t", str(number)), 100) for number in range(3)]


def test_what_is_older_than_the_window_is_not_guessed() -> None:
    group = GroupLag("g", Status.OK, 1.0, (partition(0, 5, None), partition(1, 5, 1.0)), None, 10, "Stable", 1)
    told = dict(lag_figures([Judged("c", [group], {})]))
    assert told[metrics.LAG_EXPORTER_SECONDS] == [(("c", "g", "t", "1"), 1.0)]
    assert told[metrics.LAG_EXPORTER_MAX_SECONDS] == []
