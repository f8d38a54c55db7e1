"""Frames on a socket. A large answer is received where it stays: records are not copied on their way to the decoder."""

import asyncio
from collections.abc import Callable
from typing import cast

from ottla.protocol.errors import MalformedMessage
from ottla.protocol.frames import SIZE

STAGE_BYTES = 64 * 1024
"""Answers that fit are read together, as many as have come; larger ones get memory of their own."""
FRAME_BYTES_MIN = 4

Frame = bytes | bytearray


class FrameProtocol(asyncio.BufferedProtocol):
    """Cuts what a broker sends into frames, without their sizes, and holds back writers that are too fast."""

    def __init__(
        self, frame_bytes_max: int, got: Callable[[Frame], None], lost: Callable[[Exception | None], None]
    ) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._got = got
        self._lost = lost
        self._stage = memoryview(bytearray(STAGE_BYTES))
        self._staged = 0
        self._large: bytearray | None = None
        self._large_view = memoryview(b"")
        self._large_filled = 0
        self._transport: asyncio.Transport | None = None
        self._closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._writable: asyncio.Future[None] | None = None

    # What the owner does.

    def write(self, frame: bytes) -> None:
        assert self._transport is not None
        self._transport.write(frame)

    async def drain(self) -> None:
        """Wait until the socket has taken most of what was written."""
        if self._writable is not None:
            await asyncio.shield(self._writable)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    async def wait_closed(self, timeout_s: float) -> None:
        """Wait until the socket is closed; a peer that takes nothing more is not waited for any longer than this."""
        await asyncio.wait([self._closed], timeout=timeout_s)
        if not self._closed.done() and self._transport is not None:
            self._transport.abort()

    # What the event loop does.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, error: Exception | None) -> None:
        self.resume_writing()
        if not self._closed.done():
            self._closed.set_result(None)
        self._lost(error)

    def pause_writing(self) -> None:
        self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._large is not None:
            return self._large_view[self._large_filled :]
        return self._stage[self._staged :]

    def buffer_updated(self, count: int) -> None:
        try:
            if self._large is None:
                self._staged += count
                self._cut()
                return
            self._large_filled += count
            if self._large_filled == len(self._large):
                frame, self._large, self._large_view = self._large, None, memoryview(b"")
                self._got(frame)
        except MalformedMessage as error:
            self._lost(error)
            self.close()

    def _cut(self) -> None:
        """Hand over the frames that are complete, and move the rest to the front, or to memory of its own."""
        position = 0
        while self._staged - position >= SIZE.size:
            size = SIZE.unpack_from(self._stage, position)[0]
            if not FRAME_BYTES_MIN <= size <= self._frame_bytes_max:
                raise MalformedMessage(f"an answer of {size} bytes was announced; is it a Kafka broker?")
            start = position + SIZE.size
            if start + size <= self._staged:
                position = start + size
                self._got(bytes(self._stage[start:position]))
            elif SIZE.size + size > STAGE_BYTES:
                self._receive_large(size, start)
                return
            else:
                break
        rest = self._staged - position
        if position and rest:
            self._stage[:rest] = bytes(self._stage[position : self._staged])
        self._staged = rest

    def _receive_large(self, size: int, start: int) -> None:
        here = self._staged - start
        self._large = bytearray(size)
        self._large_view = memoryview(self._large)
        self._large_view[:here] = self._stage[start : self._staged]
        self._large_filled = here
        self._staged = 0
