"""One client's connection: frames in, requests dispatched in order, responses out in the same order.

The socket is driven by hand (no transport), through a channel: a large request is received straight into the buffer
that is later written to the segment, and a segment's bytes leave by sendfile where the channel is plain.

What stops the reading of further requests, each alone being enough:
  - a request that holds the connection is being worked on (anything but a waiting produce);
  - too many produce requests wait for their replicas;
  - the peer does not read what it was sent;
  - the broker holds as many request bytes as it may;
  - the client was told to wait: it has used up a quota.
"""

import asyncio
import logging
import struct
from collections import deque
from collections.abc import Callable
from time import monotonic_ns

from ottla.broker.handlers.context import CloseConnection, NoResponse, Parked, Raw, Response
from ottla.broker.server import charging
from ottla.broker.server.answer import SLOW_NS, Answer, AnswerWatch, Slot
from ottla.broker.server.channel import Channel, Waits, WantChannel, WantWrite
from ottla.broker.server.dispatch import Dispatcher
from ottla.broker.server.gate import frame_bounds
from ottla.broker.server.large_frame import LargeFrame
from ottla.broker.server.limits import RequestMemory
from ottla.broker.server.turn import FlushTurn
from ottla.broker.server.writing import WritingSide
from ottla.broker.session import Session
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.frames import response_head

logger = logging.getLogger(__name__)

_SIZE = struct.Struct(">i")
_SCRATCH = memoryview(bytearray(256 * 1024))  # shared by all connections: reading never spans two loop steps
PENDING_RESPONSES_MAX = 128
FRAMES_PER_TURN_MAX = 64  # then other connections get their turn
READS_PER_TURN_MAX = 4  # likewise; two empty any socket's buffer


