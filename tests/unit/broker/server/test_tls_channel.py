"""A connection over TLS: what goes in comes out, nothing in clear, nobody waits for somebody else's large answer."""

import asyncio
import os
import random
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
from tests.unit.broker.server.by_hand import EchoDispatcher

from ottla.broker.handlers.context import Raw
from ottla.broker.server.connection import Connection
from ottla.broker.server.limits import RequestMemory
from ottla.broker.server.tls_channel import TURN_BYTES, TlsChannel
from ottla.broker.server.tls_handshake import Handshakes
from ottla.broker.server.turn import FlushTurn
from ottla.broker.session import Session
from ottla.broker.storage.disk import SegmentFile
from ottla.broker.storage.log import LogSlice
from ottla.protocol.frames import SIZE
from ottla.tls.authority import Authority, make_authority
from ottla.tls.contexts import Agreement, client_context, server_context
from ottla.tls.stores import TrustStore

SECRET = b"a secret that must not be seen on the wire"
SLICE_BYTES = 24 * 1024 * 1024


@pytest.fixture(scope="module")
def authority() -> Authority:
    return make_authority()


class Pair:
    """A connection of a broker and a client's end of it, on a real loop."""

    def __init__(self, authority: Authority, version: str = "TLSv1.3") -> None:
        trust = TrustStore((authority.certificate,))
        keys = authority.issue("broker", ["localhost"])
        self.server = server_context(keys, None, ssl.CERT_NONE, Agreement((version,)))
        self.client = client_context(None, trust, Agreement((version,)), check_hostname=True)
        self.dispatcher = EchoDispatcher()
        self.connection: Connection | None = None

    async def serve(self, ours: socket.socket) -> TlsChannel:
        loop = asyncio.get_running_loop()
        ours.setblocking(False)
        agreed: asyncio.Future[TlsChannel] = loop.create_future()
        handshakes = Handshakes(loop)
        handshakes.begin(
            ours,
            self.server,
            lambda channel, _certificate: agreed.set_result(channel),
            lambda why, *, went_away: agreed.set_exception(AssertionError(why)),
        )
        channel = await agreed
        handshakes.close()
        self.connection = Connection(
            loop, channel, Session("L", "h"), self.dispatcher,  # type: ignore[arg-type]
            RequestMemory(lambda: -1), FlushTurn(loop), 1 << 24, lambda connection: None,
        )  # fmt: skip
        return channel

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        ours, theirs = socket.socketpair()
        serving = asyncio.ensure_future(self.serve(ours))
        streams = await asyncio.open_connection(sock=theirs, ssl=self.client, server_hostname="localhost")
        await serving
        return streams


