"""Metrics listeners of brokers and of `ottla monitor`, asked in threads while somebody looks."""

import asyncio
import http.client
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from ottla.console.measured import LevelRow, RequestRow, levels_in, request_rows
from ottla.model.errors import OttlaError
from ottla.monitoring.top.exposition import RequestFigures, requests_in

TIMEOUT_SECONDS = 3.0
BYTES_MAX = 64 * 1024 * 1024
KEPT_SECONDS = 4.0


class NoMetrics(OttlaError):
    """A listener does not answer, or not with metrics."""


class MetricsListener(NamedTuple):
    url: str
    broker: str = ""
    """Whose it is; empty where nobody said."""


class BrokerTimes(NamedTuple):
    listener: MetricsListener
    error: str
    requests: Mapping[str, RequestRow]


class Levels(NamedTuple):
    url: str
    error: str
    rows: Sequence[LevelRow]


class Listeners:
    """Kept for a moment: ten browsers cost a listener what one costs."""

    def __init__(self) -> None:
        self._times: dict[MetricsListener, tuple[float, BrokerTimes]] = {}
        self._figures: dict[MetricsListener, tuple[float, Mapping[str, RequestFigures]]] = {}
        self._levels: dict[str, tuple[float, Levels]] = {}

    async def times(self, listeners: Sequence[MetricsListener]) -> list[BrokerTimes]:
        return list(await asyncio.gather(*(self._of(each) for each in listeners)))

    async def levels(self, urls: Sequence[str]) -> list[Levels]:
        return list(await asyncio.gather(*(self._level(url) for url in urls)))

    async def _of(self, listener: MetricsListener) -> BrokerTimes:
        known = self._times.get(listener)
        if known is not None and time.monotonic() - known[0] < KEPT_SECONDS:
            return known[1]
        try:
            now = await asyncio.to_thread(lambda: requests_in([_get(listener.url)]))
        except NoMetrics as error:
            found = BrokerTimes(listener, str(error), {})
        else:
            moment = time.monotonic()
            at, before = self._figures.get(listener, (moment, {}))
            found = BrokerTimes(listener, "", request_rows(now, before, moment - at))
            self._figures[listener] = (moment, now)
        self._times[listener] = (time.monotonic(), found)
        return found

    async def _level(self, url: str) -> Levels:
        known = self._levels.get(url)
        if known is not None and time.monotonic() - known[0] < KEPT_SECONDS:
            return known[1]
        try:
            found = Levels(url, "", await asyncio.to_thread(lambda: levels_in(_get(url))))
        except NoMetrics as error:
            found = Levels(url, str(error), ())
        self._levels[url] = (time.monotonic(), found)
        return found


def _get(url: str) -> str:
    where = urlsplit(url)
    kind = http.client.HTTPSConnection if where.scheme == "https" else http.client.HTTPConnection
    connection = kind(where.hostname or "", where.port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", (where.path or "/metrics") + (f"?{where.query}" if where.query else ""))
        response = connection.getresponse()
        body = response.read(BYTES_MAX)
    except (OSError, http.client.HTTPException) as error:
        raise NoMetrics(f"{url} tells no metrics: {error}") from None
    finally:
        connection.close()
    if response.status != http.client.OK:
        raise NoMetrics(f"{url} tells no metrics: {response.status} {response.reason}")
    return body.decode(errors="replace")
