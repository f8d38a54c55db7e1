"""What a driver's HTTP says: the paths, their JSON, and who may stop something."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from ottla.http.address import BadListener, parse_address
from ottla.http.thread import HttpThread
from ottla.pipelines.runner.driver import Driver
from ottla.pipelines.runner.status_api import status_api

ASKED = {"X-Ottla": "1"}


class World:
    def __init__(self) -> None:
        self.states: dict[str, str] | None = {"orders": "running", "ümläut": "running"}
        self.stopped: list[str | None] = []
        self.server = HttpThread(lambda: status_api(self.status, self.stopped.append), parse_address("0"))

    def status(self) -> dict[str, Any] | None:
        if self.states is None:
            return None
        return {"time": 1.5, "pipelines": [{"pipeline": name, "state": state} for name, state in self.states.items()]}


class Found(NamedTuple):
    status: int
    document: Any
    text: bytes


@pytest.fixture
def world() -> Iterator[World]:
    found = World()
    found.server.start()
    yield found
    found.server.close()


def ask(world: World, path: str, method: str = "GET", headers: dict[str, str] | None = None) -> Found:
    request = urllib.request.Request(world.server.url + path, method=method, headers=headers or {})
    try:
        answer = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        assert answer.headers["Content-Type"] == "application/json"
        text = answer.read()
        return Found(answer.status, json.loads(text) if text else None, text)


def test_status_and_health(world: World) -> None:
    found = ask(world, "/status")
    assert (found.status, found.document) == (200, world.status())
    assert found.text == json.dumps(world.status()).encode() + b"\n"  # to the byte what it was before
    assert ask(world, "/healthz")[:2] == (200, {"healthy": True, "not_running": []})
    world.states = {"orders": "failed", "other": "waiting", "third": "stopped"}
    assert ask(world, "/healthz")[:2] == (503, {"healthy": False, "not_running": ["orders", "other"]})
    assert ask(world, "/healthz", "HEAD") == (503, None, b"")


def test_metrics_are_text_for_prometheus(world: World) -> None:
    world.states = {}
    with urllib.request.urlopen(world.server.url + "/metrics", timeout=60) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert answer.read() == b"", "what they say is in test_metrics.py; without a query it is nothing"


def test_stopping_wants_a_header_that_no_page_of_a_browser_sends(world: World) -> None:
    assert ask(world, "/stop", "POST")[:2] == (403, {"error": "POST wants the header X-Ottla, of any value"})
    assert world.stopped == []
    here = ["orders", "ümläut"]
    unknown = {"error": "there is no pipeline nope here", "here": here}
    assert ask(world, "/stop?pipeline=nope", "POST", ASKED)[:2] == (404, unknown)
    assert world.stopped == []
    assert ask(world, "/stop?pipeline=orders", "POST", ASKED)[:2] == (202, {"stopping": ["orders"]})
    assert ask(world, "/stop?pipeline=%C3%BCml%C3%A4ut", "POST", ASKED)[:2] == (202, {"stopping": ["ümläut"]})
    assert ask(world, "/stop", "POST", ASKED)[:2] == (202, {"stopping": here})
    assert world.stopped == ["orders", "ümläut", None]


def test_what_is_not_there(world: World) -> None:
    told = {"error": "there is GET /status, GET /healthz, GET /metrics and POST /stop"}
    assert ask(world, "/nope")[:2] == (404, told)
    assert ask(world, "/stop")[:2] == (405, {"error": "/stop does not take GET, but POST"})


def test_before_spark_has_started(world: World) -> None:
    world.states = None
    for path, method in (("/status", "GET"), ("/healthz", "GET"), ("/stop", "POST")):
        found = ask(world, path, method, ASKED)
        assert found[:2] == (503, {"error": "Spark is starting; ask again in some seconds"})
    assert world.stopped == []


def test_a_port_that_is_taken_is_told_before_spark_starts(world: World) -> None:
    def start_spark() -> Any:
        pytest.fail("Spark takes seconds to start, and nothing comes of it")

    driver = Driver([], once=True, listen=parse_address(world.server.url.removeprefix("http://")))
    with pytest.raises(BadListener, match="is in use by another program"):
        driver.run(start_spark, lambda _: None, lambda _: None)
