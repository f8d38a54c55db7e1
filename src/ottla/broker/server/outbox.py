"""Bytes and file slices on their way out of a socket, in order, never blocking the loop."""

import os
import socket
from collections import deque

from ottla.broker.storage.log import LogSlice

# A slice this small goes out together with the bytes around it: one system call instead of two or three.
INLINE_SLICE_BYTES_MAX = 16 * 1024
GATHER_MAX = 64  # buffers handed to the kernel in one call

Chunk = bytes | bytearray | memoryview | LogSlice


class Outbox:
    """What a connection still has to send. `flush` sends as much as the socket takes."""

    __slots__ = ("_chunks", "_position", "_socket")

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._chunks: deque[Chunk] = deque()
        self._position = 0  # how much of a slice at the head has left already

    @property
    def empty(self) -> bool:
        return not self._chunks

    def add(self, chunk: Chunk) -> None:
        if type(chunk) is LogSlice and chunk.length <= INLINE_SLICE_BYTES_MAX:
            chunk = os.pread(chunk.fd, chunk.length, chunk.position)
        self._chunks.append(chunk)

    def flush(self) -> bool:
        """Send; return True when everything is out, False when the socket is full. OSError: the peer is gone."""
        chunks = self._chunks
        try:
            while chunks:
                if type(chunks[0]) is LogSlice:
                    self._send_slice(chunks[0])
                else:
                    self._send_bytes()
        except BlockingIOError:
            return False
        return True

    def _send_slice(self, piece: LogSlice) -> None:
        sent = os.sendfile(
            self._socket.fileno(), piece.fd, piece.position + self._position, piece.length - self._position
        )
        if sent == 0:
            # The file is shorter than the index said. The client expects bytes that do not exist.
            raise ConnectionAbortedError("a segment ended before the slice that was promised")
        self._position += sent
        if self._position == piece.length:
            self._position = 0
            self._chunks.popleft()

    def _send_bytes(self) -> None:
        chunks = self._chunks
        if len(chunks) == 1:
            head = chunks[0]
            sent = self._socket.send(head)  # type: ignore[arg-type]  # flush() saw that it is no slice
        else:
            gathered = []
            more = 0
            for chunk in chunks:
                if type(chunk) is LogSlice:
                    more = socket.MSG_MORE  # the slice follows at once: fill packets with both
                    break
                gathered.append(chunk)
                if len(gathered) == GATHER_MAX:
                    break
            sent = self._socket.sendmsg(gathered, (), more)  # type: ignore[arg-type]
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
