"""One client's connection: frames in, requests dispatched in order, responses out in the same order.

The socket is driven by hand (no transport): a large request is received straight into the buffer that is later
written to the segment, and a segment's bytes leave by sendfile.

What stops the reading of further requests, each alone being enough:
  - a request that holds the connection is being worked on (anything but a waiting produce);
  - too many produce requests wait for their replicas;
  - the peer does not read what it was sent;
  - the broker holds as many request bytes as it may.
"""

import asyncio
import logging
import socket
import struct
from collections import deque
from collections.abc import Callable

from ottla.broker.handlers.context import CloseConnection, NoResponse, Parked, Raw, Response
from ottla.broker.server.dispatch import Answer, Dispatcher
from ottla.broker.server.limits import RequestMemory
from ottla.broker.server.outbox import Outbox
from ottla.broker.storage.log import LogSlice
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.frames import response_head

log = logging.getLogger(__name__)

_SIZE = struct.Struct(">i")
_SCRATCH = memoryview(bytearray(256 * 1024))  # shared by all connections: reading never spans two loop steps
FRAME_START_BYTES = 64 * 1024  # of a large request's buffer, which then grows by doubling
PENDING_RESPONSES_MAX = 128
JOINED_BYTES_MAX = 4 * 1024  # a body this small is copied behind its header: cheaper than telling the kernel of two
FRAMES_PER_TURN_MAX = 64  # then other connections get their turn
_STATES_WITHOUT_PEER = (7, 8)  # TCP_CLOSE after a reset, TCP_CLOSE_WAIT after an orderly end
READS_PER_TURN_MAX = 4  # likewise; two empty any socket's buffer


class _Slot:
    """The place of one response in the order of the connection."""

    __slots__ = ("answer", "response", "size")

    def __init__(self, answer: Answer, size: int) -> None:
        self.answer = answer
        self.size = size
        self.response: Response | None = None


