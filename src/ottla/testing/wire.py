"""A plain socket that speaks the protocol one request at a time, or speaks it badly on purpose."""

import socket
import struct
from types import TracebackType
from typing import Self, TypeVar

from ottla.protocol.apis import REQUEST_FLEXIBLE_FROM, response_header_is_flexible
from ottla.protocol.codec import decode, encode
from ottla.protocol.frames import read_response_header, request_frame
from ottla.protocol.schema import TopLevel

R = TypeVar("R", bound=TopLevel)

SECONDS_MAX = 60.0
_SIZE = struct.Struct(">i")


class WireConnection:
    """Nothing is checked before it is sent; whatever comes back is read as frames."""

    def __init__(
        self, host: str, port: int, *, seconds: float = SECONDS_MAX, receive_buffer: int | None = None
    ) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(seconds)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            self.socket.connect((host, port))
        except OSError:
            self.socket.close()
            raise
        self._next_correlation_id = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """Close so that the peer sees a reset, not an orderly end."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def send(self, data: bytes | bytearray) -> None:
        self.socket.sendall(data)

    def frame(self, request: TopLevel, version: int, *, client_id: str | None = "wire") -> bytes:
        """The bytes of a request, with its size before it."""
        key = request.API_KEY
        self._next_correlation_id += 1
        return request_frame(
            key,
            version,
            self._next_correlation_id,
            client_id,
            encode(request, version),
            flexible=version >= REQUEST_FLEXIBLE_FROM[key],
        )

    @property
    def last_correlation_id(self) -> int:
        return self._next_correlation_id

    def call(self, request: TopLevel, version: int, answer: type[R]) -> R:
        """Send a request and read its answer."""
        self.send(self.frame(request, version))
        correlation_id, body = self.read_answer(request.API_KEY, version)
        assert correlation_id == self._next_correlation_id, "an answer to another request"
        return decode(answer, version, body)

    def read_answer(self, api_key: int, version: int) -> tuple[int, bytes]:
        """The next answer: (correlation id, body)."""
        frame = self.read_frame()
        correlation_id, start = read_response_header(frame, flexible=response_header_is_flexible(api_key, version))
        return correlation_id, frame[start:]

    def read_frame(self) -> bytes:
        (size,) = _SIZE.unpack(self._read_exactly(4))
        return self._read_exactly(size)

    def _read_exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self.socket.recv(min(size - len(parts), 1 << 20))
            if not part:
                raise ConnectionResetError(f"closed by the broker after {len(parts)} of {size} bytes")
            parts += part
        return bytes(parts)

    def closed_by_peer(self, seconds: float = SECONDS_MAX) -> bool:
        """Whether the broker closes this connection within that time without sending anything more."""
        self.socket.settimeout(seconds)
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False
