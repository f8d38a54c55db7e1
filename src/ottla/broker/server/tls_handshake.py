"""Handshakes of TLS: from an accepted socket to a channel, with little to lose to peers that begin and do not go on.

A peer that has not sent a byte costs a socket and a place in a table. What OpenSSL has to compute takes less than a
millisecond with the keys that most have, and is computed on the loop, a few in each of its steps, so that a storm of
connections does not hold up those that are there; with long RSA keys it takes several, and is computed in a thread,
which by itself costs half a millisecond. A handshake has a bounded time, and there is a bounded number of them: when
there are more, the one that has taken the longest ends, which a flood of half-open connections always is and a client
that goes on never is for long.
"""

import asyncio
import concurrent.futures
import contextlib
import socket
import ssl
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol

from ottla.broker.server.tls_channel import TlsChannel

HANDSHAKE_SECONDS_MAX = 10.0
HANDSHAKES_MAX = 1_000
HANDSHAKE_BYTES_MAX = 256 * 1024  # of both sides' messages; a long chain of certificates has some kilobytes
WORKERS = 2
STEPS_PER_TURN_MAX = 4  # then the connections that are there get their turn

_RECORD_BYTES = 16 * 1024
_HANDSHAKE_RECORD = 0x16

Done = Callable[[TlsChannel, bytes | None], None]
"""Told of the channel, and of the peer's certificate in DER if it gave one."""


class Failed(Protocol):
    """Told why there is no channel. The socket is closed. `went_away`: nothing was wrong with what the peer sent."""

    def __call__(self, why: str, *, went_away: bool) -> None: ...


class HandshakeFailed(Exception):
    """The peer and this broker do not agree."""


