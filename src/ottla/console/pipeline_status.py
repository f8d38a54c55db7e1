"""What the drivers of pipelines say of themselves: their status API, asked in threads."""

import asyncio
import http.client
import json
import time
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from ottla.console.asking import BadInput
from ottla.console.clusters import ClusterSettings
from ottla.model.errors import OttlaError

TIMEOUT_SECONDS = 3.0
BYTES_MAX = 16 * 1024 * 1024
KEPT_SECONDS = 2.0


class DriverError(OttlaError):
    """A driver does not answer, or not as one."""


class DriverStatus(NamedTuple):
    url: str
    error: str
    pipelines: list[dict[str, Any]]


class Pipelines:
    """Kept for a moment: a page with ten browsers on it asks a driver once."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[float, DriverStatus]] = {}

    async def of(self, settings: ClusterSettings) -> list[DriverStatus]:
        return list(await asyncio.gather(*(self._status(url) for url in settings.pipelines)))

    async def _status(self, url: str) -> DriverStatus:
        known = self._kept.get(url)
        if known is not None and time.monotonic() - known[0] < KEPT_SECONDS:
            return known[1]
        try:
            document = await asyncio.to_thread(_call, "GET", url, "/status")
            found = DriverStatus(url, "", [each for each in document["pipelines"] if isinstance(each, dict)])
        except DriverError as error:
            found = DriverStatus(url, str(error), [])
        except (KeyError, TypeError):
            found = DriverStatus(url, "it answers, but not as a driver of pipelines", [])
        self._kept[url] = (time.monotonic(), found)
        return found

    async def stop(self, settings: ClusterSettings, pipeline: str) -> str:
        """The driver that has it is told; its address."""
        for driver in await self.of(settings):
            if any(each.get("pipeline") == pipeline for each in driver.pipelines):
                await asyncio.to_thread(_call, "POST", driver.url, f"/stop?pipeline={quote(pipeline, safe='')}")
                self._kept.clear()
                return driver.url
        raise BadInput(f"no driver that this console knows runs the pipeline {pipeline}")


def _call(method: str, url: str, path: str) -> Any:
    where = urlsplit(url)
    kind = http.client.HTTPSConnection if where.scheme == "https" else http.client.HTTPConnection
    connection = kind(where.hostname or "", where.port, timeout=TIMEOUT_SECONDS)
    base = where.path.removesuffix("/").removesuffix("/status")
    try:
        connection.request(method, base + path, headers={"X-Ottla": "console", "Content-Length": "0"})
        response = connection.getresponse()
        body = response.read(BYTES_MAX)
        document = json.loads(body)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise DriverError(f"{url} does not answer as a driver of pipelines: {error}") from None
    finally:
        connection.close()
    if response.status >= 400:
        said = document.get("error", "") if isinstance(document, dict) else ""
        raise DriverError(f"{url}: {said or response.reason}")
    return document
