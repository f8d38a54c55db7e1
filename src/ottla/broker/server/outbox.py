"""Bytes and file slices on their way out of a channel, in order, never blocking the loop."""

import os
from collections import deque
from collections.abc import Sequence

from ottla.broker.server.channel import Buffer, Channel, Waits, WantChannel, WantRead
from ottla.broker.storage.log import LogSlice

# A slice this small goes out together with the bytes around it: one system call instead of two or three.
INLINE_SLICE_BYTES_MAX = 16 * 1024
JOINED_BYTES_MAX = 4 * 1024  # a body this small is copied behind its header: cheaper than telling the kernel of two
GATHER_MAX = 64  # buffers handed to the kernel in one call

Chunk = Buffer | LogSlice


class Outbox:
    """What a connection still has to send. `flush` sends as much as the channel takes."""

    __slots__ = ("_channel", "_chunks", "_position", "_send", "end", "sent_bytes")

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._send = channel.send
        self._chunks: deque[Chunk] = deque()
        self._position = 0  # how much of a slice at the head has left already
        self.sent_bytes = 0
        """Since the connection began, as far as the channel has taken them."""
        self.end = 0
        """What that will be when everything in here has left."""

    @property
    def empty(self) -> bool:
        return not self._chunks and not self._channel.unsent

    def _add(self, chunk: Chunk) -> None:
        if type(chunk) is LogSlice and chunk.length <= INLINE_SLICE_BYTES_MAX:
            chunk = os.pread(chunk.fd, chunk.length, chunk.position)
        self._chunks.append(chunk)

    def add_response(self, head: bytes, chunks: Sequence[Chunk], size: int) -> None:
        """`size` is that of all chunks."""
        self.end += len(head) + size
        first = chunks[0]
        if type(first) is not LogSlice and len(first) <= JOINED_BYTES_MAX:  # type: ignore[arg-type]
            self._chunks.append(head + first)  # type: ignore[operator]
        else:
            self._chunks.append(head)
            self._add(first)
        if len(chunks) > 1:
            for chunk in chunks[1:]:
                self._add(chunk)

    def flush(self) -> Waits | None:
        """Send; return what sending has to wait for, None when everything is out. OSError: the peer is gone."""
        chunks = self._chunks
        try:
            while chunks:
                if type(chunks[0]) is LogSlice:
                    self._send_slice(chunks[0])
                else:
                    self._send_bytes()
            if self._channel.unsent:
                self._channel.flush()
        except WantRead:
            return Waits.FOR_READABLE
        except WantChannel:
            return Waits.FOR_CHANNEL
        except BlockingIOError:
            return Waits.FOR_WRITABLE
        return None

    def _send_slice(self, piece: LogSlice) -> None:
        sent = self._channel.send_file(piece.fd, piece.position + self._position, piece.length - self._position)
        if sent == 0:
            # The file is shorter than the index said. The client expects bytes that do not exist.
            raise ConnectionAbortedError("a segment ended before the slice that was promised")
        self.sent_bytes += sent
        self._position += sent
        if self._position == piece.length:
            self._position = 0
            self._chunks.popleft()

    def _send_bytes(self) -> None:
        chunks = self._chunks
        if len(chunks) == 1:
            head = chunks[0]
            sent = self._send(head)  # type: ignore[arg-type]  # flush() saw that it is no slice
            if sent == len(head):  # type: ignore[arg-type]
                self.sent_bytes += sent
                chunks.clear()
                return
        else:
            gathered: list[Buffer] = []
            slice_follows = False
            for chunk in chunks:
                if type(chunk) is LogSlice:
                    slice_follows = True
                    break
                gathered.append(chunk)  # type: ignore[arg-type]
                if len(gathered) == GATHER_MAX:
                    break
            sent = self._channel.send_all_of(gathered, slice_follows)
        self.sent_bytes += sent
        while sent:
            head = chunks[0]
            size = len(head)  # type: ignore[arg-type]
            if sent < size:
                chunks[0] = memoryview(head)[sent:]  # type: ignore[arg-type]
                return
            chunks.popleft()
            sent -= size
        while chunks and type(chunks[0]) is not LogSlice and not len(chunks[0]):  # type: ignore[arg-type]
            chunks.popleft()
