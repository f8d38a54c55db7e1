"""uvicorn's HTTP/1.1 connection, with an end to what clients may draw out.

uvicorn itself closes connections that are idle between two requests. A client that sends its headers byte by byte, or
does not take its answer, would stay for ever.
"""

import asyncio
import json
import logging
import sys
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from ottla.http.application import ErrorBody
from ottla.http.limits import HttpLimits, too_large_headers

logger = logging.getLogger(__name__)


class HttpConnection(H11Protocol):
    def __init__(self, config: Config, state: ServerState, limits: HttpLimits, error_body: ErrorBody) -> None:
        super().__init__(config, state, {}, asyncio.get_running_loop())
        self.logger = logger
        self.access_log = False  # the guard's
        self._limits = limits
        self._error_body = error_body
        self._headers_since: float | None = None
        self._unsent = (0, 0.0)
        """How many bytes were waiting for the client when that was last seen to change, and when."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._headers_since = self.loop.time()
        if len(self.connections) > self._limits.connections_max + self._limits.connections_spare:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._note_headers(self.loop.time())

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._note_headers(None)

    def _note_headers(self, now: float | None) -> None:
        """Their time runs from the first byte on, however many follow; None: nothing has come."""
        if self.cycle is not None and not self.cycle.response_complete:  # type: ignore[redundant-expr] # None at first
            self._headers_since = None
        elif self._headers_since is None:
            self._headers_since = now

    def look(self, now: float) -> None:
        """Called again and again: ends the connection of a client that is too slow."""
        if self._headers_since is not None and now - self._headers_since > self._limits.header_seconds_max:
            self.transport.abort()
            return
        unsent = self.transport.get_write_buffer_size()
        if unsent == 0 or unsent != self._unsent[0]:
            self._unsent = (unsent, now)
        elif now - self._unsent[1] > self._limits.write_seconds_max:
            self.transport.abort()

    def _unsupported_upgrade_warning(self) -> None:
        """Whoever asks for another protocol is answered in this one; that is nothing to warn of."""

    def send_400_response(self, msg: str) -> None:
        """For bytes that are no request: in the form of all other errors."""
        error = sys.exception()
        status = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else HTTPStatus.BAD_REQUEST
        text = too_large_headers(self._limits) if status == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE else msg
        body = json.dumps(self._error_body(status, text)).encode() + b"\n"
        headers = [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
            ("Connection", "close"),
        ]
        events: list[Any] = [
            h11.Response(status_code=status, headers=headers, reason=HTTPStatus(status).phrase.encode()),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ]
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            for event in events:
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
