"""A proxy before a broker that knows which request passes: it holds one back, or its answer, until it is let go.

So a test can wait until a driver has come to a certain place, and kill it there.
"""

import asyncio
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from ottla.protocol.apis import ApiKey

_SIZE = struct.Struct(">i")
_HEAD = struct.Struct(">hhi")

STEPS_UNTIL_CLOSED = 5

Matches = Callable[[ApiKey, bytes], bool]
"""By a request's API and its bytes."""


@dataclass
class Hold:
    """The first request that matches stops here, before or after the broker has got it."""

    matches: Matches
    after: bool = False
    reached: threading.Event = field(default_factory=threading.Event)

    def wait(self, seconds: float = 120.0) -> None:
        assert self.reached.wait(seconds), "no request came to the place where it was awaited"


class Gate:
    """Runs on a thread of its own. Connections that hold something stay as they are until `open` cuts them."""

    def __init__(self, upstream_port: Callable[[], int]) -> None:
        self.port = 0
        self._upstream_port = upstream_port
        self._loop = asyncio.new_event_loop()
        self._hold: Hold | None = None
        self._held: list[asyncio.StreamWriter] = []
        self._never = asyncio.Event()
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = (
            set()
        )  # the loop itself does not keep a task alive that waits for nothing else
        self._thread = threading.Thread(target=self._loop.run_forever, name="gate", daemon=True)
        self._server: asyncio.Server | None = None

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(60)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self.end_connections(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()

    def hold(self, matches: Matches, *, after: bool = False) -> Hold:
        self._hold = Hold(matches, after)
        return self._hold

    def open(self) -> None:
        """Let everything through again; what was held is lost with its connection."""
        self._hold = None
        for writer in self._held:
            self._loop.call_soon_threadsafe(writer.close)
        self._held.clear()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def end_connections(self) -> None:
        assert self._server is not None
        # Connections that are being accepted become tasks first: cancelled before, or by a server that was closed in
        # that moment, they would leave a socket open. So no more are looked at, and the server is closed behind them.
        for listening in self._server.sockets:
            self._loop.remove_reader(listening.fileno())
        while others := [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]:
            for task in self._serving:
                task.cancel()
            await asyncio.wait(others, timeout=0.1)
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()  # closed politely, one whose peer reads no more would stay open
        for _ in range(STEPS_UNTIL_CLOSED):  # a socket is closed in a later step of the loop, which is about to stop
            await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        self._writers.add(writer)
        try:
            await self._between(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            self._serving.discard(task)

    async def _between(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._upstream_port())
        self._writers.add(up_writer)
        answers: set[int] = set()
        pumps = [
            asyncio.create_task(self._requests(reader, up_writer, writer, answers)),
            asyncio.create_task(self._answers(up_reader, writer, answers)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            up_writer.close()

    async def _requests(
        self,
        reader: asyncio.StreamReader,
        upstream: asyncio.StreamWriter,
        client: asyncio.StreamWriter,
        withheld: set[int],
    ) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                frame = await _frame(reader)
                key, _, correlation_id = _HEAD.unpack_from(frame, _SIZE.size)
                hold = self._hold
                if hold is not None and not hold.reached.is_set() and hold.matches(ApiKey(key), frame):
                    self._held.append(client)
                    if not hold.after:
                        hold.reached.set()
                        await self._never.wait()
                    withheld.add(correlation_id)
                upstream.write(frame)
                await upstream.drain()

    async def _answers(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter, withheld: set[int]) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                frame = await _frame(reader)
                if _SIZE.unpack_from(frame, _SIZE.size)[0] in withheld:
                    if self._hold is not None:
                        self._hold.reached.set()
                    await self._never.wait()
                client.write(frame)
                await client.drain()


async def _frame(reader: asyncio.StreamReader) -> bytes:
    size = await reader.readexactly(_SIZE.size)
    return size + await reader.readexactly(_SIZE.unpack(size)[0])


@contextmanager
def gate(upstream_port: Callable[[], int]) -> Iterator[Gate]:
    running = Gate(upstream_port)
    running.start()
    try:
        yield running
    finally:
        running.close()
