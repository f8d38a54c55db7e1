"""From a frame to a handler: header, version, decoding, and errors turned into answers."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Coroutine
from typing import Any

import msgspec

from ottla.broker.handlers.context import (
    Broker,
    Call,
    CloseConnection,
    NoResponse,
    Parked,
    Raw,
    Response,
)
from ottla.broker.handlers.failures import failure_response
from ottla.broker.handlers.table import Handler, load_handlers
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol import codec
from ottla.protocol.apis import REQUEST_FLEXIBLE_FROM, ApiKey
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.frames import RequestHeader, read_request_header
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.schema import TopLevel

log = logging.getLogger(__name__)

PATIENCE_MS_MAX = 10_000
"""How long a change waits for a metadata store that is away; less if the request has less time."""

_READY = (TopLevel, Raw, Parked, NoResponse, CloseConnection)


class Answer(msgspec.Struct):
    """A request on its way: what it was, how its response begins, and the response or the promise of one."""

    call: Call
    correlation_id: int
    flexible_header: bool
    outcome: Response | Parked


class Dispatcher:
    def __init__(self, broker: Broker, loop: asyncio.AbstractEventLoop) -> None:
        self._broker = broker
        self._loop = loop
        self._handlers = load_handlers()
        self._tasks: set[asyncio.Task[None]] = set()

    def dispatch(self, frame: bytearray, host: str, listener: str) -> Answer:
        """Handle one request. MalformedMessage means that the connection cannot go on."""
        header = read_request_header(frame, REQUEST_FLEXIBLE_FROM)
        handler = self._handlers.get(header.api_key)
        if handler is None:
            raise MalformedMessage(f"API key {header.api_key} is not served here")
        call = Call(header.api_key, header.version, header.client_id, host, listener)
        if not handler.min_version <= header.version <= handler.max_version:
            return self._wrong_version(header, call)
        request = codec.decode(handler.request_class, header.version, frame, header.body_start)
        flexible = header.version >= handler.flexible_from and header.api_key != ApiKey.API_VERSIONS
        return Answer(call, header.correlation_id, flexible, self._run(handler, call, request))

    def encode(self, response: object, version: int) -> bytearray:
        assert isinstance(response, TopLevel), response
        return codec.encode(response, version)

    def _run(self, handler: Handler, call: Call, request: TopLevel) -> Response | Parked:
        if handler.wants_newest is not None and handler.wants_newest(self._broker, call, request):
            return self._park(handler, call, request, self._run_on_newest(handler, call, request))
        try:
            outcome = handler.handle(self._broker, call, request)
        except ApiError as error:
            return failure_response(request, error.code, error.message)
        except Exception:
            log.exception("%s v%d failed", handler.name, call.version)
            return failure_response(request, ErrorCode.UNKNOWN_SERVER_ERROR, None)
        if isinstance(outcome, _READY):
            return outcome
        if inspect.iscoroutine(outcome):
            return self._park(handler, call, request, outcome)
        if asyncio.isfuture(outcome):
            return self._park(handler, call, request, _wait(outcome))
        raise AssertionError(f"{handler.name} answered with {outcome!r}")

    async def _run_on_newest(self, handler: Handler, call: Call, request: TopLevel) -> Response:
        if handler.changes_metadata:
            patience_ms = getattr(request, "timeout_ms", PATIENCE_MS_MAX)
            await self._broker.metadata.connected(min(max(0, patience_ms), PATIENCE_MS_MAX) / 1000)
        await self._broker.metadata.refresh()
        outcome: Response | Awaitable[Response] = handler.handle(self._broker, call, request)
        return await outcome if inspect.isawaitable(outcome) else outcome

    def _park(
        self, handler: Handler, call: Call, request: TopLevel, coroutine: Coroutine[Any, Any, Response]
    ) -> Parked:
        parked = Parked(holds_connection=True)
        task = self._loop.create_task(self._finish(parked, handler, call, request, coroutine))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return parked

    async def _finish(
        self, parked: Parked, handler: Handler, call: Call, request: TopLevel, coroutine: Coroutine[Any, Any, Response]
    ) -> None:
        try:
            response = await coroutine
        except ApiError as error:
            response = failure_response(request, error.code, error.message)
        except Exception:
            log.exception("%s v%d failed", handler.name, call.version)
            response = failure_response(request, ErrorCode.UNKNOWN_SERVER_ERROR, None)
        parked.resolve(response)

    def _wrong_version(self, header: RequestHeader, call: Call) -> Answer:
        """A client that is too new asks for ApiVersions first; it is told in version 0 what this broker speaks."""
        if header.api_key != ApiKey.API_VERSIONS:
            raise MalformedMessage(f"API key {header.api_key} is not served in version {header.version}")
        call.version = 0
        told = self._handlers[header.api_key].handle(self._broker, call, ApiVersionsRequest())
        told.error_code = ErrorCode.UNSUPPORTED_VERSION
        told.api_keys = [entry for entry in told.api_keys if entry.api_key == ApiKey.API_VERSIONS]
        return Answer(call, header.correlation_id, False, told)


async def _wait(future: "asyncio.Future[Response]") -> Response:
    return await future
