"""A TCP proxy that records the requests and responses that pass through it."""

import contextlib
import socket
import struct
import threading
from typing import NamedTuple


class Exchange(NamedTuple):
    """One request and its response as they were on the wire, without the sizes in front."""

    source: str
    api_key: int
    version: int
    request: bytes
    response: bytes


class RecordingProxy:
    """Listens on a loopback port and passes every connection on to `upstream_port`."""

    def __init__(self, upstream_port: int) -> None:
        self._upstream_port = upstream_port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.source = ""
        self.exchanges: list[Exchange] = []
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._server.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                broker = socket.create_connection(("127.0.0.1", self._upstream_port))
                waiting: list[tuple[str, bytes]] = []
                threading.Thread(target=self._pass_requests, args=(client, broker, waiting), daemon=True).start()
                threading.Thread(target=self._pass_responses, args=(broker, client, waiting), daemon=True).start()

    def _pass_requests(self, client: socket.socket, broker: socket.socket, waiting: list[tuple[str, bytes]]) -> None:
        with contextlib.suppress(OSError):
            while frame := _read_frame(client):
                waiting.append((self.source, frame))
                broker.sendall(struct.pack(">i", len(frame)) + frame)
            broker.shutdown(socket.SHUT_WR)

    def _pass_responses(self, broker: socket.socket, client: socket.socket, waiting: list[tuple[str, bytes]]) -> None:
        with contextlib.suppress(OSError), broker, client:
            while frame := _read_frame(broker):
                source, request = waiting.pop(0)
                api_key, version = struct.unpack_from(">hh", request)
                if request[4:8] != frame[:4]:
                    raise AssertionError("a response does not belong to the request at the head of the queue")
                with self._lock:
                    self.exchanges.append(Exchange(source, api_key, version, request, frame))
                client.sendall(struct.pack(">i", len(frame)) + frame)


def _read_frame(connection: socket.socket) -> bytes:
    size = _read(connection, 4)
    return _read(connection, struct.unpack(">i", size)[0]) if size else b""


def _read(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            return b""
        parts += part
    return bytes(parts)
