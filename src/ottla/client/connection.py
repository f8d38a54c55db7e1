"""One connection to one broker: requests go out in order, answers come back in the same order."""

import asyncio
import os
import socket
import ssl
import struct
import time
from collections import deque
from typing import NamedTuple, Self, TypeVar

from ottla import __version__
from ottla.client import sasl
from ottla.client.errors import (
    AuthenticationFailed,
    ConnectionLost,
    NotTrusted,
    RequestTimeout,
    Unreachable,
    UnsupportedByBroker,
)
from ottla.client.security import PLAINTEXT, Sasl, Security, ssl_context
from ottla.client.wire import Frame, FrameProtocol
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.apis import response_header_is_flexible
from ottla.protocol.codec import decode, encode
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.frames import read_response_header, request_frame
from ottla.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ottla.protocol.schema import TopLevel

R = TypeVar("R", bound=TopLevel)

CLIENT_SOFTWARE_NAME = "ottla"
ANSWER_BYTES_MAX = 512 * 1024 * 1024
CONNECT_TIMEOUT_S = 10.0
REQUEST_TIMEOUT_S = 30.0
CLOSE_TIMEOUT_S = 5.0
SESSION_LIFE_SHARE = 0.85
"""A broker that ends sessions is told who we are again after this share of a session's life."""

_INT16 = struct.Struct(">h")


class _Waiting(NamedTuple):
    correlation_id: int
    answer: asyncio.Future[Frame]


