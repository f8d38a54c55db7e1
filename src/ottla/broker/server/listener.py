"""Listening sockets, and the connections that came through them."""

import asyncio
import errno
import heapq
import logging
import socket
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from ottla.broker.server import request_log
from ottla.broker.server.answer import SLOW_NS, Answer, AnswerWatch
from ottla.broker.server.channel import Channel, PlainChannel
from ottla.broker.server.connection import Connection
from ottla.broker.server.dispatch import Dispatcher
from ottla.broker.server.limits import ConnectionLimits, RequestMemory
from ottla.broker.server.slow_log import slow_log
from ottla.broker.server.tls_channel import TlsChannel
from ottla.broker.server.tls_handshake import Handshakes
from ottla.broker.server.traffic import Traffic
from ottla.broker.server.turn import FlushTurn
from ottla.broker.session import Authentication, Session
from ottla.config.broker import BrokerSettings
from ottla.config.listeners import ListenerAddress, inter_broker_listener
from ottla.config.live import LiveConfig
from ottla.model.errors import OttlaError

if TYPE_CHECKING:
    from ottla.broker.security.tls.listeners import ListenerTls, TlsListeners

logger = logging.getLogger(__name__)

ACCEPTS_PER_TURN_MAX = 32  # then the connections that are there get their turn
OUT_OF_DESCRIPTORS_PAUSE_SECONDS = 0.5
UNSERVED_MAX = 500  # each needs a descriptor while it is kept waiting, and others need some too
TIMER_SLACK_SECONDS = 0.001  # a timer may be early by less than this
IPV4_IN_IPV6 = "::ffff:"  # how a socket for both kinds of addresses writes those of the old kind
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
        self._held: tuple[socket.socket, Session, float] | None = None
        self._held_since = 0.0
        self._blocked_seconds = 0.0

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    @property
    def blocked_seconds(self) -> float:
        """How long one was held up, and all behind it."""
        now = self._server.loop.time()
        return self._blocked_seconds + (now - self._held_since if self._held is not None else 0.0)

    def start(self) -> None:
        if not self._accepting and self._held is None and self._socket.fileno() >= 0:
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
            try:
                sock, peer = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    raise
                logger.error("Cannot accept connections for now: %s", error.strerror)  # noqa: TRY400 (no traceback wanted)
                self._pause(OUT_OF_DESCRIPTORS_PAUSE_SECONDS)
                return
            host, login = peer[0].removeprefix(IPV4_IN_IPV6), self._server.begin_login(self.address)
            session = Session(self.address.name, host, peer[1], login=login)
            now = self._server.loop.time()
            wait_ms = self._server.limits.arrived(self.address.name, int(now * 1000))
            if wait_ms or not self._server.limits.has_room(self.address.name):
                self._hold(sock, session, now, wait_ms)
                return
            self._server.admit(sock, session)

    def _hold(self, sock: socket.socket, session: Session, now: float, wait_ms: int) -> None:
        """One is accepted and waits for its time and its place; those behind it wait in the socket's backlog."""
        self._stop_accepting()
        self._held, self._held_since = (sock, session, now + wait_ms / 1000), now
        if wait_ms:
            logger.debug("Throttle connections on listener %s for %d ms", self.address.name, wait_ms)
            self._server.loop.call_later(wait_ms / 1000 + TIMER_SLACK_SECONDS, self.let_in)

    def let_in(self) -> None:
        """Whoever is held goes on if its time is over and there is a place."""
        if self._held is None:
            return
        sock, session, due = self._held
        now = self._server.loop.time()
        if now >= due and self._server.limits.has_room(self.address.name):
            self._held = None
            self._blocked_seconds += now - self._held_since
            self._server.admit(sock, session)
            self.start()

    def close(self) -> None:
        self._stop_accepting()
        self._socket.close()
        if self._held is not None:
            self._held[0].close()
            self._held = None


