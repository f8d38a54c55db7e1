"""An encrypted channel: OpenSSL works in memory, the socket is driven here, and neither ever waits for the other.

With a buffer on either side of OpenSSL (MemoryBIO) a write never has to be repeated with the same bytes, several
records go to the kernel in one call, and nothing leaves but what OpenSSL has put into its buffer. What is held is
bounded: one step's bytes on their way out, one receive's on their way in.
"""

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import Callable, Sequence

from ottla.broker.server.channel import STATES_WITHOUT_PEER, Buffer, WantChannel, WantRead, WantWrite

RECEIVE_BYTES = 128 * 1024
STEP_BYTES = 128 * 1024  # encrypted and handed to the kernel in one go
HELD_BYTES_MAX = 1024 * 1024  # of what OpenSSL wants to say by itself to a peer that does not listen
TURN_BYTES = 512 * 1024  # then other connections get their turn; about half a millisecond of encryption

# Shared by all channels: neither receiving nor encrypting spans two loop steps.
_RECEIVED = memoryview(bytearray(RECEIVE_BYTES))
_FILE = memoryview(bytearray(STEP_BYTES))


class TlsChannel:
    """A socket whose handshake is done (tls_handshake.py does it)."""

    __slots__ = (
        "_encrypted", "_incoming", "_loop", "_outgoing", "_receive", "_send", "_socket", "_tls", "_turn_bytes",
        "on_ready", "unread",
    )  # fmt: skip

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        tls: ssl.SSLObject,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
    ) -> None:
        self._loop = loop
        self._socket = sock
        self._receive = sock.recv_into
        self._send = sock.send
        self._tls = tls
        self._incoming = incoming
        self._outgoing = outgoing
        self._encrypted: memoryview | None = None  # taken from OpenSSL, not yet by the kernel
        self._turn_bytes = 0
        self.on_ready: Callable[[], None] | None = None
        self.unread = incoming.pending > 0  # a request may have come right behind the handshake

    @property
    def unsent(self) -> bool:
        return self._encrypted is not None or self._outgoing.pending > 0

    def fileno(self) -> int:
        return self._socket.fileno()

    def receive_into(self, buffer: memoryview, /) -> int:
        if self.unread:
            received = self._decrypt(buffer)
            if received:
                return received
        size = self._receive(_RECEIVED)  # BlockingIOError: the kernel has nothing
        if not size:
            return 0
        self._incoming.write(_RECEIVED[:size])
        received = self._decrypt(buffer)
        if self._outgoing.pending:  # an answer that OpenSSL gives by itself, to a change of keys for instance
            self._send_when_possible()
            if self._outgoing.pending > HELD_BYTES_MAX:
                raise ConnectionAbortedError("the peer makes OpenSSL answer and reads none of it")
        if received or self._ended():
            return received
        raise WantRead

    def _decrypt(self, buffer: memoryview) -> int:
        """Fill the buffer as far as whole records allow."""
        read, filled, size = self._tls.read, 0, len(buffer)
        self.unread = False
        try:
            while filled < size:
                got: int = read(size - filled, buffer[filled:])  # type: ignore[assignment]  # into a buffer: a count
                if not got:
                    return filled  # the peer has said goodbye
                filled += got
        except ssl.SSLWantReadError:
            return filled
        self.unread = True
        return filled

    def _ended(self) -> bool:
        try:
            return self._tls.read(1) == b""
        except ssl.SSLWantReadError:
            return False

    def send(self, data: Buffer, /) -> int:
        self._take_turns()
        if self.unsent:
            self.flush()
        accepted = self._encrypt(data if len(data) <= STEP_BYTES else memoryview(data)[:STEP_BYTES])
        self._send_when_possible()
        return accepted

    def send_all_of(self, parts: Sequence[Buffer], more_follows: bool) -> int:
        # Each call of OpenSSL makes a record of its own: small buffers are joined first.
        gathered: list[Buffer] = []
        size = 0
        for part in parts:
            if size + len(part) > STEP_BYTES:
                break
            gathered.append(part)
            size += len(part)
        if not gathered:
            return self.send(parts[0])
        self._take_turns()
        if self.unsent:
            self.flush()
        accepted = self._encrypt(b"".join(gathered)) if size else 0
        if not (more_follows and len(gathered) == len(parts)):  # else it leaves together with the slice
            self._send_when_possible()
        return accepted

    def send_file(self, descriptor: int, position: int, size: int) -> int:
        self._take_turns()
        if self._encrypted is not None:
            self.flush()
        got = os.preadv(descriptor, [_FILE[: min(size, STEP_BYTES)]], position)
        if got:
            self._encrypt(_FILE[:got])
            self._send_when_possible()
        return got

    def _take_turns(self) -> None:
        """A large answer goes out in steps, so that it does not hold up every other connection."""
        if self._turn_bytes < TURN_BYTES:
            return
        self._turn_bytes = 0
        self._loop.call_soon(self._ready)
        raise WantChannel

    def _ready(self) -> None:
        if self.on_ready is not None:
            self.on_ready()

    def _encrypt(self, data: Buffer) -> int:
        accepted = self._tls.write(data)
        self._turn_bytes += accepted
        return accepted

    def flush(self) -> None:
        while self.unsent:
            if self._encrypted is None:
                self._encrypted = memoryview(self._outgoing.read())
            try:
                sent = self._send(self._encrypted)
            except BlockingIOError:
                self._turn_bytes = 0  # others get their turn while the kernel sends
                raise WantWrite from None
            self._encrypted = self._encrypted[sent:] if sent < len(self._encrypted) else None

    def _send_when_possible(self) -> None:
        try:
            self.flush()
        except WantWrite:
            return  # what is left `unsent` tells

    def peer_is_gone(self) -> bool:
        state = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
        return state in STATES_WITHOUT_PEER

    def close(self) -> None:
        try:
            self._say_goodbye()
        except OSError:
            pass  # the peer is gone, or the records were none; it is over either way
        finally:
            self._socket.close()

    def _say_goodbye(self) -> None:
        """Without it the peer could not tell the end from a connection that somebody has cut."""
        if self._encrypted is None:
            with contextlib.suppress(ssl.SSLWantReadError):  # for the peer's own goodbye, which nobody waits for
                self._tls.unwrap()
            self.flush()
