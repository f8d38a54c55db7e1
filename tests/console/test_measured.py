"""Times of requests and service levels: from listeners that tell them, and what a page makes of them."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import ClassVar

import pytest

from ottla.console.listeners import MetricsListener
from ottla.console.measured import LevelRow, RequestRow, level_words, levels_in, request_rows, together
from ottla.monitoring.top.exposition import RequestFigures

from .conftest import Open
from .test_pages import check

AWAY = "http://127.0.0.1:9/metrics"
BROKER = """# HELP made up
kafka_network_requestmetrics_requests_total{request="Produce",version="9"} 40
kafka_network_requestmetrics_errors_total{request="Produce",error="NOT_LEADER_OR_FOLLOWER"} 2
kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.50"} 1.25
kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.99"} 12.5
kafka_network_requestmetrics_requests_total{request="<b>Fetch",version="9"} 4
"""
MONITOR = """ottla_monitor_sli_ratio{name="local",sli="write"} 0.99
ottla_monitor_slo_objective_ratio{name="local",sli="write"} 0.999
ottla_monitor_error_budget_remaining_ratio{name="local",sli="write"} -9.0
ottla_monitor_burn_rate{name="local",sli="write",window="5m"} 3
ottla_monitor_burn_rate{name="local",sli="write",window="1h"} 10
"""


class Listener(BaseHTTPRequestHandler):
    texts: ClassVar[dict[str, str]] = {"/metrics": BROKER, "/monitor": MONITOR}

    def do_GET(self) -> None:
        body = self.texts.get(self.path, "").encode()
        self.send_response(200 if body else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Listener)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_requests_of_brokers(open_console: Open, url: str) -> None:
    site = open_console(metrics=(MetricsListener(f"{url}/metrics", "1"), MetricsListener(AWAY, "2")))
    told = site.api("/brokers")
    assert [(row["request"], row["requests"], row["errors"], row["p99_ms"]) for row in told["requests"]] == [
        ("Produce", 40, 2, 12.5),
        ("<b>Fetch", 4, 0, None),
    ]
    assert [each.startswith(f"{AWAY} tells no metrics") for each in told["failures"]] == [True]
    for path in ("/brokers", "/brokers/1"):
        page = site.page(path)
        check(page)
        assert "12.5 ms" in page.text
        assert "&lt;b&gt;Fetch" in page.text
    assert site.api("/brokers/1")["failures"] == []


def test_service_levels_are_part_of_health(open_console: Open, url: str) -> None:
    broken, away = open_console(monitors=(f"{url}/monitor",)), open_console(monitors=(f"{url}/other",))
    page = broken.page("/")
    check(page)
    assert "the objective for writes of local is broken: 99.000% were good, 99.900% should be" in page.text
    health = away.api("/")["health"]
    assert not health["good"]
    assert health["words"][-1].endswith("/other tells no metrics: 404 Not Found")


def test_rates_come_from_two_looks_and_the_worst_time_is_shown() -> None:
    one = {"Fetch": RequestFigures("Fetch", 100.0, 0.0, 1.0, 9.0)}
    first = request_rows(one, {}, 0.0)
    assert first["Fetch"].per_second is None
    later = request_rows({"Fetch": RequestFigures("Fetch", 150.0, 1.0, 2.0, 5.0)}, one, 10.0)
    assert later["Fetch"].per_second == 5.0
    anew = request_rows({"Fetch": RequestFigures("Fetch", 3.0, 0.0, None, None)}, one, 10.0)
    assert anew["Fetch"].per_second == 0.0
    assert together([first, later, {"Vote": RequestRow("Vote", None, 0, 0, None, None)}]) == [
        RequestRow("Fetch", 5.0, 250.0, 1.0, 2.0, 9.0)
    ]


def test_what_is_wrong_with_service_levels() -> None:
    assert levels_in(MONITOR) == [LevelRow("local", "write", 0.99, 0.999, -9.0, 10.0)]
    assert level_words([LevelRow("", "read", 1.0, 0.999, 1.0, 0.0)]) == []
    (words,) = level_words([LevelRow("", "read", 0.9995, 0.999, 0.5, 20.0)])
    assert words == "the error budget of reads is used up 20 times as fast as it may be"
