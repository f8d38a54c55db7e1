"""An HTTP listener for a test, and a client that says exactly what it is told to."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ottla.http.address import parse_address
from ottla.http.application import Login, Served, application, json_answer
from ottla.http.limits import HttpLimits
from ottla.http.server import HttpServer


async def hello(request: Request) -> Response:
    return json_answer({"hello": request.scope.get("user") or "you"})


async def echo(request: Request) -> Response:
    return json_answer({"bytes": len(await request.body())})


async def fail(request: Request) -> Response:
    raise ValueError("a secret")


async def large(request: Request) -> Response:
    return Response(bytes(64 << 20))


ROUTES = [
    Route("/hello", hello),
    Route("/echo", echo, methods=["POST"]),
    Route("/fail", fail),
    Route("/large", large),
]


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


@contextlib.asynccontextmanager
async def serving(
    routes: Sequence[BaseRoute] = ROUTES,
    *,
    served: Served | None = None,
    limits: HttpLimits | None = None,
    tls: ssl.SSLContext | None = None,
    login: Login | None = None,
) -> AsyncIterator[HttpServer]:
    server = HttpServer(served or application(routes), parse_address("0"), limits=limits, tls=tls, login=login)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@contextlib.asynccontextmanager
async def connected(
    server: HttpServer, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    name = "localhost" if tls else None
    reader, writer = await asyncio.open_connection(*server.address, ssl=tls, server_hostname=name)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def ask(server: HttpServer, request: str, tls: ssl.SSLContext | None = None) -> Answer:
    """`request` is its first line and what headers there are, each in a line; it ends the connection."""
    async with connected(server, tls) as (reader, writer):
        writer.write((request + "\nHost: here\nConnection: close\n\n").replace("\n", "\r\n").encode())
        return await answer(reader)


async def answer(reader: asyncio.StreamReader) -> Answer:
    """All that comes until the server ends the connection."""
    async with asyncio.timeout(60):
        head, _, body = (await reader.read(-1)).partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    return Answer(int(first.split()[1]), headers, body)
