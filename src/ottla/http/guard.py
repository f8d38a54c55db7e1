"""Between the connections and the application: who is let in, how large and how slow a body may be, the access log."""

import asyncio
import logging
import time
from collections.abc import Callable
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from ottla.http.application import Login, Served, json_answer
from ottla.http.limits import HttpLimits, too_large_headers

access_log = logging.getLogger("ottla.http.access")
"""One line per request, at DEBUG: quiet unless somebody wants to see them."""

CLOSE = {"Connection": "close"}


class Guard:
    """An ASGI application around another one. `connections` tells how many there are."""

    def __init__(self, served: Served, limits: HttpLimits, login: Login | None, connections: Callable[[], int]) -> None:
        self._served = served
        self._limits = limits
        self._login = login
        self._connections = connections

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        seen = _Seen(send)
        try:
            refusal = self._refusal(scope)
            if refusal is None and self._login is not None:
                scope["user"] = await self._login.authenticate(Request(scope))
                if scope["user"] is None:
                    refusal = HTTPException(
                        HTTPStatus.UNAUTHORIZED,
                        "this needs a login: none was sent, or it is wrong",
                        {"WWW-Authenticate": self._login.challenge},
                    )
            if refusal is None:
                await self._served.app(scope, _Body(scope, receive, self._limits).receive, seen.send)
            else:
                body = self._served.error_body(refusal.status_code, refusal.detail)
                await json_answer(body, refusal.status_code, refusal.headers)(scope, receive, seen.send)
        finally:
            if access_log.isEnabledFor(logging.DEBUG):
                seen.note(scope)

    def _refusal(self, scope: Scope) -> HTTPException | None:
        if self._connections() > self._limits.connections_max:
            text = f"there are more than {self._limits.connections_max} connections already; try again later"
            return HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, text, CLOSE)
        # What arrives in one piece has passed the check of pieces below, whatever its size.
        head = sum(len(name) + len(value) for name, value in scope["headers"]) + len(scope["raw_path"])
        if head + len(scope["query_string"]) > self._limits.header_bytes_max:
            return HTTPException(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, too_large_headers(self._limits), CLOSE)
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if int(declared) > self._limits.body_bytes_max:  # that it is a number is checked below
            return _too_large(self._limits)
        return None


def _too_large(limits: HttpLimits) -> HTTPException:
    text = f"the body of a request has at most {limits.body_bytes_max} bytes here"
    return HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text, CLOSE)


class _Body:
    """A request's body on its way in: what it raises becomes the answer, in the application's own handler."""

    def __init__(self, scope: Scope, receive: Receive, limits: HttpLimits) -> None:
        self._receive = receive
        self._limits = limits
        self._left = limits.body_bytes_max
        self._until: float | None = None
        self._complete = False

    async def receive(self) -> Message:
        if self._complete:  # whoever waits now waits for the client to go away, and may do so for long
            return await self._receive()
        if self._until is None:
            self._until = asyncio.get_running_loop().time() + self._limits.body_seconds_max
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            text = f"the body of a request arrives within {self._limits.body_seconds_max:g} seconds here"
            raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, text, CLOSE) from None
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise _too_large(self._limits)
        self._complete = not message.get("more_body", False)
        return message


class _Seen:
    """What goes out, for the access log."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._since = time.monotonic()
        self._status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
        await self._send(message)

    def note(self, scope: Scope) -> None:
        access_log.debug(
            "%s %s %s %s %s %.1f ms",
            ":".join(map(str, scope["client"] or ("-",))),
            scope.get("user") or "-",
            scope["method"],
            scope["raw_path"].decode("ascii"),
            self._status or "-",
            (time.monotonic() - self._since) * 1000,
        )
