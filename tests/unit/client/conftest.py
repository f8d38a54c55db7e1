"""A broker at the socket that says what a test tells it to: the seam where a client meets the world."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from ottla.protocol.apis import API, REQUEST_FLEXIBLE_FROM, response_header_is_flexible
from ottla.protocol.codec import decode, encode
from ottla.protocol.frames import RequestHeader, read_request_header, response_head
from ottla.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.schema import TopLevel

Answer = Callable[[RequestHeader, TopLevel], TopLevel | None]
"""What to answer to a request; None leaves it unanswered."""


class ScriptedBroker:
    def __init__(self, answer: Answer, served: dict[int, tuple[int, int]] | None = None) -> None:
        self.port = 0
        self.seen: list[tuple[RequestHeader, TopLevel]] = []
        self.greetings: list[ApiVersionsRequest] = []
        self.in_reverse = False
        """Answer each pair of requests in the wrong order."""
        self.answer = answer
        self._served = served or {key: (spec.min_version, spec.max_version) for key, spec in API.items()}
        self._held: list[bytes] = []
        self._saw = asyncio.Event()
        self._writers: list[asyncio.StreamWriter] = []

    async def has_seen(self, count: int) -> None:
        while len(self.seen) < count:
            self._saw.clear()
            await self._saw.wait()

    def hang_up(self) -> None:
        for writer in self._writers:
            writer.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                self._handle(await reader.readexactly(size), writer)
        except (asyncio.IncompleteReadError, ConnectionResetError):
            writer.close()

    def _handle(self, frame: bytes, writer: asyncio.StreamWriter) -> None:
        header = read_request_header(frame, REQUEST_FLEXIBLE_FROM)
        spec = API[header.api_key]
        request = decode(spec.request_class, header.version, frame, header.body_start)
        version = header.version
        if isinstance(request, ApiVersionsRequest):
            self.greetings.append(request)
            answer: TopLevel | None = self._versions()
            if version > self._served[header.api_key][1]:
                # As Kafka does for a version it does not know: the answer is in version 0.
                answer, version = ApiVersionsResponse(error_code=35, api_keys=self._versions().api_keys), 0
        else:
            self.seen.append((header, request))
            self._saw.set()
            answer = self.answer(header, request)
        if answer is None:
            return
        body = encode(answer, version)
        flexible = response_header_is_flexible(header.api_key, version)
        reply = response_head(header.correlation_id, len(body), flexible=flexible) + body
        if self.in_reverse and header.api_key != ApiVersionsResponse.API_KEY:
            self._held.append(reply)
            if len(self._held) < 2:
                return
            reply = b"".join(reversed(self._held))
        writer.write(reply)

    def _versions(self) -> ApiVersionsResponse:
        return ApiVersionsResponse(
            api_keys=[
                ApiVersion(api_key=key, min_version=lowest, max_version=highest)
                for key, (lowest, highest) in self._served.items()
            ]
        )


@asynccontextmanager
async def scripted_broker(
    answer: Answer, served: dict[int, tuple[int, int]] | None = None
) -> AsyncIterator[ScriptedBroker]:
    broker = ScriptedBroker(answer, served)
    server = await asyncio.start_server(broker.serve, "127.0.0.1", 0)
    broker.port = server.sockets[0].getsockname()[1]
    try:
        yield broker
    finally:
        server.close()
        broker.hang_up()
        await server.wait_closed()