class Handshake:
    """One of them. Between `start` and the end it owns the socket."""

    def __init__(
        self,
        table: "Handshakes",
        sock: socket.socket,
        context: ssl.SSLContext,
        done: Done,
        failed: Failed,
        *,
        in_thread: bool,
    ) -> None:
        self._table = table
        self._loop = table.loop
        self._socket = sock
        self._descriptor = sock.fileno()
        self._context = context
        self._done = done
        self._failed = failed
        self._in_thread = in_thread
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = None
        self._unsent = b""
        self._received = 0
        self._computing = False
        self._is_agreed = False
        self._is_over = False
        self._timer = self._loop.call_later(table.seconds_max, self.fail, "it took too long")

    def start(self) -> None:
        self._loop.add_reader(self._descriptor, self._on_readable)

    def fail(self, why: str, *, tell_peer: bool = False, went_away: bool = False) -> None:
        if self._is_over:
            return
        if tell_peer and self._outgoing.pending:
            with contextlib.suppress(OSError):  # it may be gone already
                self._socket.send(self._outgoing.read())  # the alert: a client can say what was wrong
        self._end()
        self._socket.close()
        self._failed(why, went_away=went_away)

    def _end(self) -> None:
        self._is_over = True
        self._timer.cancel()
        self._loop.remove_reader(self._descriptor)
        self._loop.remove_writer(self._descriptor)
        self._table.ended(self)

    def _on_readable(self) -> None:
        if self._computing:
            return
        try:
            data = self._socket.recv(_RECORD_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.fail(f"the peer has gone: {error.strerror}", went_away=True)
            return
        if not data:
            self.fail("the peer has hung up", went_away=True)
            return
        if self._tls is None:
            if data[0] != _HANDSHAKE_RECORD:
                self.fail("what the peer sent is not TLS; its security.protocol must be SSL or SASL_SSL")
                return
            self._tls = self._context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._received += len(data)
        if self._received > HANDSHAKE_BYTES_MAX:
            self.fail("the peer has sent more than any handshake has")
            return
        self._incoming.write(data)
        self._compute()

    def _compute(self) -> None:
        """Nothing is read or written meanwhile: OpenSSL's state belongs to one thread at a time."""
        assert self._tls is not None
        self._computing = True
        if self._in_thread:
            self._loop.remove_reader(self._descriptor)
            work = self._loop.run_in_executor(self._table.workers, _step, self._tls)
            work.add_done_callback(lambda done: None if done.cancelled() else self._computed(done.result))
        else:
            self._table.queue(self)

    def step(self) -> None:
        """It is this one's turn on the loop."""
        assert self._tls is not None
        self._computed(partial(_step, self._tls))

    def _computed(self, result: Callable[[], bool]) -> None:
        self._computing = False
        if self._is_over:
            return
        try:
            self._is_agreed = result()
        except HandshakeFailed as error:
            self.fail(str(error), tell_peer=True)
            return
        self._unsent += self._outgoing.read()
        self._go_on()

    def _go_on(self) -> None:
        """Send what OpenSSL has to say; then read on, or hand over."""
        try:
            while self._unsent:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
        except (BlockingIOError, InterruptedError):
            self._loop.add_writer(self._descriptor, self._go_on)
            return
        except OSError as error:
            self.fail(f"the peer has gone: {error.strerror}", went_away=True)
            return
        self._loop.remove_writer(self._descriptor)
        if not self._is_agreed:
            self._loop.add_reader(self._descriptor, self._on_readable)
            return
        assert self._tls is not None
        self._end()
        channel = TlsChannel(self._loop, self._socket, self._tls, self._incoming, self._outgoing)
        self._done(channel, self._tls.getpeercert(binary_form=True))


class Handshakes:
    """Those under way."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        seconds_max: float = HANDSHAKE_SECONDS_MAX,
        number_max: int = HANDSHAKES_MAX,
    ) -> None:
        self.loop = loop
        self.seconds_max = seconds_max
        self._number_max = number_max
        self._under_way: dict[Handshake, None] = {}  # in the order in which they began
        self._queue: deque[Handshake] = deque()
        self.workers = concurrent.futures.ThreadPoolExecutor(WORKERS, thread_name_prefix="handshakes")

    def __len__(self) -> int:
        return len(self._under_way)

    def begin(
        self, sock: socket.socket, context: ssl.SSLContext, done: Done, failed: Failed, *, in_thread: bool = False
    ) -> None:
        """Lead this socket, which does not block, to a channel."""
        if len(self._under_way) >= self._number_max:
            next(iter(self._under_way)).fail(f"more than {self._number_max} handshakes are under way")
        handshake = Handshake(self, sock, context, done, failed, in_thread=in_thread)
        self._under_way[handshake] = None
        handshake.start()

    def queue(self, handshake: Handshake) -> None:
        self._queue.append(handshake)
        if len(self._queue) == 1:
            self.loop.call_soon(self._compute_some)

    def _compute_some(self) -> None:
        for _ in range(min(len(self._queue), STEPS_PER_TURN_MAX)):
            self._queue.popleft().step()
        if self._queue:
            self.loop.call_soon(self._compute_some)

    def ended(self, handshake: Handshake) -> None:
        self._under_way.pop(handshake, None)

    def close(self) -> None:
        for handshake in list(self._under_way):
            handshake.fail("the broker is stopping", went_away=True)
        self.workers.shutdown(wait=False)


def _step(tls: ssl.SSLObject) -> bool:
    """In a thread: whether the handshake is done; if not, the peer has to send more."""
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        return False
    except ssl.SSLError as error:
        raise HandshakeFailed(reason(error)) from None
    except OSError as error:
        raise HandshakeFailed(str(error)) from None
    return True


_REASONS = {
    "HTTP_REQUEST": "what the peer sent is HTTP, not TLS",
    "WRONG_VERSION_NUMBER": "what the peer sent is not TLS",
    "UNSUPPORTED_PROTOCOL": "the peer speaks no version of TLS that ssl.enabled.protocols allows",
    "NO_SHARED_CIPHER": "the peer has no cipher suite in common with this broker (ssl.cipher.suites)",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the peer gave no certificate, and ssl.client.auth=required",
    "TLSV1_ALERT_UNKNOWN_CA": "the peer does not trust the authority that signed this broker's certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the peer does not trust this broker's certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the peer does not trust this broker's certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the peer says that this broker's certificate has expired",
}


def reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the peer's certificate is not trusted: {error.verify_message}"
    return _REASONS.get(error.reason or "", error.reason or str(error))
