"""A connection without sockets and without waiting: a loop that moves when told, channels that say what they want."""

import asyncio
import heapq
import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, cast

from ottla.broker.handlers.context import Call, Parked, Raw, Response
from ottla.broker.quotas.clients import ClientQuotas
from ottla.broker.server.answer import Answer, AnswerWatch
from ottla.broker.server.channel import Buffer, WantChannel, WantRead, WantWrite
from ottla.broker.server.connection import Connection
from ottla.broker.server.dispatch import Dispatcher
from ottla.broker.server.limits import RequestMemory
from ottla.broker.server.turn import FlushTurn
from ottla.broker.session import Session
from ottla.protocol.apis import ApiKey
from ottla.protocol.frames import SIZE
from ottla.protocol.schema import TopLevel

DESCRIPTOR = 99


class Timer:
    def __init__(self, at: float, callback: Callable[..., None]) -> None:
        self.at = at
        self.callback: Callable[..., None] | None = callback

    def __lt__(self, other: "Timer") -> bool:
        return self.at < other.at

    def when(self) -> float:
        return self.at

    def cancel(self) -> None:
        self.callback = None


class HandLoop:
    """What a connection uses of an event loop. Nothing happens until `run` or `advance`."""

    def __init__(self) -> None:
        self._now = 100.0
        self._soon: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._timers: list[Timer] = []
        self.readers: dict[int, Callable[[], None]] = {}
        self.writers: dict[int, Callable[[], None]] = {}

    def time(self) -> float:
        return self._now

    def call_soon(self, callback: Callable[..., None], *arguments: Any) -> None:
        self._soon.append((callback, arguments))

    def call_at(self, at: float, callback: Callable[..., None]) -> Timer:
        timer = Timer(at, callback)
        heapq.heappush(self._timers, timer)
        return timer

    def add_reader(self, descriptor: int, callback: Callable[[], None]) -> None:
        self.readers[descriptor] = callback

    def remove_reader(self, descriptor: int) -> None:
        del self.readers[descriptor]

    def add_writer(self, descriptor: int, callback: Callable[[], None]) -> None:
        self.writers[descriptor] = callback

    def remove_writer(self, descriptor: int) -> None:
        del self.writers[descriptor]

    @property
    def reads(self) -> bool:
        return DESCRIPTOR in self.readers

    @property
    def writes(self) -> bool:
        return DESCRIPTOR in self.writers

    def run(self) -> None:
        while self._soon:
            callback, arguments = self._soon.popleft()
            callback(*arguments)

    def readable(self) -> None:
        """The poller says so, if it was asked."""
        if self.reads:
            self.readers[DESCRIPTOR]()
        self.run()

    def writable(self) -> None:
        if self.writes:
            self.writers[DESCRIPTOR]()
        self.run()

    def advance(self, seconds: float) -> None:
        end = self._now + seconds
        while self._timers and self._timers[0].at <= end:
            timer = heapq.heappop(self._timers)
            self._now = max(self._now, timer.at)
            if timer.callback is not None:
                timer.callback()
            self.run()
        self._now = end


Wish = type[BlockingIOError] | None


class MemoryChannel:
    """Bytes in lists. Before each step it does what the next wish says: raises that, or goes on if there is none."""

    def __init__(self) -> None:
        self.hides_bytes = False
        """Whether what has arrived is in the channel, and the socket has nothing any more."""
        self.unsent = False
        self.on_ready: Callable[[], None] | None = None
        self.arrived = b""
        self.left = b""
        self.receive_wishes: deque[Wish] = deque()
        self.send_wishes: deque[Wish] = deque()
        self.bytes_per_step = 1 << 20
        self.ended = False
        self.closed = False

    @property
    def unread(self) -> bool:
        return self.hides_bytes and bool(self.arrived)

    def fileno(self) -> int:
        return DESCRIPTOR

    def receive_into(self, buffer: memoryview, /) -> int:
        self._wish(self.receive_wishes)
        taken = self.arrived[: min(len(buffer), self.bytes_per_step)]
        if not taken:
            if self.ended:
                return 0
            raise WantRead
        self.arrived = self.arrived[len(taken) :]
        buffer[: len(taken)] = taken
        return len(taken)

    def send(self, data: Buffer, /) -> int:
        self._wish(self.send_wishes)
        taken = bytes(data[: self.bytes_per_step])
        self.left += taken
        return len(taken)

    def send_all_of(self, parts: Sequence[Buffer], more_follows: bool) -> int:
        return self.send(b"".join(parts))

    def send_file(self, descriptor: int, position: int, size: int) -> int:
        return self.send(os.pread(descriptor, size, position))

    def flush(self) -> None:
        self._wish(self.send_wishes)
        self.unsent = False

    def peer_is_gone(self) -> bool:
        return self.ended

    def close(self) -> None:
        self.closed = True

    @staticmethod
    def _wish(wishes: deque[Wish]) -> None:
        if wishes and (wish := wishes.popleft()) is not None:
            raise wish


class EchoDispatcher:
    """Answers each request with its own bytes, or as `answer_with` says."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.answer_with: Callable[[bytes], Response | Parked] = lambda request: Raw([request], len(request))

        self.throttle_ms = 0
        self.quotas = ClientQuotas()
        self.key = ApiKey.HEARTBEAT
        self.on_dispatch: Callable[[], None] = lambda: None

    def dispatch(self, frame: bytearray, session: Session) -> Answer:
        self.requests.append(bytes(frame))
        self.on_dispatch()
        call = Call(self.key, 4, "me", session, self.throttle_ms)
        return Answer(call, 7, False, self.answer_with(bytes(frame)))

    def pack(self, answer: Answer, response: TopLevel | Raw) -> Raw:
        return Dispatcher.pack(cast("Dispatcher", self), answer, response)


class ByHand:
    """One connection, all of whose surroundings are in the test's hands."""

    def __init__(self) -> None:
        self.loop = HandLoop()
        self.channel = MemoryChannel()
        self.dispatcher = EchoDispatcher()
        self.closed: list[Connection] = []
        self.answered: list[Answer] = []
        self.now_ns = 0
        self.watch = AnswerWatch()
        self.watch.listeners.append(self.answered.append)
        loop = cast("asyncio.AbstractEventLoop", self.loop)
        self.connection = Connection(
            loop, self.channel, Session("PLAINTEXT", "192.0.2.1"), cast("Any", self.dispatcher),
            RequestMemory(lambda: -1), FlushTurn(loop), 1 << 20, self.closed.append, self.watch,
            lambda: self.now_ns,
        )  # fmt: skip

    def arrive(self, *requests: bytes) -> None:
        """Requests come over the network, and the poller says so."""
        self.channel.arrived += b"".join(SIZE.pack(len(request)) + request for request in requests)
        self.loop.readable()

    def answers(self) -> list[bytes]:
        """The bodies of the whole responses that have left."""
        found, position, data = [], 0, self.channel.left
        while len(data) - position >= 4:
            (size,) = SIZE.unpack_from(data, position)
            body = data[position + 8 : position + 4 + size]
            if len(body) < size - 4:
                break
            found.append(body)
            position += 4 + size
        return found


__all__ = ["ByHand", "HandLoop", "MemoryChannel", "WantChannel", "WantRead", "WantWrite"]
