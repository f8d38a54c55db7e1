"""Brings together what a view is made of: the cluster, the brokers' metrics listeners, the status of pipelines."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any, NamedTuple

from ottla.model.errors import OttlaError
from ottla.monitoring.lag.watching import Watch
from ottla.monitoring.top.exposition import RequestFigures, requests_in
from ottla.monitoring.top.view import Seen

TIMEOUT_SECONDS = 3.0
BYTES_MAX = 64 * 1024 * 1024


class BadUrl(OttlaError):
    """An address that cannot be asked; the message says what to write."""


class Addresses(NamedTuple):
    metrics: tuple[str, ...] = ()
    pipelines: tuple[str, ...] = ()


def read_addresses(text: str, path: str, option: str) -> tuple[str, ...]:
    """`host:port,...` or URLs; what is missing of them is added."""
    found = []
    for each in (part.strip() for part in text.split(",") if part.strip()):
        url = each if "://" in each else f"http://{each}"
        if not url.startswith(("http://", "https://")):
            raise BadUrl(f"{option}: `{each}` is neither http:// nor https://")
        rest = url.split("://", 1)[1]
        found.append(url if "/" in rest else url + path)
    return tuple(found)


async def gather(watch: Watch, addresses: Addresses) -> Seen | None:
    """None while the cluster was never seen."""
    failures: list[str] = []
    texts = await _texts(addresses.metrics, failures)
    statuses = await _texts(addresses.pipelines, failures)
    look = watch.last
    if look is None:
        return None
    disks: dict[int, float] = {}
    for each in watch.directories:
        share = each.free_bytes / each.total_bytes if each.total_bytes else 0.0
        disks[each.broker] = min(share, disks.get(each.broker, 1.0))
    requests: dict[str, RequestFigures] = await asyncio.to_thread(requests_in, texts) if texts else {}
    return Seen(
        {node: (str(broker.address), broker.rack) for node, broker in look.brokers.items()},
        look.controller_id,
        look.places,
        look.reading.ends,
        list(watch.judged),
        disks,
        requests,
        _pipelines(statuses, failures),
        [*look.failures, *failures],
    )


def _pipelines(statuses: Sequence[str], failures: list[str]) -> list[dict[str, Any]]:
    """One row for each query of each pipeline."""
    rows = []
    for text in statuses:
        try:
            for pipeline in json.loads(text)["pipelines"]:
                rows += [{"pipeline": pipeline["pipeline"], **query} for query in pipeline["queries"]]
        except (ValueError, KeyError, TypeError) as error:
            failures.append(f"a status of pipelines cannot be read: {error!r}")
    return rows


async def _texts(urls: Sequence[str], failures: list[str]) -> list[str]:
    found = []
    for url, text in zip(urls, await asyncio.gather(*(asyncio.to_thread(_get, url) for url in urls)), strict=True):
        if isinstance(text, str):
            found.append(text)
        else:
            failures.append(f"{url}: {text}")
    return found


def _get(url: str) -> str | Exception:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310 - read_addresses has checked it
            return str(answer.read(BYTES_MAX).decode(errors="replace"))
    except (OSError, ValueError, urllib.error.URLError) as error:
        return error