class Connection(WritingSide):
    __slots__ = (
        "_dispatcher", "_frame", "_held_by", "_leftover", "_memory", "_muted", "_on_closed", "_reading",
        "_receive_into", "_received_ns", "_request_bytes_max", "_slots", "received_bytes",
    )  # fmt: skip

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        channel: Channel,
        session: Session,
        dispatcher: Dispatcher,
        memory: RequestMemory,
        turn: FlushTurn,
        request_bytes_max: int,
        on_closed: Callable[["Connection"], None],
        watch: AnswerWatch | None = None,
        now_ns: Callable[[], int] = monotonic_ns,
    ) -> None:
        super().__init__(loop, channel, session, dispatcher.quotas, turn, watch, now_ns)
        self._receive_into = channel.receive_into
        self._dispatcher = dispatcher
        self._memory = memory
        self._request_bytes_max = request_bytes_max
        self._on_closed = on_closed
        self._received_ns = 0
        self.received_bytes = 0
        self._slots: deque[Slot] = deque()
        self._held_by: Slot | None = None
        self._leftover = b""  # received, not yet a whole frame; short, because large frames get their own buffer
        self._frame: LargeFrame | None = None
        self._reading = False
        self._muted: asyncio.TimerHandle | None = None
        channel.on_ready = self._on_channel_ready
        self._resume_reading()

    @property
    def busy(self) -> bool:
        """Whether a request is being worked on. A peer that does not read what it was sent is not busy but gone."""
        return (bool(self._slots) or self._muted is not None) and not self._writing

    @property
    def backlog(self) -> tuple[bool, bool, deque[Slot]]:
        """Whether requests wait for their turn; whether the peer does not take its responses; who has none yet."""
        return bool(self._leftover), self._writing, self._slots

    @property
    def peer_is_gone(self) -> bool:
        """Whether the peer has closed while nothing is read from it. While something is, reading tells."""
        if self._reading:
            return False
        return self._channel.peer_is_gone()

    @property
    def holds_half_a_request(self) -> bool:
        return self._frame is not None

    # Reading

    def _on_readable(self) -> None:
        if self._blocked():
            if self._waits is Waits.FOR_READABLE:
                self._go_on_writing()
                return
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
                if self.is_closed() or self._slots or self._in_turn or not self._outbox.empty or self._blocked():
                    break
        except WantWrite:
            self._read_when_writable()
            return
        except WantChannel:
            self._pause_reading()
            return
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.close()
        except MalformedMessage as error:
            self._refuse(str(error))
        if self._channel.unread:
            self._loop.call_soon(self._read_what_is_inside)

    def _read_what_is_inside(self) -> None:
        """The channel has bytes that the poller does not know of. If reading is paused, resuming it comes here."""
        if self._reading and not self.is_closed():
            self._on_readable()

    def _read_when_writable(self) -> None:
        self._pause_reading()
        self._reads_when_writable = True
        self._loop.add_writer(self._descriptor, self._on_writable)

    def _receive(self) -> None:
        kept = len(self._leftover)
        if kept:
            _SCRATCH[:kept] = self._leftover
        received = self._receive_into(_SCRATCH[kept:])
        if received == 0:
            self.close()
            return
        self.last_active = self._loop.time()
        self.received_bytes += received
        self._leftover = b""
        self._received_ns = now_ns = self._now_ns()
        self._take_frames(_SCRATCH, kept + received, now_ns)

    def _take_frames(self, data: memoryview, end: int, now_ns: int) -> None:
        """Dispatch each whole frame of data[:end]; keep the rest for the next turn. Who calls knows: not blocked."""
        position = 0
        frames = 0
        while end - position >= 4:
            size = self._checked_size(data, position)
            if end - position - 4 < size:
                if size > len(_SCRATCH) // 2:
                    self._frame = LargeFrame(size, data[position + 4 : end], self._memory)
                    position = end
                break
            if frames and (self._blocked() or frames == FRAMES_PER_TURN_MAX):
                break
            start = position + 4
            position = start + size
            frames += 1
            now_ns = self._handle(bytearray(data[start:position]), now_ns)
            if self._closed:
                return
        if position < end:
            self._leftover = bytes(data[position:end])
            if frames == FRAMES_PER_TURN_MAX:
                self._loop.call_soon(self._continue)
        self._flush_soon()

    def _checked_size(self, data: memoryview, position: int) -> int:
        size: int = _SIZE.unpack_from(data, position)[0]
        most = self._request_bytes_max
        least, most = frame_bounds(self.session, most) if self.session.restricted else (8, most)
        if not least <= size <= most:
            name = "socket.request.max.bytes" if most == self._request_bytes_max else "sasl.server.max.receive.size"
            raise MalformedMessage(f"a request of {size} bytes was announced; {least} to {most} are allowed ({name})")
        return size

    def _receive_into_frame(self, frame: LargeFrame) -> None:
        received = self._receive_into(frame.room)
        if received == 0:
            self.close()
            return
        self.last_active = self._loop.time()
        self.received_bytes += received
        whole = frame.add(received)
        if whole is not None:
            self._frame = None
            self._received_ns = now_ns = self._now_ns()
            self._handle(whole, now_ns)
            self._flush_soon()

    def _continue(self) -> None:
        """Go on with frames that were received but had to wait."""
        if self.is_closed() or self._blocked():
            return
        kept, self._leftover = self._leftover, b""
        try:
            if kept:
                self._take_frames(memoryview(kept), len(kept), self._now_ns())
        except MalformedMessage as error:
            self._refuse(str(error))
            return
        if not self.is_closed() and not self._blocked():
            self._resume_reading()

    def _blocked(self) -> bool:
        if (
            self._held_by is not None
            or self._writing
            or self._muted is not None
            or self._stopping
            or len(self._slots) >= PENDING_RESPONSES_MAX
        ):
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
            if self._channel.unread:
                self._loop.call_soon(self._read_what_is_inside)

    def mute(self, seconds: float) -> None:
        """Take no more requests for this time, whatever the client does. A longer time that runs already stays."""
        until = self._loop.time() + seconds
        if self._muted is not None:
            if self._muted.when() >= until:
                return
            self._muted.cancel()
        self._muted = self._loop.call_at(until, self._unmute)

    def _unmute(self) -> None:
        self._muted = None
        self._continue()

    # Requests and responses

    def _handle(self, frame: bytearray, now_ns: int) -> int:
        """Work on one request; return the time afterwards."""
        answer = self._dispatcher.dispatch(frame, self.session)
        answer.received_ns = self._received_ns
        answer.dispatched_ns = now_ns
        if self._watch is not None:
            answer.size = len(frame)
        answer.local_done_ns = answer.replied_ns = now_ns = self._now_ns()
        outcome = answer.outcome
        if self._quotas.in_force and charging.charge(self._quotas, answer, len(frame)):
            self.mute(answer.call.throttle_ms / 1000)  # and again with the answer, which may have to wait for replicas
        if type(outcome) is Parked:
            slot = Slot(answer, len(frame))
            self._slots.append(slot)
            self._memory.take(slot.size)
            if outcome.holds_connection:
                self._held_by = slot
            outcome.when_resolved(lambda response: self._resolved(slot, response))
        elif self._slots:
            self._slots.append(Slot(answer, 0, outcome))
        else:
            self._emit(answer, outcome)
        return now_ns

    def _resolved(self, slot: Slot, response: Response) -> None:
        self._memory.give_back(slot.size)
        slot.size = 0
        if self.is_closed():
            return
        slot.response = response
        slot.answer.replied_ns = self._now_ns()
        self.last_active = self._loop.time()
        if self._held_by is slot:
            self._held_by = None
        while self._slots and self._slots[0].response is not None:
            done = self._slots.popleft()
            assert done.response is not None
            self._emit(done.answer, done.response)
        if self.is_closed():
            return
        self._flush_soon()
        if not self.is_closed() and not self._blocked():
            # Not at once: this may run inside another connection's request.
            self._loop.call_soon(self._continue)
        if self._stopping:
            self._close_when_idle()

    def _emit(self, answer: Answer, response: Response) -> None:
        if type(response) is CloseConnection:
            self._refuse("a request failed in a way that its response cannot tell")
            return
        call = answer.call
        if call.throttle_ms:
            self.mute(call.throttle_ms / 1000)
        if type(response) is NoResponse:
            return
        if type(response) is Raw and not response.errors and not call.throttle_ms:
            body = response
        else:
            body = self._dispatcher.pack(answer, response)
        if answer.bare:
            head = _SIZE.pack(body.size)
        else:
            head = response_head(answer.correlation_id, body.size, flexible=answer.flexible_header)
        self._outbox.add_response(head, body.chunks, body.size)
        watch = self._watch
        if watch is not None:
            watch.left -= 1
            if (watch.left < 0 or answer.replied_ns - answer.received_ns >= SLOW_NS) and watch.take(answer):
                answer.last_byte = self._outbox.end
                self._unsent.append(answer)
        if call.then_close:
            self.stop()

    def _on_channel_ready(self) -> None:
        if self.is_closed():
            return
        if self._waits is Waits.FOR_CHANNEL:
            self._go_on_writing()
        elif not self._blocked():
            self._resume_reading()
            self._on_readable()

    # The end

    def stop(self) -> None:
        """Take no more requests; close once those in flight are answered."""
        self._stopping = True
        if self._waits is not Waits.FOR_READABLE:
            self._pause_reading()
        self._close_when_idle()

    def _close_when_idle(self) -> None:
        if not self._slots and self._outbox.empty:
            self.close()

    def _refuse(self, reason: str) -> None:
        logger.warning("Closing the connection from %s: %s", self.session.host, reason)
        self.close()

    def close(self) -> None:
        if self.is_closed():
            return
        self._closed = True
        self._pause_reading()
        if self._waits is Waits.FOR_WRITABLE or self._reads_when_writable:
            self._loop.remove_writer(self._descriptor)
        if self._muted is not None:
            self._muted.cancel()
        self._channel.on_ready = None  # in a circle the connection would stay in memory until garbage is collected
        for slot in self._slots:
            self._memory.give_back(slot.size)
            slot.size = 0
            outcome = slot.answer.outcome
            if isinstance(outcome, Parked) and outcome.abandon is not None:
                outcome.abandon()
        self._slots.clear()
        if self._frame is not None:
            self._frame.give_up()
            self._frame = None
        self._channel.close()
        self._on_closed(self)
