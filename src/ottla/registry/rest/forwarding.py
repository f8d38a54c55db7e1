"""Requests that another instance has to answer, sent there as they came."""

import asyncio
import http.client
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.requests import Request

from ottla.registry.errors import Code, RegistryError

FORWARDED = "x-forward"
"""Says that a request comes from another instance: it is answered, or refused, but never sent on."""
SECONDS_MAX = 60.0
_KEPT = ("content-type", "accept", "authorization", "confluent-accept-unknown-properties")


class Forwarder:
    """`tls` is for instances that speak HTTPS."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls

    async def forward(self, url: str, request: Request) -> tuple[int, Mapping[str, str], bytes]:
        body = await request.body()
        headers = {name: request.headers[name] for name in _KEPT if name in request.headers} | {FORWARDED: "true"}
        path = request.scope["raw_path"].decode("ascii")
        query = request.scope["query_string"].decode("ascii")
        target = f"{path}?{query}" if query else path
        try:
            return await asyncio.to_thread(self._send, url, request.method, target, headers, body)
        except (OSError, http.client.HTTPException) as error:
            raise RegistryError(
                Code.FORWARDING, f"Error while forwarding the request to the master at {url}: {error}"
            ) from None

    def _send(
        self, url: str, method: str, target: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, Mapping[str, str], bytes]:
        where = urlsplit(url)
        host, port = where.hostname or "", where.port
        if where.scheme == "https":
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=SECONDS_MAX, context=self._tls
            )
        else:
            connection = http.client.HTTPConnection(host, port, timeout=SECONDS_MAX)
        try:
            connection.request(method, target, body, headers)
            response = connection.getresponse()
            return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
        finally:
            connection.close()
