"""Listening sockets, and the connections that came through them."""

import asyncio
import errno
import logging
import socket

from ottla.broker.server.connection import Connection, FlushTurn
from ottla.broker.server.dispatch import Dispatcher
from ottla.broker.server.limits import ConnectionLimits, RequestMemory
from ottla.config.broker import BrokerSettings
from ottla.config.listeners import ListenerAddress
from ottla.config.live import LiveConfig
from ottla.model.errors import OttlaError

log = logging.getLogger(__name__)

ACCEPTS_PER_TURN_MAX = 32  # then the connections that are there get their turn
OUT_OF_DESCRIPTORS_PAUSE_SECONDS = 0.5
IDLE_SWEEPS_PER_TIMEOUT = 10
MEMORY_CHECK_SECONDS = 0.5
STALLED_REQUEST_SECONDS = 2.0
ABANDONED_CHECK_SECONDS = 5.0


class ListenError(OttlaError):
    """A listener's address cannot be opened."""


class Listener:
    """One listening socket."""

    def __init__(self, server: "Server", address: ListenerAddress) -> None:
        self.address = address
        self._server = server
        self._socket = _bind(address, server.settings)
        self._accepting = False

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    def start(self) -> None:
        if not self._accepting and self._socket.fileno() >= 0:
            self._accepting = True
            self._server.loop.add_reader(self._socket.fileno(), self._on_acceptable)

    def _pause(self, seconds: float) -> None:
        self._stop_accepting()
        self._server.loop.call_later(seconds, self.start)

    def _stop_accepting(self) -> None:
        if self._accepting:
            self._accepting = False
            self._server.loop.remove_reader(self._socket.fileno())

    def _on_acceptable(self) -> None:
        for _ in range(ACCEPTS_PER_TURN_MAX):
            wait = self._server.limits.wait_before_next(self._server.loop.time())
            if wait:
                self._pause(wait)
                return
            try:
                sock, peer = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    raise
                log.error("cannot accept connections for now: %s", error.strerror)  # noqa: TRY400 (no traceback wanted)
                self._pause(OUT_OF_DESCRIPTORS_PAUSE_SECONDS)
                return
            self._server.admit(sock, peer[0], self.address.name)

    def close(self) -> None:
        self._stop_accepting()
        self._socket.close()


class Server:
    """All listeners and connections of a broker."""

    def __init__(self, config: LiveConfig, dispatcher: Dispatcher, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._config = config
        self._dispatcher = dispatcher
        self.limits = ConnectionLimits(lambda: config.broker)
        self.memory = RequestMemory(lambda: config.broker.queued_max_request_bytes)
        self._turn = FlushTurn(loop)
        self.listeners: list[Listener] = []
        self._connections: set[Connection] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._memory_check: asyncio.TimerHandle | None = None
        self._abandoned_check: asyncio.TimerHandle | None = None
        self._all_closed: asyncio.Future[None] | None = None

    @property
    def settings(self) -> BrokerSettings:
        return self._config.broker

    def bind(self, addresses: tuple[ListenerAddress, ...]) -> None:
        """Open the sockets; nothing is accepted before `start`."""
        try:
            for address in addresses:
                self.listeners.append(Listener(self, address))
        except ListenError:
            self._close_listeners()
            raise

    def start(self) -> None:
        for listener in self.listeners:
            listener.start()
        self._schedule_sweep()
        self._memory_check = self.loop.call_later(MEMORY_CHECK_SECONDS, self._close_stalled)
        self._abandoned_check = self.loop.call_later(ABANDONED_CHECK_SECONDS, self._close_abandoned)

    def admit(self, sock: socket.socket, host: str, listener: str) -> None:
        refusal = self.limits.refusal(host)
        if refusal is not None:
            log.warning("refusing a connection from %s: %s", host, refusal)
            sock.close()
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.limits.opened(host)
        self._connections.add(
            Connection(
                self.loop, sock, host, listener, self._dispatcher, self.memory, self._turn,
                self.settings.socket_request_max_bytes, self._on_closed,
            )
        )  # fmt: skip

    def _on_closed(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self.limits.closed(connection.host)
        if self._all_closed is not None and not self._connections and not self._all_closed.done():
            self._all_closed.set_result(None)

    def _schedule_sweep(self) -> None:
        idle_ms = self.settings.connections_max_idle_ms
        self._sweep = self.loop.call_later(max(0.05, idle_ms / 1000 / IDLE_SWEEPS_PER_TIMEOUT), self._close_idle)

    def _close_idle(self) -> None:
        idle_ms = self.settings.connections_max_idle_ms
        if idle_ms > 0:
            oldest = self.loop.time() - idle_ms / 1000
            for connection in [c for c in self._connections if c.last_active < oldest and not c.busy]:
                log.debug("closing a connection from %s that was idle for %d ms", connection.host, idle_ms)
                connection.close()
        self._schedule_sweep()

    def _close_stalled(self) -> None:
        """Half-sent requests may fill the memory for requests; those that never go on must not shut out the others."""
        if self.memory.exhausted:
            oldest = self.loop.time() - STALLED_REQUEST_SECONDS
            for connection in [c for c in self._connections if c.holds_half_a_request and c.last_active < oldest]:
                log.warning(
                    "closing a connection from %s: half a request, then nothing for %g s, and its memory is needed",
                    connection.host, STALLED_REQUEST_SECONDS,
                )  # fmt: skip
                connection.close()
        self._memory_check = self.loop.call_later(MEMORY_CHECK_SECONDS, self._close_stalled)

    def _close_abandoned(self) -> None:
        """Clients that have gone while their request waits: a fetch may be told to wait for weeks."""
        for connection in [c for c in self._connections if c.peer_is_gone]:
            connection.close()
        self._abandoned_check = self.loop.call_later(ABANDONED_CHECK_SECONDS, self._close_abandoned)

    async def stop(self, grace_seconds: float) -> None:
        """Accept nothing more, finish what is in flight, then close what is left."""
        self._close_listeners()
        for timer in (self._sweep, self._memory_check, self._abandoned_check):
            if timer is not None:
                timer.cancel()
        if self._connections:
            self._all_closed = self.loop.create_future()
            for connection in list(self._connections):
                connection.stop()
            if self._connections:
                await asyncio.wait([self._all_closed], timeout=grace_seconds)
        for connection in list(self._connections):
            connection.close()

    def _close_listeners(self) -> None:
        for listener in self.listeners:
            listener.close()
        self.listeners.clear()


def _bind(address: ListenerAddress, settings: BrokerSettings) -> socket.socket:
    host = address.host or "0.0.0.0"  # noqa: S104 (an empty host is the user's way to say: every interface)
    try:
        family, kind, protocol, _, target = socket.getaddrinfo(
            host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ListenError(f"cannot listen on {address}: {error.strerror or error}") from error
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if address.host in ("", "::") else 1)
        # Set before listening, so that accepted sockets inherit them. -1 leaves the size to the kernel.
        if settings.socket_send_buffer_bytes > 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, settings.socket_send_buffer_bytes)
        if settings.socket_receive_buffer_bytes > 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings.socket_receive_buffer_bytes)
        sock.setblocking(False)
        sock.bind(target)
        sock.listen(settings.socket_listen_backlog_size)
    except OSError as error:
        sock.close()
        hint = "; is another broker running there?" if error.errno == errno.EADDRINUSE else ""
        raise ListenError(f"cannot listen on {address}: {error.strerror}{hint}") from error
    return sock
