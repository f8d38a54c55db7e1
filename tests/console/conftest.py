"""A console over a real broker, and as much of a browser as its pages need: cookies, forms, what was asked for."""

import asyncio
import http.client
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

from ottla.console.access.gate import AccessSettings, Gate
from ottla.console.clusters import ClusterSettings
from ottla.console.process import ConsoleOptions, serve_until
from ottla.http.address import parse_address
from ottla.testing import RunningBroker

TIMEOUT_SECONDS = 60.0
CLUSTER = "here"


class Page(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def csrf(self) -> str:
        found = re.search(r'name="csrf" value="([^"]*)"', self.text)
        assert found is not None, self.text
        return found[1]


class Site:
    """A console, as one browser sees it."""

    def __init__(self, url: str) -> None:
        self._address = url.removeprefix("http://")
        self.cookie = ""

    def send(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Page:
        connection = http.client.HTTPConnection(self._address, timeout=TIMEOUT_SECONDS)
        try:
            own = {"Cookie": self.cookie} if self.cookie else {}
            connection.request(method, path, body or None, {**own, **(headers or {})})
            answer = connection.getresponse()
            page = Page(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()
        if "set-cookie" in page.headers:
            self.cookie = page.headers["set-cookie"].partition(";")[0]
        return page

    def page(self, path: str) -> Page:
        return self.send("GET", f"/c/{CLUSTER}{path}")

    def api(self, path: str) -> Any:
        page = self.send("GET", f"/api/c/{CLUSTER}{path}")
        assert page.status == 200, page.text
        return page.json()

    def submit(self, path: str, fields: Mapping[str, Any], *, on: str) -> Page:
        """A form of the page `on`, filled in."""
        form = {"csrf": self.page(on).csrf, **fields}
        body = urlencode(form, doseq=True).encode()
        return self.send("POST", f"/c/{CLUSTER}{path}", body, {"Content-Type": "application/x-www-form-urlencoded"})

    def do(self, path: str, **fields: Any) -> Any:
        """As a program does it."""
        headers = {"Content-Type": "application/json", "X-Ottla-Program": "test"}
        page = self.send("POST", f"/api/c/{CLUSTER}{path}", json.dumps(fields).encode(), headers)
        assert page.status == 200, page.text
        return page.json()


class Running:
    """A console in a thread with a loop of its own."""

    def __init__(self, settings: ClusterSettings, access: AccessSettings, *more: ClusterSettings) -> None:
        """`more`: other clusters that it shows."""
        self.url = ""
        self._settings, self._access = (settings, *more), access
        self._ready = threading.Event()
        self._stop: Callable[[], object] = self._ready.set
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._ready.wait(TIMEOUT_SECONDS)

    async def _serve(self) -> None:
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        self._stop = lambda: loop.call_soon_threadsafe(stopped.set)
        options = ConsoleOptions(self._settings, parse_address("127.0.0.1:0"), Gate(self._access))
        await serve_until(options, stopped, self._announce)

    def _announce(self, url: str) -> None:
        self.url = url
        self._ready.set()

    def stop(self) -> None:
        self._stop()
        self._thread.join(TIMEOUT_SECONDS)
        assert not self._thread.is_alive()


Open = Callable[..., Site]


@pytest.fixture
def open_console(ottla_broker: RunningBroker) -> Iterator[Open]:
    running: list[Running] = []

    def opened(access: AccessSettings | None = None, **more: Any) -> Site:
        settings = ClusterSettings(CLUSTER, {"bootstrap.servers": ottla_broker.bootstrap}, **more)
        running.append(Running(settings, access or AccessSettings()))
        return Site(running[-1].url)

    yield opened
    for each in running:
        each.stop()


@pytest.fixture
def site(open_console: Open) -> Site:
    return open_console()
