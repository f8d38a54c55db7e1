"""An HTTP listener on an event loop that is somebody else's: it takes over neither the loop nor the signals."""

import asyncio
import contextlib
import logging
import socket
import ssl
import time
from email.utils import formatdate

from starlette.middleware.errors import ServerErrorMiddleware
from uvicorn.config import Config
from uvicorn.server import ServerState

from ottla.http.address import HttpAddress
from ottla.http.application import Login, Served, answer_to_failure
from ottla.http.connection import HttpConnection
from ottla.http.guard import Guard
from ottla.http.limits import HttpLimits
from ottla.http.listening import address_of, listen

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""How often connections are looked at, and how old the `Date` of an answer may be."""
HANDSHAKE_SECONDS_MAX = 15.0
CANCEL_SECONDS_MAX = 1.0


class HttpServer:
    """Serves from `start` until `stop`. With `tls` it is HTTPS; with `login` only those come in whom it knows."""

    def __init__(
        self,
        served: Served,
        where: HttpAddress | socket.socket,
        *,
        limits: HttpLimits | None = None,
        tls: ssl.SSLContext | None = None,
        login: Login | None = None,
    ) -> None:
        """`where` may be a socket that listens already, which then is the server's to close."""
        self._served = served
        self._where = where
        self._limits = limits or HttpLimits()
        self._tls = tls
        self._state = ServerState()
        guard = Guard(served, self._limits, login, lambda: self.connections)
        # Nothing is left to uvicorn's guesses: what else is installed does not change how this listener behaves.
        self._config = Config(
            ServerErrorMiddleware(guard, handler=answer_to_failure(served.error_body)),
            http=HttpConnection,
            ws="none",
            loop="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=self._limits.idle_seconds_max,
            h11_max_incomplete_event_size=self._limits.header_bytes_max,
        )
        self._server: asyncio.Server | None = None
        self._looking: asyncio.Task[None] | None = None
        self._address: HttpAddress | None = None

    @property
    def address(self) -> HttpAddress:
        assert self._address is not None, "start first"
        return self._address

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://{self.address}"

    @property
    def connections(self) -> int:
        return len(self._state.connections)

    async def start(self) -> None:
        """BadListener if the address cannot be listened on."""
        where = self._where
        listening = where if isinstance(where, socket.socket) else listen(where, backlog=self._limits.connections_max)
        self._address = address_of(listening)
        self._config.load()
        self._look(asyncio.get_running_loop().time())
        self._server = await asyncio.get_running_loop().create_server(
            lambda: HttpConnection(self._config, self._state, self._limits, self._served.error_body),
            sock=listening,
            ssl=self._tls,
            ssl_handshake_timeout=None if self._tls is None else HANDSHAKE_SECONDS_MAX,
        )
        self._looking = asyncio.create_task(self._look_again_and_again())
        logger.info("HTTP listener started on %s", self.url)

    async def stop(self) -> None:
        """Takes no more requests, lets those under way end for `stop_seconds_max`, and cuts off the rest."""
        if self._server is None or self._looking is None:
            return
        self._server.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limits.stop_seconds_max):
                await self._until_quiet()
        await self._cut_off()
        self._looking.cancel()
        await asyncio.gather(self._looking, return_exceptions=True)
        self._server = self._looking = None
        logger.info("HTTP listener on %s stopped", self.address)

    async def _until_quiet(self) -> None:
        while self._state.tasks or self._state.connections:  # noqa: ASYNC110 - uvicorn's sets, which tell nobody
            await asyncio.sleep(0.01)

    async def _cut_off(self) -> None:
        if self._state.tasks:
            logger.warning("Cutting off %d HTTP requests that did not end in time", len(self._state.tasks))
        for connection in list(self._state.connections):
            assert isinstance(connection, HttpConnection)
            connection.transport.abort()
        tasks = list(self._state.tasks)
        for task in tasks:
            task.cancel()
        if tasks:  # one that is in a thread may not even end now
            await asyncio.wait(tasks, timeout=CANCEL_SECONDS_MAX)

    async def _look_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self._look(asyncio.get_running_loop().time())

    def _look(self, now: float) -> None:
        self._state.default_headers = [(b"date", formatdate(time.time(), usegmt=True).encode())]
        for connection in list(self._state.connections):
            assert isinstance(connection, HttpConnection)
            connection.look(now)
