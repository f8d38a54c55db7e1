"""From a frame to a handler: header, version, decoding, and errors turned into answers."""

import asyncio
import inspect
import logging
from collections import Counter
from collections.abc import Awaitable, Coroutine, Iterable, Iterator
from typing import Any

from ottla.broker.handlers.common.failures import failure_response
from ottla.broker.handlers.context import (
    Broker,
    Call,
    CloseConnection,
    NoResponse,
    Parked,
    Raw,
    Response,
)
from ottla.broker.handlers.sasl_authenticate import answer_bare
from ottla.broker.handlers.table import Handler, load_handlers
from ottla.broker.quotas.showing import show as show_quotas
from ottla.broker.security.sasl.login import Login
from ottla.broker.server import gate
from ottla.broker.server.answer import Answer
from ottla.broker.server.charging import timed
from ottla.broker.session import Session
from ottla.config.listeners import ListenerAddress
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol import codec
from ottla.protocol.apis import REQUEST_FLEXIBLE_FROM, ApiKey
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.frames import RequestHeader, read_request_header
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.response_errors import errors_in
from ottla.protocol.schema import TopLevel
from ottla.telemetry import catalogue

logger = logging.getLogger(__name__)

PATIENCE_MS_MAX = 10_000
"""How long a change waits for a metadata store that is away; less if the request has less time."""

_API_VERSIONS = int(ApiKey.API_VERSIONS)  # compared for every request: an enum's own comparison is slower
_READY = (TopLevel, Parked, NoResponse, CloseConnection)


