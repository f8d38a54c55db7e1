"""A network between hosts of one process: connections that keep order, take time, stall, and break.

Clients and brokers use the real `ottla.client.connection.Connection` (it asks the loop for a connection, and the loop
asks here); the other end answers with the broker's real dispatcher and handlers. So every message is encoded, framed
and decoded on its way, in the versions that two real sides would agree on.

As with TCP nothing gets lost inside a connection. Messages between two sites that cannot reach each other wait and
arrive, late, when they can again; a connection that breaks takes with it what is on its way. A killed process resets
its connections; a crashed machine says nothing at all.
"""

import asyncio
import contextvars
import random
import zlib
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from tests.simulation.loop import HOST, Host, SimulatedLoop

from ottla.broker.handlers.context import CloseConnection, NoResponse, Parked, Response
from ottla.broker.server.answer import Answer
from ottla.broker.server.dispatch import Dispatcher
from ottla.broker.session import Session
from ottla.broker.storage.log import LogSlice
from ottla.config.listeners import ListenerAddress
from ottla.config.live import LiveConfig
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.frames import SIZE, response_head

Trace = Callable[[str, object], None]
"""Told of everything that happens, in order: what is hashed to see that two runs were the same."""
CLIENT_HOST = "client"
PENDING_RESPONSES_MAX = 128


class _End(Protocol):
    """One end of a connection."""

    site: str

    def receive(self, data: bytes) -> None: ...
    def lost(self, error: Exception | None) -> None:
        """The other end closed (None) or the connection broke."""


class _Pipe:
    """One direction of a connection."""

    def __init__(self, link: "Link", source: str, target: str, context: contextvars.Context) -> None:
        self._link = link
        self._loop = link.network.loop
        self.source, self.target = source, target
        self._context = context
        """Of the receiving host: a paused one takes nothing, a killed one never will."""
        self._last_at = 0.0
        self._stalled: list[bytes | None] = []
        self._resuming = False

    def send(self, data: bytes | None) -> None:
        """None stands for the end of what is sent."""
        at = max(self._loop.time() + self._link.network.latency(), self._last_at)
        self._last_at = at
        self._loop.call_at(at, self._arrive, data, context=NOBODY)

    def _arrive(self, data: bytes | None) -> None:
        if self._link.broken:
            return
        if self._stalled or self._link.network.is_cut(self.source, self.target):
            self._stalled.append(data)
        else:
            self._hand_over(data)

    def _hand_over(self, data: bytes | None) -> None:
        if self._link.broken:
            return
        if data is not None and self._link.network.breaks():
            self._link.break_off()
        else:
            self._loop.call_soon(self._link.deliver, self.target, data, context=self._context)

    def resume(self) -> None:
        """Go on with what had to wait, if it can. Until it has arrived, what is sent behind it waits too."""
        if self._stalled and not self._resuming:
            self._resuming = True
            self._loop.call_later(self._link.network.latency(), self._arrive_at_last, context=NOBODY)

    def _arrive_at_last(self) -> None:
        self._resuming = False
        if not self._link.network.is_cut(self.source, self.target):
            waiting, self._stalled = self._stalled, []
            for data in waiting:
                self._hand_over(data)


class Link:
    """One connection: two pipes and the two ends."""

    def __init__(self, network: "Network", client: "ClientEnd", server: "ServerEnd", client_host: Host | None) -> None:
        self.network = network
        self.broken = False
        self.client, self.server = client, server
        to_client = NOBODY if client_host is None else host_context_of(client_host)
        self.to_server = _Pipe(self, client.site, server.site, server.context)
        self.to_client = _Pipe(self, server.site, client.site, to_client)

    def deliver(self, target: str, data: bytes | None) -> None:
        if self.broken:
            return
        end: _End = self.server if target == self.server.site else self.client
        if data is None:
            self.broken = True
            self.network.forget(self)
            end.lost(None)
        else:
            self.network.trace(f"{'>' if end is self.server else '<'} {self.client.site} {self.server.site}", data)
            end.receive(data)

    def break_off(self, *, towards: str | None = None) -> None:
        """Reset; both ends hear of it after a while, or only the one at the site `towards`."""
        if self.broken:
            return
        self.broken = True
        self.network.forget(self)
        loop = self.network.loop
        error = ConnectionResetError("connection reset by peer")
        for end, context in ((self.server, self.server.context), (self.client, self.to_client._context)):
            if towards is None or end.site == towards:
                loop.call_later(self.network.latency(), end.lost, error, context=context)


NOBODY = contextvars.Context()
"""The context of the network itself: it belongs to no host, so it is never paused."""


def host_context_of(host: Host) -> contextvars.Context:
    context = contextvars.Context()
    context.run(HOST.set, host)
    return context


