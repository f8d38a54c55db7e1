"""The side of a connection that responses leave by: at the end of a loop step; the rest when the peer takes more."""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable

from ottla.broker.quotas.clients import ClientQuotas
from ottla.broker.server import charging
from ottla.broker.server.answer import Answer, AnswerWatch, note_sent
from ottla.broker.server.channel import Channel, Waits
from ottla.broker.server.outbox import Outbox
from ottla.broker.server.turn import FlushTurn
from ottla.broker.session import Session


class WritingSide(ABC):
    # Without slots the attributes of a connection would be more than Python keeps quickly at hand.
    __slots__ = (
        "_channel", "_closed", "_descriptor", "_in_turn", "_loop", "_now_ns", "_outbox", "_quotas",
        "_reads_when_writable", "_stopping", "_turn", "_unsent", "_waits", "_watch", "_writing",
        "last_active", "session",
    )  # fmt: skip

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        channel: Channel,
        session: Session,
        quotas: ClientQuotas,
        turn: FlushTurn,
        watch: AnswerWatch | None,
        now_ns: Callable[[], int],
    ) -> None:
        self.session = session
        self.last_active = loop.time()
        self._loop = loop
        self._channel = channel
        self._descriptor = channel.fileno()
        self._quotas = quotas
        self._outbox = Outbox(channel)
        self._turn = turn
        self._in_turn = False
        self._watch = watch
        self._unsent: deque[Answer] = deque()  # of those that the watch wants
        self._now_ns = now_ns
        self._writing = False
        self._waits: Waits | None = None  # for what, while something is to be written and cannot
        self._reads_when_writable = False
        self._stopping = False
        self._closed = False

    def is_closed(self) -> bool:
        # A method, not an attribute: almost any call may close the connection, and a type checker must not assume.
        return self._closed

    @property
    def sent_bytes(self) -> int:
        return self._outbox.sent_bytes

    def _flush_soon(self) -> None:
        if not self._in_turn and not self._writing and not self._outbox.empty:
            self._in_turn = True
            self._turn.add(self)

    def flush(self) -> None:
        self._in_turn = False
        if self._closed or self._writing:
            return
        waits = self._send()
        if waits is not None:
            self._writing = True
            self._wait_to_write(waits)
        elif self._stopping:
            self._close_when_idle()

    def _send(self) -> Waits | None:
        """Send what can be. Returns what the rest has to wait for; a connection that is broken is closed."""
        began_ns = self._now_ns() if self._quotas.requests is not None else 0
        sending_ns = self._turn.time_of_sending(self._now_ns) if self._unsent else 0
        try:
            waits = self._outbox.flush()
        except OSError:
            self.close()
            return None
        if began_ns:
            charging.note_sending(self._quotas, self.session, began_ns, self._now_ns())
        if sending_ns:
            now_ns = self._turn.sent(self._now_ns)
            note_sent(self._unsent, self._outbox.sent_bytes, sending_ns, now_ns, self._watch)
        return waits

    def _wait_to_write(self, waits: Waits | None) -> None:
        if waits is self._waits:
            return
        if self._waits is Waits.FOR_WRITABLE and not self._reads_when_writable:
            self._loop.remove_writer(self._descriptor)
        self._waits = waits
        if waits is Waits.FOR_WRITABLE:
            self._loop.add_writer(self._descriptor, self._on_writable)
        elif waits is Waits.FOR_READABLE:
            self._resume_reading()

    def _on_writable(self) -> None:
        reads, self._reads_when_writable = self._reads_when_writable, False
        if self._waits is Waits.FOR_WRITABLE:
            self._go_on_writing()
        else:
            self._loop.remove_writer(self._descriptor)
        if reads and not self.is_closed():
            self._resume_reading()
            self._on_readable()

    def _go_on_writing(self) -> None:
        waits = self._send()
        if self.is_closed():
            return
        self._wait_to_write(waits)
        if waits is not None:
            self.last_active = self._loop.time()
            return
        self._writing = False
        if self._stopping:
            self._close_when_idle()
        else:
            self._continue()

    # What the other side does

    @abstractmethod
    def _on_readable(self) -> None: ...

    @abstractmethod
    def _resume_reading(self) -> None: ...

    @abstractmethod
    def _continue(self) -> None:
        """Go on with requests: the peer has taken what it was sent."""

    @abstractmethod
    def _close_when_idle(self) -> None: ...

    @abstractmethod
    def close(self) -> None: ...
