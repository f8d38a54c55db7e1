"""The bytes of one connection, in and out, behind one small interface: plain here, encrypted later.

A channel never blocks. What it cannot do at once it says by one of the `Want` exceptions, and the connection calls the
same method again when that has come to pass. Any method may want anything: an encrypted channel writes while it reads
when the peer wants new keys, and reads while it writes. That is why no other error may stand for "not now", least of
all ssl's own SSLWantReadError: it is an OSError, and an OSError means that the peer is gone.
"""

import os
import socket
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol

Buffer = bytes | bytearray | memoryview

STATES_WITHOUT_PEER = (7, 8)  # TCP_CLOSE after a reset, TCP_CLOSE_WAIT after an orderly end


class Want(BlockingIOError):
    """Nothing was done; call again later. The kernel's own BlockingIOError wants what the method is about."""


class WantRead(Want):
    """... when the socket is readable."""


class WantWrite(Want):
    """... when the socket is writable."""


class WantChannel(Want):
    """... when the channel calls `on_ready`: a thread reads or encrypts for it."""


class Waits(Enum):
    """What sending waits for."""

    FOR_WRITABLE = "writable"
    FOR_READABLE = "readable"
    FOR_CHANNEL = "channel"


class Channel(Protocol):
    on_ready: Callable[[], None] | None
    """Called on the loop after WantChannel. Set by the connection."""

    @property
    def unread(self) -> bool:
        """Whether received bytes stand ready inside the channel, of which the poller knows nothing."""

    @property
    def unsent(self) -> bool:
        """Whether the channel holds accepted bytes that are not out yet; `flush` sends them."""

    def fileno(self) -> int: ...

    def receive_into(self, buffer: memoryview, /) -> int:
        """How many bytes came; 0 at the end of the stream."""

    def send(self, data: Buffer, /) -> int:
        """How many bytes were accepted. After a Want the next call begins with the same bytes."""

    def send_all_of(self, parts: Sequence[Buffer], more_follows: bool) -> int:
        """As `send`, of several buffers in one step. More is told if a slice of a file comes right behind."""

    def send_file(self, descriptor: int, position: int, size: int) -> int:
        """How many bytes of the file were accepted; 0 if it ends before them."""

    def flush(self) -> None:
        """Send what was accepted. Returns when it is all out."""

    def peer_is_gone(self) -> bool:
        """Whether the peer has closed, asked without reading."""

    def close(self) -> None: ...


class PlainChannel:
    """The socket as it is. Its methods are the socket's own, so that the seam costs nothing where nothing is in it."""

    __slots__ = ("_socket", "fileno", "on_ready", "receive_into", "send", "unread", "unsent")

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self.unread = False
        self.unsent = False
        self.on_ready: Callable[[], None] | None = None
        self.fileno: Callable[[], int] = sock.fileno
        self.receive_into: Callable[[memoryview], int] = sock.recv_into
        self.send: Callable[[Buffer], int] = sock.send

    def send_all_of(self, parts: Sequence[Buffer], more_follows: bool) -> int:
        # With MSG_MORE packets are filled with these bytes and the slice together.
        return self._socket.sendmsg(parts, (), socket.MSG_MORE if more_follows else 0)

    def send_file(self, descriptor: int, position: int, size: int) -> int:
        return os.sendfile(self._socket.fileno(), descriptor, position, size)

    def flush(self) -> None:
        """The kernel has everything."""

    def peer_is_gone(self) -> bool:
        state = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
        return state in STATES_WITHOUT_PEER

    def close(self) -> None:
        self._socket.close()
