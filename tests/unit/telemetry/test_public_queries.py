"""What public dashboards and alert rules ask for is served, by a broker or by the monitor."""

import re

from compat.public_queries import ASKED, NOT_SERVED, SOURCES

from ottla.monitoring.metrics import MONITOR_METRICS
from ottla.telemetry.catalogue import METRICS
from ottla.telemetry.metric import NOTHING, QUANTILES, Kind, Metric, Table
from ottla.telemetry.prometheus import render

_SELECTOR = re.compile(r"(?:rate\()?(?P<name>\w+)(?:\{(?P<matchers>.*?)\})?")
_MATCHER = re.compile(r'(\w+)(?:=~|!~|!=|=)"([^"]*)"')
_SERIES = re.compile(r"^(?P<name>\w+)(?:\{(?P<labels>.*)\})? \S+$", re.MULTILINE)


def scraped() -> dict[str, set[str]]:
    """Names, and the labels that their series have, in a scrape in which every metric says something."""

    def table(metric: Metric) -> Table:
        value = NOTHING if metric.kind is Kind.HISTOGRAM else 1
        return Table((metric,), [(tuple("x" for _ in metric.labels), (value,))])

    text = render([table(metric) for metric in (*METRICS.values(), *MONITOR_METRICS.values())])
    found: dict[str, set[str]] = {}
    for series in _SERIES.finditer(text):
        found.setdefault(series["name"], set()).update(re.findall(r'(\w+)="', series["labels"] or ""))
    return found


def test_every_name_is_served_with_the_labels_that_they_choose_by() -> None:
    served = scraped()
    missing = []
    for query in ASKED:
        selector = _SELECTOR.match(query)
        assert selector is not None
        labels = served.get(selector["name"])
        for label, value in _MATCHER.findall(selector["matchers"] or ""):
            if labels is not None and (label not in labels or (label == "quantile" and value not in QUANTILES)):
                labels = None
        if labels is None:
            missing.append(query)
    assert not missing


def test_at_least_twenty_dashboards_and_rules_are_looked_at() -> None:
    asking = {source for sources in ASKED.values() for source in sources.split()}
    assert asking == set(SOURCES)
    assert len(asking) >= 20


def test_nothing_is_excused_that_is_served() -> None:
    excused = [name for name in scraped() for pattern in NOT_SERVED if re.match(pattern, name)]
    assert set(excused) == {
        "kafka_server_transaction_coordinator_metrics_partition_load_time_avg",
        "kafka_server_transaction_coordinator_metrics_partition_load_time_max",
    }, "these two are Apache Kafka's, too"