class Server:
    """All listeners and connections of a broker."""

    def __init__(self, config: LiveConfig, dispatcher: Dispatcher, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._config = config
        self._dispatcher = dispatcher
        self.begin_login = dispatcher.begin_login
        self.limits = ConnectionLimits(lambda: config.broker, lambda: dispatcher.quotas.connection_rates)
        self.memory = RequestMemory(lambda: config.broker.queued_max_request_bytes)
        self._turn = FlushTurn(loop)
        self.watch: AnswerWatch | None = None
        """Told of responses that have left, with their moments. Connections ask for it when they begin."""
        if request_log.is_on():
            self.tell_answers(request_log.write, all_of_them=True)
        slow_ms = config.static.request_log_slow_ms
        if slow_ms >= 0:
            self.tell_answers(slow_log(slow_ms), all_of_them=slow_ms * 1_000_000 < SLOW_NS, all_slow=True)
        self.listeners: list[Listener] = []
        self._connections: set[Connection] = set()
        self._unserved: dict[socket.socket, None] = {}
        self.traffic = Traffic(lambda: self._connections)
        self.traffic.show(dispatcher.telemetry)
        self._sweep: asyncio.TimerHandle | None = None
        self._memory_check: asyncio.TimerHandle | None = None
        self._abandoned_check: asyncio.TimerHandle | None = None
        self._all_closed: asyncio.Future[None] | None = None
        self._handshakes: Handshakes | None = None
        self.tls: TlsListeners | None = None
        """What listeners with TLS show and believe; set before they are opened."""

    @property
    def settings(self) -> BrokerSettings:
        return self._config.broker

    @property
    def connections(self) -> Collection[Connection]:
        return self._connections

    @property
    def expired_connections(self) -> int:
        return self._dispatcher.expired_connections

    def tell_answers(
        self, listener: Callable[[Answer], None], *, all_of_them: bool = False, all_slow: bool = False
    ) -> None:
        """From now on `listener` is told of answers on new connections; under load of some, unless it wants all, or all
        that took long."""
        self.watch = self.watch or AnswerWatch()
        self.watch.listeners.append(listener)
        self.watch.is_whole |= all_of_them
        self.watch.wants_slow |= all_slow

    def bind(self, addresses: tuple[ListenerAddress, ...]) -> None:
        """Open the sockets; nothing is accepted before `start`."""
        try:
            for address in addresses:
                self.listeners.append(Listener(self, address))
            self.limits.use_listeners([address.name for address in addresses], inter_broker_listener(self.settings))
        except ListenError:
            self._close_listeners()
            raise

    def start(self) -> None:
        for listener in self.listeners:
            listener.start()
        self._schedule_sweep()
        self._memory_check = self.loop.call_later(MEMORY_CHECK_SECONDS, self._close_stalled)
        self._abandoned_check = self.loop.call_later(ABANDONED_CHECK_SECONDS, self._close_abandoned)

    def admit(self, sock: socket.socket, session: Session) -> None:
        wait_ms = self.limits.address_waits_ms(session.listener, session.host, int(self.loop.time() * 1000))
        if wait_ms:
            logger.debug("Delaying closing of connection from %s for %d ms", session.host, wait_ms)
            self._unserved[sock] = None
            self.loop.call_later(wait_ms / 1000, self._close_unserved, sock)
            if len(self._unserved) > UNSERVED_MAX:
                self._close_unserved(next(iter(self._unserved)))
            return
        most = self.limits.most_from(session.host)
        if most is not None:
            logger.info(
                "Rejected connection from /%s, address already has the configured maximum of %d connections.",
                session.host, most,
            )  # fmt: skip
            sock.close()
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.limits.opened(session.listener, session.host)
        if self.limits.is_protected(session.listener):
            self._close_excess()
        if self.tls is not None and session.listener in self.tls:
            self._agree(sock, session, self.tls[session.listener])
        else:
            self._serve(PlainChannel(sock), session)

    def _agree(self, sock: socket.socket, session: Session, tls: "ListenerTls") -> None:
        """Nothing is read or said in clear: there is a connection when there is an agreement."""
        if self._handshakes is None:
            self._handshakes = Handshakes(self.loop)
        channel_id = _channel_id(sock, session)

        def done(channel: TlsChannel, certificate: bytes | None) -> None:
            principal = tls.principal(certificate)
            if principal is None:
                channel.close()
                failed("no rule of ssl.principal.mapping.rules has a name for the owner of its certificate")
                return
            if session.authentication is Authentication.NOT_NEEDED:  # else SASL says who it is
                session.authenticated(principal)
                self._dispatcher.login_counts.accepted(session.listener, can_renew=False)
            self._serve(channel, session)

        def failed(why: str, *, went_away: bool = False) -> None:
            if not went_away:
                self._dispatcher.login_counts.refused(session.listener)
            logger.info(
                "Failed authentication with /%s (channelId=%s) (SSL handshake failed): %s",
                session.host,
                channel_id,
                why,
            )
            self._gone(session)

        self._handshakes.begin(sock, tls.context, done, failed, in_thread=tls.stores.keys.are_slow)

    def _serve(self, channel: Channel, session: Session) -> None:
        self.traffic.opened(session)
        self._connections.add(
            Connection(
                self.loop, channel, session, self._dispatcher, self.memory, self._turn,
                self.settings.socket_request_max_bytes, self._on_closed, self.watch,
            )
        )  # fmt: skip

    def _on_closed(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self.traffic.closed(connection)
        self._gone(connection.session)
        if self._all_closed is not None and not self._connections and not self._all_closed.done():
            self._all_closed.set_result(None)

    def _gone(self, session: Session) -> None:
        self.limits.closed(session.listener, session.host)
        for listener in self.listeners:
            listener.let_in()

    def _close_unserved(self, sock: socket.socket) -> None:
        self._unserved.pop(sock, None)
        sock.close()

    def _close_excess(self) -> None:
        """Those that were not used for longest, when there are too many: the limit was lowered, or brokers came."""
        excess = self.limits.excess()
        if excess:
            others = (c for c in self._connections if not self.limits.is_protected(c.session.listener))
            for connection in heapq.nsmallest(excess, others, key=lambda each: each.last_active):
                logger.info(
                    "Closing the least recently used connection, from /%s on listener %s: max.connections is %d",
                    connection.session.host, connection.session.listener, self.settings.max_connections,
                )  # fmt: skip
                connection.close()

    def _schedule_sweep(self) -> None:
        idle_ms = self.settings.connections_max_idle_ms
        self._sweep = self.loop.call_later(max(0.05, idle_ms / 1000 / IDLE_SWEEPS_PER_TIMEOUT), self._close_idle)

    def _close_idle(self) -> None:
        idle_ms = self.settings.connections_max_idle_ms
        if idle_ms > 0:
            oldest = self.loop.time() - idle_ms / 1000
            for connection in [c for c in self._connections if c.last_active < oldest and not c.busy]:
                logger.debug("Closing a connection from %s that was idle for %d ms", connection.session.host, idle_ms)
                connection.close()
        self._schedule_sweep()

    def _close_stalled(self) -> None:
        """Half-sent requests may fill the memory for requests; those that never go on must not shut out the others."""
        if self.watch is not None:
            self.watch.half_second_is_over()
        if self.memory.exhausted:
            oldest = self.loop.time() - STALLED_REQUEST_SECONDS
            for connection in [c for c in self._connections if c.holds_half_a_request and c.last_active < oldest]:
                logger.warning(
                    "Closing a connection from %s: half a request, then nothing for %g s, and its memory is needed",
                    connection.session.host, STALLED_REQUEST_SECONDS,
                )  # fmt: skip
                connection.close()
        self._close_excess()
        for listener in self.listeners:
            listener.let_in()  # a limit may have been raised
        self._memory_check = self.loop.call_later(MEMORY_CHECK_SECONDS, self._close_stalled)

    def _close_abandoned(self) -> None:
        """Clients that have gone while their request waits: a fetch may be told to wait for weeks."""
        for connection in [c for c in self._connections if c.peer_is_gone]:
            connection.close()
        self._abandoned_check = self.loop.call_later(ABANDONED_CHECK_SECONDS, self._close_abandoned)

    async def stop(self, grace_seconds: float) -> None:
        """Accept nothing more, finish what is in flight, then close what is left."""
        self._close_listeners()
        if self._handshakes is not None:
            self._handshakes.close()
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
        for sock in tuple(self._unserved):
            self._close_unserved(sock)


def _channel_id(sock: socket.socket, session: Session) -> str:
    """Kafka's name for a connection in its logs: both ends."""
    host, port = sock.getsockname()[:2]
    return f"{host}:{port}-{session.host}:{session.port}"


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