class FlushTurn:
    """Sends what the connections have to say at the end of a loop step, all of them one after the other.

    Done one by one, each send would wake a client that has gone to sleep since the last one; done together, the
    second finds it awake. With many connections that halves the cost of a small response.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[Connection] = []

    def add(self, connection: "Connection") -> None:
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(connection)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        for connection in waiting:
            connection.flush()


class Connection:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        host: str,
        listener: str,
        dispatcher: Dispatcher,
        memory: RequestMemory,
        turn: FlushTurn,
        request_bytes_max: int,
        on_closed: Callable[["Connection"], None],
    ) -> None:
        self.host = host
        self.listener = listener
        self.last_active = loop.time()
        self._loop = loop
        self._socket = sock
        self._descriptor = sock.fileno()
        self._dispatcher = dispatcher
        self._memory = memory
        self._turn = turn
        self._in_turn = False
        self._request_bytes_max = request_bytes_max
        self._on_closed = on_closed
        self._outbox = Outbox(sock)
        self._slots: deque[_Slot] = deque()
        self._held_by: _Slot | None = None
        self._leftover = b""  # received, not yet a whole frame; short, because large frames get their own buffer
        self._frame: bytearray | None = None
        self._frame_filled = 0
        self._frame_size = 0
        self._reading = False
        self._writing = False
        self._stopping = False
        self._closed = False
        self._resume_reading()

    def is_closed(self) -> bool:
        # A method, not an attribute: almost any call may close the connection, and a type checker must not assume.
        return self._closed

    @property
    def busy(self) -> bool:
        """Whether a request is being worked on. A peer that does not read what it was sent is not busy but gone."""
        return bool(self._slots) and not self._writing

    @property
    def peer_is_gone(self) -> bool:
        """Whether the peer has closed while nothing is read from it. While something is, reading tells."""
        if self._reading:
            return False
        state = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
        return state in _STATES_WITHOUT_PEER

    @property
    def holds_half_a_request(self) -> bool:
        return self._frame is not None

    # Reading

    def _on_readable(self) -> None:
        if self._blocked():
            # Only now is it worth telling the poller: most requests are answered before the next one arrives.
            self._pause_reading()
            self._hurry()
            return
        try:
            for _ in range(READS_PER_TURN_MAX):
                if self._frame is not None:
                    self._receive_into_frame(self._frame)
                else:
                    self._receive()
                # uvloop tells of a reset once, together with the bytes before it, and then never calls again. A later
                # write would meet the reset; where none is to come, only reading on until there is nothing does.
                if self.is_closed() or self._slots or not self._outbox.empty or self._blocked():
                    return
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.close()
        except MalformedMessage as error:
            self._refuse(str(error))

    def _receive(self) -> None:
        kept = len(self._leftover)
        if kept:
            _SCRATCH[:kept] = self._leftover
        received = self._socket.recv_into(_SCRATCH[kept:])
        if received == 0:
            self.close()
            return
        self.last_active = self._loop.time()
        self._leftover = b""
        self._take_frames(_SCRATCH, kept + received)

    def _take_frames(self, data: memoryview, end: int) -> None:
        """Dispatch each whole frame of data[:end]; keep the rest for the next turn."""
        position = 0
        frames = 0
        while not self.is_closed():
            if end - position < 4:
                break
            size = self._checked_size(data, position)
            if end - position - 4 < size:
                if size > len(_SCRATCH) // 2:
                    self._start_frame(size, data[position + 4 : end])
                    position = end
                break
            if self._blocked() or frames == FRAMES_PER_TURN_MAX:
                break
            start = position + 4
            position = start + size
            frames += 1
            self._handle(bytearray(data[start:position]))
        if self.is_closed():
            return
        if position < end:
            self._leftover = bytes(data[position:end])
            if frames == FRAMES_PER_TURN_MAX:
                self._loop.call_soon(self._continue)
        self._flush_soon()

    def _checked_size(self, data: memoryview, position: int) -> int:
        size: int = _SIZE.unpack_from(data, position)[0]
        if not 8 <= size <= self._request_bytes_max:
            raise MalformedMessage(
                f"a request of {size} bytes was announced; 8 to {self._request_bytes_max} are allowed "
                "(socket.request.max.bytes)"
            )
        return size

    def _start_frame(self, size: int, first_part: memoryview) -> None:
        # A buffer's memory is touched when it is made, so it grows with what has come, not with what was announced.
        received = len(first_part)
        self._frame = bytearray(min(size, max(FRAME_START_BYTES, 4 * received)))
        self._frame[:received] = first_part
        self._frame_filled = received
        self._frame_size = size
        self._memory.take(received)

    def _receive_into_frame(self, frame: bytearray) -> None:
        received = self._socket.recv_into(memoryview(frame)[self._frame_filled :])
        if received == 0:
            self.close()
            return
        self.last_active = self._loop.time()
        self._frame_filled += received
        self._memory.take(received)
        if self._frame_filled == self._frame_size:
            self._frame = None
            self._memory.give_back(len(frame))
            self._handle(frame)
            self._flush_soon()
        elif self._frame_filled == len(frame):
            frame.extend(bytes(min(len(frame), self._frame_size - len(frame))))

    def _continue(self) -> None:
        """Go on with frames that were received but had to wait."""
        if self.is_closed() or self._blocked():
            return
        kept, self._leftover = self._leftover, b""
        try:
            if kept:
                self._take_frames(memoryview(kept), len(kept))
        except MalformedMessage as error:
            self._refuse(str(error))
            return
        if not self.is_closed() and not self._blocked():
            self._resume_reading()

    def _blocked(self) -> bool:
        if self._held_by is not None or self._writing or self._stopping or len(self._slots) >= PENDING_RESPONSES_MAX:
            return True
        if self._memory.exhausted and (self._slots or self._frame is None):
            self._memory.when_available(self._continue)
            return True
        return False

    def _hurry(self) -> None:
        """The client sent something behind a request that waits; some had rather be answered then."""
        outcome = self._held_by.answer.outcome if self._held_by is not None else None
        if isinstance(outcome, Parked) and outcome.hurry is not None:
            outcome.hurry()

    def _pause_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._descriptor)

    def _resume_reading(self) -> None:
        if not self._reading and not self.is_closed():
            self._reading = True
            self._loop.add_reader(self._descriptor, self._on_readable)

    # Requests and responses

    def _handle(self, frame: bytearray) -> None:
        answer = self._dispatcher.dispatch(frame, self.host, self.listener)
        outcome = answer.outcome
        if isinstance(outcome, Parked):
            slot = _Slot(answer, len(frame))
            self._slots.append(slot)
            self._memory.take(slot.size)
            if outcome.holds_connection:
                self._held_by = slot
            outcome.when_resolved(lambda response: self._resolved(slot, response))
        elif self._slots:
            slot = _Slot(answer, 0)
            slot.response = outcome
            self._slots.append(slot)
        else:
            self._emit(answer, outcome)

    def _resolved(self, slot: _Slot, response: Response) -> None:
        self._memory.give_back(slot.size)
        slot.size = 0
        if self.is_closed():
            return
        slot.response = response
        self.last_active = self._loop.time()
        if self._held_by is slot:
            self._held_by = None
        while self._slots and self._slots[0].response is not None:
            done = self._slots.popleft()
            self._emit(done.answer, done.response)
        if self.is_closed():
            return
        self._flush_soon()
        if not self.is_closed() and not self._blocked():
            # Not at once: this may run inside another connection's request.
            self._loop.call_soon(self._continue)
        if self._stopping:
            self._close_when_idle()

    def _emit(self, answer: Answer, response: object) -> None:
        if isinstance(response, CloseConnection):
            self._refuse("a request failed in a way that its response cannot tell")
            return
        if isinstance(response, NoResponse):
            return
        if not isinstance(response, Raw):
            body = self._dispatcher.encode(response, answer.call.version)
            response = Raw([body], len(body))
        head = response_head(answer.correlation_id, response.size, flexible=answer.flexible_header)
        first, *rest = response.chunks
        if not isinstance(first, LogSlice) and len(first) <= JOINED_BYTES_MAX:
            first, head = head + first, b""
        if head:
            self._outbox.add(head)
        self._outbox.add(first)
        for chunk in rest:
            self._outbox.add(chunk)

    # Writing

    def _flush_soon(self) -> None:
        if not self._in_turn and not self._writing and not self._outbox.empty:
            self._in_turn = True
            self._turn.add(self)

    def flush(self) -> None:
        self._in_turn = False
        if self._closed or self._writing or self._outbox.empty:
            return
        try:
            done = self._outbox.flush()
        except OSError:
            self.close()
            return
        if not done:
            self._writing = True
            self._loop.add_writer(self._descriptor, self._on_writable)
        elif self._stopping:
            self._close_when_idle()

    def _on_writable(self) -> None:
        try:
            if not self._outbox.flush():
                self.last_active = self._loop.time()
                return
        except OSError:
            self.close()
            return
        self._writing = False
        self._loop.remove_writer(self._descriptor)
        if self._stopping:
            self._close_when_idle()
        else:
            self._continue()

    # The end

    def stop(self) -> None:
        """Take no more requests; close once those in flight are answered."""
        self._stopping = True
        self._pause_reading()
        self._close_when_idle()

    def _close_when_idle(self) -> None:
        if not self._slots and self._outbox.empty:
            self.close()

    def _refuse(self, reason: str) -> None:
        log.warning("closing the connection from %s: %s", self.host, reason)
        self.close()

    def close(self) -> None:
        if self.is_closed():
            return
        self._closed = True
        self._pause_reading()
        if self._writing:
            self._loop.remove_writer(self._descriptor)
        for slot in self._slots:
            self._memory.give_back(slot.size)
            slot.size = 0
            outcome = slot.answer.outcome
            if isinstance(outcome, Parked) and outcome.abandon is not None:
                outcome.abandon()
        self._slots.clear()
        if self._frame is not None:
            self._memory.give_back(self._frame_filled)
            self._frame = None
        self._socket.close()
        self._on_closed(self)
