"""What the monitor serves: Burrow's API, and metrics for Prometheus."""

import asyncio
import base64
import hmac
import ssl
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ottla.http.application import Login, Served, application
from ottla.monitoring.endtoend.figures import end_to_end_figures
from ottla.monitoring.endtoend.monitor import EndToEnd
from ottla.monitoring.figures import Figure, as_text
from ottla.monitoring.lag.api import BurrowApi, error_body
from ottla.monitoring.lag.figures import Judged, lag_figures
from ottla.monitoring.lag.watching import Notices, Watch
from ottla.telemetry.prometheus import OPENMETRICS, TEXT


class Monitor:
    """Everything that one process watches."""

    def __init__(self, watches: list[Watch], notices: Notices | None, ends: list[EndToEnd]) -> None:
        self.watches = watches
        self.notices = notices
        self.ends = ends

    def judged(self) -> list[Judged]:
        """Lag, to be made into figures where it holds nobody up."""
        return [
            Judged(
                watch.settings.name,
                watch.judged,
                {topic: watch.book.ends(topic) or () for topic in watch.book.topics},
            )
            for watch in self.watches
        ]

    def figures(self) -> list[Figure]:
        """Everything else."""
        found: list[Figure] = []
        for watch in self.watches:
            found += watch.figures()
        if self.notices is not None:
            found += self.notices.figures()
        for end in self.ends:
            found += end_to_end_figures(end)
        return found

    def served(self) -> Served:
        async def show(request: Request) -> Response:
            openmetrics = "application/openmetrics-text" in request.headers.get("accept", "")
            text = await asyncio.to_thread(_text, self.judged(), self.figures(), openmetrics=openmetrics)
            return Response(text, headers={"content-type": OPENMETRICS if openmetrics else TEXT})

        burrow = BurrowApi(
            {watch.settings.name: watch.book for watch in self.watches},
            {watch.settings.name: _detail(watch) for watch in self.watches},
        )
        return application(
            [Route("/metrics", show), *burrow.routes()], error_body=error_body, unknown="invalid request type"
        )


def _text(judged: list[Judged], figures: list[Figure], *, openmetrics: bool) -> str:
    return as_text([*figures, *lag_figures(judged)], openmetrics=openmetrics)


def _detail(watch: Watch) -> dict[str, object]:
    client = watch.settings.client
    return {
        "class-name": "kafka",
        "servers": client.bootstrap.split(","),
        "client-profile": {"name": "", "client-id": client.client_id, "kafka-version": "", "tls": None, "sasl": None},
        "topic-refresh": watch.settings.refresh_s,
        "offset-refresh": watch.settings.refresh_s,
    }


def server_context(certificate: str, key: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context


def basic_login(users: Mapping[str, str]) -> Login:
    """Lets in whoever knows one of these names with its password."""
    known = [f"{name}:{password}".encode() for name, password in users.items()]

    async def authenticate(request: Request) -> str | None:
        scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
        try:
            given = base64.b64decode(encoded, validate=True) if scheme.lower() == "basic" else b""
        except ValueError:
            return None
        # All of them are compared, so that the time it takes says nothing.
        found = [each for each in known if hmac.compare_digest(each, given)]
        return found[0].partition(b":")[0].decode() if found else None

    return Login(authenticate, 'Basic realm="ottla monitor"')