class Connection:
    """Open one with `Connection.open`; any number of tasks may call it at once."""

    def __init__(self, address: str, client_id: str, credentials: Sasl | None = None) -> None:
        self.address = address
        self.versions: dict[int, ApiVersion] = {}
        """What the broker serves, by API key."""
        self.features: dict[str, int] = {}
        """The cluster's finalized feature levels, such as `transaction.version`."""
        self._wire = FrameProtocol(ANSWER_BYTES_MAX, self._deliver, self._ended)
        self._client_id = client_id
        self._credentials = credentials
        self._authenticate_at: float | None = None
        self._authenticating = asyncio.Lock()
        self._next_correlation_id = 0
        self._waiting: deque[_Waiting] = deque()
        self._lost: ConnectionLost | None = None

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        *,
        client_id: str = "ottla",
        timeout_s: float = CONNECT_TIMEOUT_S,
        security: Security = PLAINTEXT,
    ) -> Self:
        """Connect, learn which versions the broker speaks, and say who we are if `security` tells."""
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            async with asyncio.timeout(timeout_s):
                connection = cls(address, client_id, security.sasl)
                await asyncio.get_running_loop().create_connection(
                    lambda: connection._wire,
                    host,
                    port,
                    ssl=ssl_context(security.tls) if security.tls is not None else None,
                )
                try:
                    await connection._negotiate()
                    if security.sasl is not None:
                        await connection._authenticate(security.sasl)
                except BaseException:
                    await connection.close()
                    raise
                return connection
        except TimeoutError:
            raise Unreachable(f"{address} did not answer within {timeout_s:g} s") from None
        except ssl.SSLError as error:
            raise NotTrusted(f"{address}: {_tls_reason(error)}") from error
        except OSError as error:
            in_tls = security.tls is not None and not _reason(error)
            raise Unreachable(
                f"{address}: {'it hung up when TLS began; does it speak TLS?' if in_tls else _reason(error)}"
            ) from error

    @property
    def usable(self) -> bool:
        return self._lost is None

    async def call(
        self,
        request: TopLevel,
        answer: type[R],
        *,
        timeout_s: float = REQUEST_TIMEOUT_S,
        min_version: int = 0,
        max_version: int | None = None,
    ) -> R:
        """Send a request in the newest version both sides know and decode the answer as `answer`.

        `min_version` and `max_version` narrow the choice where a caller fills in only some versions' fields.
        """
        version = self.version_for(request, min_version, max_version)
        await self._stay_authenticated()
        frame = await self._exchange(request, version, timeout_s)
        flexible = response_header_is_flexible(request.API_KEY, version)
        _, body_start = read_response_header(frame, flexible=flexible)
        return decode(answer, version, frame, body_start)

    async def tell(self, request: TopLevel, *, max_version: int | None = None) -> None:
        """Send a request that the broker does not answer (Produce with acks 0); returns when the socket took it."""
        await self._stay_authenticated()
        if self._lost is not None:
            raise self._lost
        self._wire.write(self._frame(request, self.version_for(request, 0, max_version))[1])
        try:
            await self._wire.drain()
        except OSError as error:
            lost = ConnectionLost(f"the connection to {self.address} broke: {_reason(error)}")
            self._fail(lost)
            raise lost from error

    def version_for(self, request: TopLevel, min_version: int = 0, max_version: int | None = None) -> int:
        served = self.versions.get(request.API_KEY)
        if served is None:
            raise UnsupportedByBroker(f"the broker at {self.address} does not serve {request.NAME}")
        highest = min(served.max_version, request.MAX_VERSION if max_version is None else max_version)
        if highest < max(served.min_version, request.MIN_VERSION, min_version):
            raise UnsupportedByBroker(
                f"the broker at {self.address} serves {request.NAME} v{served.min_version} to v{served.max_version}, "
                f"and this client writes v{max(request.MIN_VERSION, min_version)} to "
                f"v{request.MAX_VERSION if max_version is None else max_version}"
            )
        return highest

    async def close(self) -> None:
        self._fail(ConnectionLost(f"the connection to {self.address} was closed"))
        await self._wire.wait_closed(CLOSE_TIMEOUT_S)

    async def _negotiate(self) -> None:
        request = ApiVersionsRequest(client_software_name=CLIENT_SOFTWARE_NAME, client_software_version=__version__)
        version = ApiVersionsRequest.MAX_VERSION
        frame = await self._exchange(request, version, REQUEST_TIMEOUT_S)
        _, start = read_response_header(frame, flexible=False)
        if _INT16.unpack_from(frame, start)[0] == ErrorCode.UNSUPPORTED_VERSION:
            # An older broker answers in version 0 and says there which version to ask in.
            refusal = decode(ApiVersionsResponse, 0, frame, start)
            own = [api.max_version for api in refusal.api_keys if api.api_key == ApiVersionsRequest.API_KEY]
            version = min(version, own[0]) if own else 0
            frame = await self._exchange(request, version, REQUEST_TIMEOUT_S)
        response = decode(ApiVersionsResponse, version, frame, start)
        if response.error_code:
            raise ApiError(ErrorCode(response.error_code), f"{self.address} refused to say which versions it speaks")
        self.versions = {api.api_key: api for api in response.api_keys}
        self.features = {feature.name: feature.max_version_level for feature in response.finalized_features}

    async def _stay_authenticated(self) -> None:
        """Say who we are again before the broker ends the session; nothing else may be sent meanwhile."""
        if self._authenticate_at is None:
            return
        async with self._authenticating:
            if self._credentials is not None and time.monotonic() >= self._authenticate_at:
                await self._authenticate(self._credentials)

    async def _authenticate(self, credentials: Sasl) -> None:
        hello = SaslHandshakeRequest(mechanism=credentials.mechanism)
        offered = await self._ask(hello, SaslHandshakeResponse)
        if offered.error_code:
            raise AuthenticationFailed(
                f"{self.address} does not offer {credentials.mechanism}; it offers {', '.join(offered.mechanisms)}"
            )
        exchange = await sasl.exchange(credentials, self.address.rpartition(":")[0].strip("[]"))
        message: bytes | None = next(exchange)
        while message is not None:
            answer = await self._ask(SaslAuthenticateRequest(auth_bytes=message), SaslAuthenticateResponse)
            if answer.error_code:
                why = answer.error_message or ErrorCode(answer.error_code).name
                raise AuthenticationFailed(f"{self.address} refused the credentials: {why}")
            # In a thread: making a key of a password takes long, and a broker that logs in to others has more to do.
            message = await asyncio.to_thread(sasl.go_on, exchange, bytes(answer.auth_bytes))
        life_s = answer.session_lifetime_ms / 1000
        self._authenticate_at = time.monotonic() + life_s * SESSION_LIFE_SHARE if life_s > 0 else None

    async def _ask(self, request: TopLevel, answer: type[R]) -> R:
        version = self.version_for(request, 1 if request.API_KEY == SaslHandshakeRequest.API_KEY else 0)
        frame = await self._exchange(request, version, REQUEST_TIMEOUT_S)
        _, start = read_response_header(frame, flexible=response_header_is_flexible(request.API_KEY, version))
        return decode(answer, version, frame, start)

    async def _exchange(self, request: TopLevel, version: int, timeout_s: float) -> Frame:
        """Send one request and wait for the frame of its answer, without its size."""
        if self._lost is not None:
            raise self._lost
        correlation_id, frame = self._frame(request, version)
        waiting = _Waiting(correlation_id, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._wire.write(frame)
        try:
            async with asyncio.timeout(timeout_s):
                await self._wire.drain()
                return await waiting.answer
        except TimeoutError:
            # Answers come in order, so whoever asked after this request waits behind it too.
            self._fail(ConnectionLost(f"{self.address} stopped answering"))
            raise RequestTimeout(f"{self.address} did not answer {request.NAME} within {timeout_s:g} s") from None
        except OSError as error:
            lost = ConnectionLost(f"the connection to {self.address} broke: {_reason(error)}")
            self._fail(lost)
            raise lost from error

    def _frame(self, request: TopLevel, version: int) -> tuple[int, bytes]:
        correlation_id = self._next_correlation_id
        self._next_correlation_id = (correlation_id + 1) & 0x7FFF_FFFF
        return correlation_id, request_frame(
            request.API_KEY,
            version,
            correlation_id,
            self._client_id,
            encode(request, version),
            flexible=version >= request.FLEXIBLE_FROM,
        )

    def _ended(self, error: Exception | None) -> None:
        if error is None:
            self._fail(ConnectionLost(f"{self.address} closed the connection"))
        else:
            words = _reason(error) if isinstance(error, OSError) else str(error)
            self._fail(ConnectionLost(f"the connection to {self.address} broke: {words}"))

    def _deliver(self, frame: Frame) -> None:
        correlation_id = read_response_header(frame, flexible=False)[0]
        if not self._waiting or self._waiting[0].correlation_id != correlation_id:
            raise MalformedMessage(f"{self.address} answered request {correlation_id} out of turn")
        answer = self._waiting.popleft().answer
        if not answer.done():  # its caller may have been cancelled
            answer.set_result(frame)

    def _fail(self, error: ConnectionLost) -> None:
        """From now on nothing can be sent, and nobody waits in vain."""
        if self._lost is not None:
            return
        self._lost = error
        self._wire.close()
        while self._waiting:
            answer = self._waiting.popleft().answer
            if not answer.done():
                answer.set_exception(error)
                answer.exception()  # marks it as seen: its caller may have gone already


def _tls_reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted ({error.verify_message}); name the authority that signed it with "
            "ssl.ca.location"
        )
    if error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
        return "it does not speak TLS; is security.protocol right?"
    return f"TLS failed: {error.reason or error}"


def _reason(error: OSError) -> str:
    """Why, in the system's words: asyncio puts its own before them."""
    if isinstance(error, socket.gaierror) or not error.errno:
        return error.strerror or str(error)
    return os.strerror(error.errno).lower()