class Network:
    def __init__(self, loop: SimulatedLoop, chance: random.Random, trace: Trace) -> None:
        self.loop = loop
        self._chance = chance
        self._trace = trace
        self._servers: dict[tuple[str, int], SimulatedServer] = {}
        self._links: dict[Link, None] = {}
        self._cut: set[tuple[str, str]] = set()
        self._healed: asyncio.Future[None] | None = None
        self.break_chance = 0.0
        """How likely a message is to meet the end of its connection."""
        self.slow_chance = 0.02
        self.slow_seconds_max = 0.2
        self.requests = 0
        loop.connect = self.connect

    # -- faults

    def is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self._cut

    def cut(self, one: Iterable[str], other: Iterable[str], *, both_ways: bool = True) -> None:
        """From now on nothing that `one` side sends reaches the other, and with `both_ways` the reverse."""
        others = list(other)
        for source in one:
            for target in others:
                self._cut.add((source, target))
                if both_ways:
                    self._cut.add((target, source))

    def heal(self) -> None:
        self._cut.clear()
        for link in list(self._links):
            link.to_server.resume()
            link.to_client.resume()
        if self._healed is not None:
            self._healed.set_result(None)
            self._healed = None

    def host_killed(self, site: str, *, silently: bool) -> None:
        """The process at this site is gone. Silently: with its machine, which cannot even reset its connections."""
        self._servers = {where: server for where, server in self._servers.items() if server.site != site}
        if silently:
            return
        for link in list(self._links):
            if link.server.site == site:
                link.break_off(towards=link.client.site)
            elif link.client.site == site:
                link.break_off(towards=link.server.site)

    def host_started(self, site: str) -> None:
        """A machine that runs again answers what belongs to connections of before with a reset."""
        for link in list(self._links):
            if link.server.site == site and link.server.host.stopped:
                link.break_off(towards=link.client.site)
            elif link.client.site == site and link.client.host is not None and link.client.host.stopped:
                link.break_off(towards=link.server.site)

    def latency(self) -> float:
        chance = self._chance.random()
        if chance < self.slow_chance:
            return self._chance.random() * self.slow_seconds_max
        return 0.0001 + chance * 0.0008

    def breaks(self) -> bool:
        return self.break_chance > 0 and self._chance.random() < self.break_chance

    # -- connections

    async def connect(self, protocol: asyncio.BufferedProtocol, name: str, port: int) -> "ClientEnd":
        host = HOST.get()
        site = host.name if host is not None else CLIENT_HOST
        await asyncio.sleep(self.latency())
        while self.is_cut(site, name) or self.is_cut(name, site):
            if self._healed is None:
                self._healed = self.loop.create_future()
            await asyncio.shield(self._healed)
            await asyncio.sleep(self.latency())
        server = self._servers.get((name, port))
        if server is None or server.stopping:
            raise ConnectionRefusedError(111, "connection refused")
        client = ClientEnd(protocol, site, host)
        link = Link(self, client, server.accept(site), host)
        client.link = link.server.link = link
        self._links[link] = None
        protocol.connection_made(client)
        return client

    def listen(self, server: "SimulatedServer", port: int) -> None:
        self._servers[server.site, port] = server

    def forget(self, link: Link) -> None:
        self._links.pop(link, None)

    def trace(self, way: str, data: bytes) -> None:
        if way[0] == ">":
            self.requests += 1
            self._trace(way, (int.from_bytes(data[4:6], "big"), len(data), zlib.crc32(data)))
        else:
            self._trace(way, (len(data), zlib.crc32(data)))


class ClientEnd(asyncio.Transport):
    """What the real `Connection` writes to."""

    link: Link

    def __init__(self, protocol: asyncio.BufferedProtocol, site: str, host: Host | None) -> None:
        super().__init__()
        self.site = site
        self.host = host
        self._protocol = protocol
        self._gone = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._gone:
            self.link.to_server.send(bytes(data))

    def receive(self, data: bytes) -> None:
        view = memoryview(data)
        while view and not self._gone:
            room = memoryview(self._protocol.get_buffer(-1))
            count = min(len(room), len(view))
            room[:count] = view[:count]
            self._protocol.buffer_updated(count)
            view = view[count:]

    def lost(self, error: Exception | None) -> None:
        if not self._gone:
            self._gone = True
            self._protocol.connection_lost(error)

    def close(self) -> None:
        if not self._gone:
            self._gone = True
            self.link.to_server.send(None)
            self.link.network.loop.call_soon(self._protocol.connection_lost, None)

    abort = close

    def is_closing(self) -> bool:
        return self._gone


class _Slot:
    """The place of one response in the order of the connection."""

    __slots__ = ("answer", "response")

    def __init__(self, answer: Answer, response: Response | None = None) -> None:
        self.answer = answer
        self.response = response


