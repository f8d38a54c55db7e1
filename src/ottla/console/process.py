"""A console as a process: its loop, its signals, and what its options mean."""

import asyncio
import gc
import signal
import ssl
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ottla import __version__
from ottla.console.api.openapi import description
from ottla.console.app import Console, Gate, served
from ottla.console.asking import Right
from ottla.console.clusters import Clusters, ClusterSettings
from ottla.console.routes import ENTRIES
from ottla.http.address import HttpAddress
from ottla.http.application import Served, json_answer
from ottla.http.limits import HttpLimits
from ottla.http.listening import listen
from ottla.http.server import HttpServer

BODY_BYTES_MAX = 4 * 1024 * 1024
"""A record of a megabyte in a form grows: each odd byte becomes three."""
HTTP_LIMITS = HttpLimits(connections_max=1024, body_bytes_max=BODY_BYTES_MAX, stop_seconds_max=1.0)

SWITCH_SECONDS = 0.001
"""Searches run in threads and never wait: so long at most they keep the loop, which answers everybody else."""


class ConsoleOptions(NamedTuple):
    clusters: Sequence[ClusterSettings]
    listen: HttpAddress
    gate: Gate
    tls: ssl.SSLContext | None = None
    looks_at_once: bool = True
    """Before anybody asks: not where everybody looks with a login of their own."""


def application(console: Console) -> Served:
    async def describe(request: Request) -> Response:
        await console.gate.admit(request, Right.VIEWER, False)
        document = description(ENTRIES, __version__, console.clusters.names)
        return console.gate.finish(request, json_answer(document))

    async def list_clusters(request: Request) -> Response:
        await console.gate.admit(request, Right.VIEWER, False)
        return console.gate.finish(request, json_answer({"clusters": console.clusters.names}))

    async def be_well(request: Request) -> Response:
        return json_answer({"healthy": True})

    return served(
        console,
        ENTRIES,
        [
            Route("/api/openapi.json", describe),
            Route("/api/clusters", list_clusters),
            Route("/healthz", be_well),
        ],
    )


def _calm_garbage_collection() -> None:
    """A look at a large cluster makes a million objects and hardly a cycle: to go through all of them again and again
    would cost a quarter of its time, in pauses in which no page is answered."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


async def serve(options: ConsoleOptions, announce: Callable[[str], None]) -> int:
    """Until SIGTERM or SIGINT. `announce` is told the URL once, when requests are answered."""
    sys.setswitchinterval(SWITCH_SECONDS)
    _calm_garbage_collection()
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    await serve_until(options, stopped, announce)
    return 0


async def serve_until(options: ConsoleOptions, stopped: asyncio.Event, announce: Callable[[str], None]) -> None:
    listening = listen(options.listen, backlog=HTTP_LIMITS.connections_max)
    console = Console(Clusters(options.clusters), options.gate)
    try:
        server = HttpServer(application(console), listening, limits=HTTP_LIMITS, tls=options.tls)
        await server.start()
        announce(server.url)
        if options.looks_at_once:
            console.clusters.begin()
        await stopped.wait()
        await server.stop()
    finally:
        await console.close()
        listening.close()