def on_a_loop(work: Callable[[], Awaitable[Any]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(60):
            await work()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


async def answer(reader: asyncio.StreamReader) -> bytes:
    (size,) = SIZE.unpack(await reader.readexactly(4))
    return (await reader.readexactly(size))[4:]


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("seed", range(3))
def test_what_goes_in_comes_out(authority: Authority, version: str, seed: int) -> None:
    chance = random.Random(seed)
    sizes = (9, 900, 16_384, 70_000, 200_000, 3_000_000)
    requests = [chance.randbytes(chance.choice(sizes)) for _ in range(25)]

    async def work() -> None:
        pair = Pair(authority, version)
        reader, writer = await pair.connect()
        stream = b"".join(SIZE.pack(len(request)) + request for request in requests)

        async def send() -> None:
            position = 0
            while position < len(stream):
                size = chance.choice((1, 1000, 50_000, 1_000_000))
                writer.write(stream[position : position + size])
                position += size
                await writer.drain()

        sending = asyncio.ensure_future(send())
        for request in requests:
            assert await answer(reader) == request
        await sending
        assert pair.connection is not None
        assert pair.connection.received_bytes == len(stream)
        pair.connection.close()
        assert await reader.read() == b"", "the end is said, not just met: else this would be an error of TLS"
        writer.transport.abort()

    on_a_loop(work)


def segment(folder: Path, content: bytes) -> SegmentFile:
    path = folder / "segment"
    path.write_bytes(content)
    return SegmentFile(os.open(path, os.O_RDONLY))


def test_a_large_slice_is_exact_and_others_have_their_turns(authority: Authority, tmp_path: Path) -> None:
    content = random.Random(1).randbytes(SLICE_BYTES + 20)
    file = segment(tmp_path, content)

    async def work() -> None:
        pair = Pair(authority)
        reader, writer = await pair.connect()
        piece = LogSlice(file, 10, SLICE_BYTES, 0)
        pair.dispatcher.answer_with = lambda request: Raw([b"before ", piece, b" after"], 13 + SLICE_BYTES)
        turns = 0
        loop = asyncio.get_running_loop()

        def count() -> None:
            nonlocal turns
            turns += 1
            loop.call_soon(count)

        writer.write(SIZE.pack(9) + b"request-1")
        loop.call_soon(count)
        got = await answer(reader)
        assert got == b"before " + content[10 : 10 + SLICE_BYTES] + b" after"
        assert turns >= SLICE_BYTES // TURN_BYTES
        assert pair.connection is not None
        pair.connection.close()
        writer.transport.abort()

    on_a_loop(work)


def test_a_slice_that_is_shorter_than_promised_ends_the_connection(authority: Authority, tmp_path: Path) -> None:
    file = segment(tmp_path, bytes(100_000))

    async def work() -> None:
        pair = Pair(authority)
        reader, writer = await pair.connect()
        piece = LogSlice(file, 0, 200_000, 0)
        pair.dispatcher.answer_with = lambda request: Raw([b"before", piece], 200_006)
        writer.write(SIZE.pack(9) + b"request-1")
        assert len(await reader.read()) < 200_000
        assert pair.connection is not None
        assert pair.connection.is_closed()
        writer.transport.abort()

    on_a_loop(work)


def test_nothing_is_seen_on_the_wire(authority: Authority, tmp_path: Path) -> None:
    file = segment(tmp_path, SECRET * 1000)

    async def work() -> None:
        pair = Pair(authority)
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        serving = asyncio.ensure_future(pair.serve(ours))
        loop = asyncio.get_running_loop()
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = pair.client.wrap_bio(incoming, outgoing, server_hostname="localhost")
        seen = b""

        async def until(step: Callable[[], Any]) -> Any:
            nonlocal seen
            while True:
                try:
                    return step()
                except ssl.SSLWantReadError:
                    await loop.sock_sendall(theirs, outgoing.read())
                    data = await loop.sock_recv(theirs, 65_536)
                    seen += data
                    incoming.write(data)

        await until(tls.do_handshake)
        piece = LogSlice(file, 0, len(SECRET) * 1000, 0)
        pair.dispatcher.answer_with = lambda request: Raw([SECRET, piece], len(SECRET) * 1001)
        tls.write(SIZE.pack(9) + b"request-1")
        got = b""
        while len(got) < len(SECRET) * 1001:
            got += await until(lambda: tls.read(65_536))
        assert got[8:] == SECRET * 1001
        assert len(seen) > len(got)
        assert SECRET[:8] not in seen
        await serving
        assert pair.connection is not None
        pair.connection.close()
        rest = await loop.sock_recv(theirs, 65_536)
        assert rest[0] == 0x17, "the goodbye is encrypted too"
        assert await loop.sock_recv(theirs, 65_536) == b""
        theirs.close()

    on_a_loop(work)


def test_a_peer_that_does_not_read_is_waited_for(authority: Authority, tmp_path: Path) -> None:
    content = random.Random(2).randbytes(4_000_000)
    file = segment(tmp_path, content)

    async def work() -> None:
        pair = Pair(authority)
        reader, writer = await pair.connect()
        piece = LogSlice(file, 0, len(content), 0)
        pair.dispatcher.answer_with = lambda request: Raw([b"before", piece], 6 + len(content))
        transport: Any = writer.transport
        transport.pause_reading()
        writer.write(SIZE.pack(9) + b"request-1")
        connection = pair.connection
        assert connection is not None
        sent = -1
        while sent != connection.sent_bytes or not sent:
            sent = connection.sent_bytes
            await asyncio.sleep(0.05)
        assert sent < 2_000_000, "what the peer does not take stays in the file"
        transport.resume_reading()
        assert await answer(reader) == b"before" + content
        connection.close()
        writer.transport.abort()

    on_a_loop(work)