class ServerEnd:
    """The broker's side of a connection: the rules of `broker/server/connection.py`, without a socket."""

    link: Link

    def __init__(self, server: "SimulatedServer", peer: str) -> None:
        self.site = server.site
        self.host = server.host
        self.context = host_context_of(server.host)
        self._server = server
        self._session = Session(server.listener_name, peer)
        self._waiting: deque[bytes] = deque()
        self._slots: deque[_Slot] = deque()
        self._held_by: _Slot | None = None
        self._closed = False

    @property
    def idle(self) -> bool:
        return not self._slots

    def receive(self, data: bytes) -> None:
        self._waiting.append(data)
        self._go_on()

    def _go_on(self) -> None:
        while self._waiting and not self._blocked():
            frame = bytearray(self._waiting.popleft())
            (size,) = SIZE.unpack_from(frame)
            assert size == len(frame) - SIZE.size, "a client writes whole frames"
            try:
                self._handle(frame[SIZE.size :])
            except MalformedMessage:
                self.close()

    def _blocked(self) -> bool:
        return (
            self._closed
            or self._held_by is not None
            or self._server.stopping
            or len(self._slots) >= PENDING_RESPONSES_MAX
        )

    def _handle(self, frame: bytearray) -> None:
        answer = self._server.dispatcher.dispatch(frame, self._session)
        outcome = answer.outcome
        if isinstance(outcome, Parked):
            slot = _Slot(answer)
            self._slots.append(slot)
            if outcome.holds_connection:
                self._held_by = slot
            outcome.when_resolved(lambda response: self._resolved(slot, response))
        elif self._slots:
            self._slots.append(_Slot(answer, outcome))
        else:
            self._emit(answer, outcome)

    def _resolved(self, slot: _Slot, response: Response) -> None:
        if self._closed:
            return
        slot.response = response
        if self._held_by is slot:
            self._held_by = None
        while self._slots and self._slots[0].response is not None:
            done = self._slots.popleft()
            assert done.response is not None
            self._emit(done.answer, done.response)
        if not self._closed:
            self._server.loop.call_soon(self._go_on)
            self._server.check_idle()

    def _emit(self, answer: Answer, response: Response) -> None:
        if isinstance(response, CloseConnection):
            self.close()
            return
        if isinstance(response, NoResponse):
            return
        body = self._server.dispatcher.pack(answer, response)
        parts = [chunk.read() if isinstance(chunk, LogSlice) else bytes(chunk) for chunk in body.chunks]
        body_bytes = b"".join(parts)
        if len(body_bytes) != body.size:
            self.close()  # a slice whose file was cut: sendfile would have found the end of it
            return
        head = response_head(answer.correlation_id, body.size, flexible=answer.flexible_header)
        self.link.to_client.send(head + body_bytes)

    def lost(self, error: Exception | None) -> None:
        self._end()

    def close(self) -> None:
        if not self._closed:
            self._end()
            self.link.to_client.send(None)

    def _end(self) -> None:
        if self._closed:
            return
        self._closed = True
        for slot in self._slots:
            outcome = slot.answer.outcome
            if isinstance(outcome, Parked) and outcome.abandon is not None:
                outcome.abandon()
        self._slots.clear()
        self._server.ended(self)


class SimulatedListener:
    def __init__(self, address: ListenerAddress, port: int) -> None:
        self.address = address
        self.port = port


class SimulatedServer:
    """Stands where the broker has its listening sockets."""

    def __init__(
        self, network: Network, host: Host, config: LiveConfig, dispatcher: Dispatcher, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.site = host.name
        self.host = host
        self.loop = loop
        self.dispatcher = dispatcher
        self.listeners: list[SimulatedListener] = []
        self.listener_name = ""
        self.stopping = False
        self._network = network
        self._ends: dict[ServerEnd, None] = {}
        self._idle: asyncio.Future[None] | None = None

    def bind(self, addresses: tuple[ListenerAddress, ...]) -> None:
        for address in addresses:
            self.listeners.append(SimulatedListener(address, address.port))
        self.listener_name = addresses[0].name

    def start(self) -> None:
        for listener in self.listeners:
            self._network.listen(self, listener.port)

    def accept(self, peer: str) -> ServerEnd:
        end = ServerEnd(self, peer)
        self._ends[end] = None
        return end

    def ended(self, end: ServerEnd) -> None:
        self._ends.pop(end, None)
        self.check_idle()

    def check_idle(self) -> None:
        if self._idle is not None and not self._idle.done() and all(each.idle for each in self._ends):
            self._idle.set_result(None)

    async def stop(self, grace_seconds: float) -> None:
        self.stopping = True
        self._idle = self.loop.create_future()
        if any(not end.idle for end in self._ends):
            await asyncio.wait([self._idle], timeout=grace_seconds)
        for end in list(self._ends):
            end.close()
