"""The same server for a program without a loop: one thread more, until it is closed."""

import json
import threading
import time
import urllib.request

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ottla.http.address import BadListener, parse_address
from ottla.http.application import Served, application, json_answer
from ottla.http.limits import HttpLimits
from ottla.http.thread import HttpThread


def read(url: str) -> object:
    with urllib.request.urlopen(url, timeout=60) as found:
        return json.load(found)


def test_it_serves_from_start_to_close() -> None:
    ready = threading.Event()

    def hello(request: Request) -> Response:
        return json_answer({"thread": threading.current_thread() is threading.main_thread()})

    def make() -> Served:
        assert ready.wait(60)  # as if it had much to import
        return application([Route("/hello", hello)])

    server = HttpThread(make, parse_address("0"))
    server.start()
    with pytest.raises(BadListener, match="in use"):
        HttpThread(make, parse_address(server.url.removeprefix("http://"))).start()
    threading.Timer(0.05, ready.set).start()
    assert read(f"{server.url}/hello") == {"thread": False}  # connected before there was anybody to answer
    server.close()
    with pytest.raises(OSError):
        read(f"{server.url}/hello")
    server.close()  # once more does nothing


def test_closed_at_once_it_ends() -> None:
    server = HttpThread(lambda: application([]), parse_address("0"))
    server.start()
    server.close()
    assert not [each for each in threading.enumerate() if each.name.startswith("http-")]


def test_a_request_that_does_not_end_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.http.thread.JOIN_SECONDS_MAX", 0.1)
    monkeypatch.setattr("ottla.http.server.CANCEL_SECONDS_MAX", 0.1)
    entered, leave = threading.Event(), threading.Event()

    def hang(request: Request) -> Response:
        entered.set()
        leave.wait(60)
        return json_answer({})

    server = HttpThread(
        lambda: application([Route("/hang", hang)]), parse_address("0"), limits=HttpLimits(stop_seconds_max=0.1)
    )
    server.start()

    def ask_in_vain() -> None:
        with pytest.raises(OSError):
            read(f"{server.url}/hang")

    asking = threading.Thread(target=ask_in_vain)
    asking.start()
    assert entered.wait(60)
    began = time.monotonic()
    server.close()
    assert time.monotonic() - began < 30
    leave.set()
    asking.join()
