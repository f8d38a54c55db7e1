"""GET /metrics: what a broker counts, as text for Prometheus.

Metrics are read on the loop, which owns what they are about, in short steps; the text is put together in a thread, and
sent as it comes: all of it is never held.
"""

import ssl
from collections.abc import Sequence
from typing import TypedDict

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from ottla.broker.metrics.scraping import pieces
from ottla.http.address import HttpAddress
from ottla.http.application import Login, Served, application
from ottla.http.server import HttpServer
from ottla.telemetry.prometheus import OPENMETRICS, TEXT
from ottla.telemetry.registry import Telemetry

PATH = "/metrics"


class Guarded(TypedDict):
    """What the server needs to know who comes in, and to keep others from listening in."""

    tls: ssl.SSLContext | None
    login: Login | None


def metrics_server(
    telemetry: Telemetry,
    where: HttpAddress,
    more: Sequence[BaseRoute] = (),
    *,
    tls: ssl.SSLContext | None = None,
    login: Login | None = None,
) -> HttpServer:
    """`more` is what is served beside it."""
    return HttpServer(metrics_api(telemetry, more), where, tls=tls, login=login)


def metrics_api(telemetry: Telemetry, more: Sequence[BaseRoute] = ()) -> Served:
    async def show(request: Request) -> Response:
        openmetrics = "application/openmetrics-text" in request.headers.get("accept", "")
        return StreamingResponse(
            pieces(telemetry, openmetrics=openmetrics),
            headers={"content-type": OPENMETRICS if openmetrics else TEXT},
        )

    return application([Route(PATH, show), *more])
