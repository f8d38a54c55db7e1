"""What `ottla top` makes of looks, of metrics listeners and of the status of pipelines."""

import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ottla.http.address import parse_address
from ottla.http.application import Served, application, json_answer
from ottla.http.thread import HttpThread
from ottla.model.names import TopicPartition
from ottla.monitoring.clients import monitor_client
from ottla.monitoring.figures import as_text
from ottla.monitoring.lag.book import GroupLag
from ottla.monitoring.lag.rules import Status
from ottla.monitoring.lag.watching import Watch, WatchSettings
from ottla.monitoring.looking import Look
from ottla.monitoring.metrics import GROUP_LAG
from ottla.monitoring.readings import PartitionPlace, Reading
from ottla.monitoring.top.exposition import RequestFigures, parse, requests_in
from ottla.monitoring.top.gathering import Addresses, BadUrl, gather, read_addresses
from ottla.monitoring.top.view import BARS, Observer, Seen, spark

OURS = """
# TYPE kafka_network_requestmetrics_requests_total counter
kafka_network_requestmetrics_requests_total{request="Fetch",version="13"} 10
kafka_network_requestmetrics_requests_total{request="Fetch",version="17"} 5
kafka_network_requestmetrics_requestspersec{request="Fetch",version="13"} 10
kafka_network_requestmetrics_errors_total{request="Fetch",error="NONE"} 9
kafka_network_requestmetrics_errors_total{request="Fetch",error="NOT_LEADER_OR_FOLLOWER"} 2
kafka_network_requestmetrics_totaltimems{request="Fetch",quantile="0.50"} 1.5
kafka_network_requestmetrics_totaltimems{request="Fetch",quantile="0.99"} 20
kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.99"} NaN
"""
CONFLUENTS = """
kafka_network_requestmetrics_requestspersec{request="Fetch"} 100
kafka_network_requestmetrics_totaltimems{request="Fetch",quantile="0.99"} 5
"""
STATUS = {
    "time": 1,
    "pipelines": [
        {"pipeline": "orders", "queries": [{"query": "main", "state": "running", "rows_per_second": 5.0, "lag": 3}]}
    ],
}


@given(st.text(), st.text(), st.floats(allow_nan=False) | st.integers(-(10**15), 10**15))
def test_what_we_serve_is_read_back(cluster: str, group: str, value: float) -> None:
    text = as_text([(GROUP_LAG, [((cluster, group), value)])])
    if "\r" in text or any(mark in text for mark in "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"):
        return  # no line ends for Prometheus, and yet for Python
    (found,) = parse(text)
    assert found.name == GROUP_LAG.name
    assert found.labels == {"cluster": cluster, "consumer_group": group}
    assert found.value == value or math.isclose(found.value, value)


def test_requests_of_several_brokers_are_put_together() -> None:
    """Of a meter that is served under two names one counts, and NONE is no error."""
    assert requests_in([OURS, CONFLUENTS]) == {"Fetch": RequestFigures("Fetch", 115, 2, 1.5, 20)}


def seen(end: int, lag: int, requests: float = 0) -> Seen:
    place = PartitionPlace(1, (1, 2), (1,))
    group = GroupLag("readers", Status.OK, 1.0, (), None, lag, "Stable", 1)
    figures = {"Fetch": RequestFigures("Fetch", requests, 0, None, 3.0)}
    partition = TopicPartition("t", 0)
    return Seen({1: ("h:1", None)}, 1, {partition: place}, {partition: end}, [group], {1: 0.5}, figures, [], [])


def test_speeds_are_told_by_two_looks() -> None:
    observer = Observer()
    first = observer.see(seen(100, 1, 50), 10.0)
    second = observer.see(seen(150, 4, 80), 12.0)
    third = observer.see(seen(20, 0, 5), 14.0)
    assert [view.topics[0].records_per_second for view in (first, second, third)] == [None, 25.0, 0.0]
    assert [view.requests[0].per_second for view in (first, second, third)] == [None, 15.0, 0.0]
    assert third.groups[0].spark == spark([1, 4, 0])
    rows = {row.broker: row for row in second.brokers}
    assert (rows[1].leaders, rows[1].out_of_sync, rows[1].is_controller) == (1, 0, True)
    assert (rows[2].address, rows[2].out_of_sync) == ("away", 1), "a broker that holds a replica and is not there"
    assert second.topics[0].under_replicated == 1


@given(st.lists(st.integers(0, 10**9), max_size=40))
def test_a_spark_line_is_as_long_as_its_values_and_as_high(values: list[int]) -> None:
    line = spark(values)
    assert len(line) == len(values)
    order = [BARS.index(bar) for bar in line]
    assert all(order[a] <= order[b] for a in range(len(values)) for b in range(len(values)) if values[a] <= values[b])


def test_listeners_and_pipelines_are_asked() -> None:
    async def metrics(request: Request) -> Response:
        return PlainTextResponse(OURS)

    async def status(request: Request) -> Response:
        return json_answer(STATUS)

    def served() -> Served:
        return application([Route("/metrics", metrics), Route("/status", status)])

    server = HttpThread(served, parse_address("0"))
    server.start()
    try:
        where = server.url.removeprefix("http://")
        watch = Watch(WatchSettings("c", monitor_client("127.0.0.1:1", {})))
        watch.last = Look("id", 1, {}, {}, frozenset(), Reading({}, {}, {}, whole=True), ())
        addresses = Addresses(
            (*read_addresses(where, "/metrics", "--metrics"), "http://127.0.0.1:1/metrics"),
            read_addresses(f"http://{where}/status,{where}/metrics", "/status", "--pipelines"),
        )
        found = asyncio.run(gather(watch, addresses))
    finally:
        server.close()
    assert found is not None
    assert found.requests["Fetch"].requests == 15
    assert [(row["pipeline"], row["query"], row["lag"]) for row in found.pipelines] == [("orders", "main", 3)]
    assert len(found.failures) == 2, "one does not answer, one is no status"


def test_addresses() -> None:
    assert read_addresses("a:1, http://b:2/x,https://c", "/metrics", "--metrics") == (
        "http://a:1/metrics", "http://b:2/x", "https://c/metrics",
    )  # fmt: skip
    with pytest.raises(BadUrl, match="--metrics: `ftp://a`"):
        read_addresses("ftp://a", "/metrics", "--metrics")