class Dispatcher:
    def __init__(self, broker: Broker, loop: asyncio.AbstractEventLoop) -> None:
        self._broker = broker
        self._loop = loop
        self._handlers = load_handlers()
        self.quotas = broker.quotas
        self.login_counts = broker.authenticators.counts
        show_quotas(broker.quotas, broker.telemetry, lambda: int(broker.clock.monotonic() * 1000))
        self.telemetry = broker.telemetry
        self.telemetry.observe(catalogue.REQUESTS, self._read_requests)
        self.telemetry.observe(catalogue.ERRORS, self._read_errors)
        self.expired_connections = 0
        self._follower_fetches: Counter[int] = Counter()
        """By version: those of `Fetch` that came from other brokers."""
        self._tasks: set[asyncio.Task[None]] = set()

    def dispatch(self, frame: bytearray, session: Session) -> Answer:
        """Handle one request. MalformedMessage means that the connection cannot go on."""
        refused = False
        if session.restricted:
            passage = self._check(frame, session)
            if passage is gate.Passage.BARE_TOKEN:
                return self._bare_token(bytes(frame), session)
            refused = passage is gate.Passage.REFUSE
        header = read_request_header(frame, REQUEST_FLEXIBLE_FROM)
        api_key, version = header.api_key, header.version
        handler = self._handlers.get(api_key)
        if handler is None:
            raise MalformedMessage(f"API key {api_key} is not served here")
        client_id = header.client_id
        if client_id != session.client_id:
            session.called(client_id)
        call = Call(api_key, version, client_id, session)
        if not handler.min_version <= version <= handler.max_version:
            return self._wrong_version(header, call)
        handler.came[version] += 1
        request = codec.decode(handler.request_class, version, frame, header.body_start)
        flexible = version >= handler.flexible_from and api_key != _API_VERSIONS
        outcome = self._run(handler, call, request) if not refused else self._out_of_turn(handler, call, request)
        if call.exempt and api_key == ApiKey.FETCH:
            self._follower_fetches[version] += 1
        return Answer(call, header.correlation_id, flexible, outcome)

    def _check(self, frame: bytearray, session: Session) -> gate.Passage:
        try:
            return gate.check(frame, session, self._loop.time())
        except gate.SessionExpired:
            self.expired_connections += 1
            raise

    def begin_login(self, listener: ListenerAddress) -> Login | None:
        """What takes the tokens of a client that came through this listener; None where nobody is asked for any."""
        if not listener.security_protocol.startswith("SASL_"):
            return None
        return self._broker.authenticators.begin(listener.name)

    def _bare_token(self, token: bytes, session: Session) -> Answer:
        call = Call(ApiKey.SASL_AUTHENTICATE, 0, session.client_id, session)
        handler = self._handlers[ApiKey.SASL_AUTHENTICATE]
        request = SaslAuthenticateRequest(auth_bytes=token)
        outcome = self._park(handler, call, request, answer_bare(self._broker, call, token))
        return Answer(call, 0, False, outcome, bare=True)

    def _out_of_turn(self, handler: Handler, call: Call, request: TopLevel) -> Parked:
        async def refuse() -> Response:
            await self._broker.authenticators.refused(call.session, f"{handler.name} in the middle of a login")
            call.then_close = True
            text = f"Unexpected Kafka request of type {handler.name} during SASL authentication."
            return failure_response(request, ErrorCode.ILLEGAL_SASL_STATE, text)

        return self._park(handler, call, request, refuse())

    def pack(self, answer: Answer, response: TopLevel | Raw) -> Raw:
        """The body of a response as it goes out."""
        throttle_ms = answer.call.throttle_ms
        if type(response) is Raw:
            if throttle_ms:
                response.tell_throttle(throttle_ms)
            if response.errors:
                self._note_errors(answer.call, response.errors)
            return response
        assert isinstance(response, TopLevel), response
        errors = errors_in(response)
        if errors:
            self._note_errors(answer.call, errors)
        if throttle_ms and "throttle_time_ms" in response.__struct_fields__:
            response.throttle_time_ms = throttle_ms  # type: ignore[attr-defined]
        body = codec.encode(response, answer.call.version)
        return Raw([body], len(body))

    def _note_errors(self, call: Call, codes: Iterable[int]) -> None:
        noted = self._handlers[call.api_key].errors
        for code in codes:
            noted[code] = noted.get(code, 0) + 1

    def _read_requests(self) -> Iterator[tuple[tuple[str, str], int]]:
        for handler in self._handlers.values():
            for version, count in enumerate(handler.came):
                if count:
                    yield (handler.name, str(version)), count
        # As Kafka does: of all fetches, and again of consumers' and of followers'.
        for version, count in enumerate(self._handlers[ApiKey.FETCH].came):
            followers = self._follower_fetches[version]
            for name, number in (("FetchConsumer", count - followers), ("FetchFollower", followers)):
                if number:
                    yield (name, str(version)), number

    def _read_errors(self) -> Iterator[tuple[tuple[str, str], int]]:
        for handler in self._handlers.values():
            for code, count in handler.errors.items():
                yield (handler.name, ErrorCode(code).name), count

    def _run(self, handler: Handler, call: Call, request: TopLevel) -> Response | Parked:
        if handler.wants_newest is not None and handler.wants_newest(self._broker, call, request):
            return self._park(handler, call, request, self._run_on_newest(handler, call, request))
        try:
            outcome = handler.handle(self._broker, call, request)
        except ApiError as error:
            return _refused(handler, call, request, error)
        except Exception:
            logger.exception("Error handling %s v%d from %s", handler.name, call.version, call.session.host)
            return failure_response(request, ErrorCode.UNKNOWN_SERVER_ERROR, None)
        if type(outcome) is Raw or isinstance(outcome, _READY):
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
            response = await (coroutine if self.quotas.requests is None else timed(self.quotas, call, coroutine))
        except ApiError as error:
            response = _refused(handler, call, request, error)
        except Exception:
            logger.exception("Error handling %s v%d from %s", handler.name, call.version, call.session.host)
            response = failure_response(request, ErrorCode.UNKNOWN_SERVER_ERROR, None)
        parked.resolve(response)

    def _wrong_version(self, header: RequestHeader, call: Call) -> Answer:
        """A client that is too new asks for ApiVersions first; it is told in version 0 what this broker speaks."""
        if header.api_key != ApiKey.API_VERSIONS:
            raise MalformedMessage(f"API key {header.api_key} is not served in version {header.version}")
        call.version = 0
        self._handlers[header.api_key].came[0] += 1
        told = self._handlers[header.api_key].handle(self._broker, call, ApiVersionsRequest())
        call.session.asked_versions = False  # it may ask again, as it has to
        told.error_code = ErrorCode.UNSUPPORTED_VERSION
        told.api_keys = [entry for entry in told.api_keys if entry.api_key == ApiKey.API_VERSIONS]
        return Answer(call, header.correlation_id, False, told)


def _refused(handler: Handler, call: Call, request: TopLevel, error: ApiError) -> Response:
    if handler.refuse is not None:
        return handler.refuse(call, request, error)
    return failure_response(request, error.code, error.message)


async def _wait(future: "asyncio.Future[Response]") -> Response:
    return await future
