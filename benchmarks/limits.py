"""What the machine itself can do: loopback socket to file, and file to socket by sendfile."""

import os
import socket
import threading
import time
from pathlib import Path

BLOCK = 1 << 20


def _pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        sender = socket.create_connection(server.getsockname())
        receiver, _ = server.accept()
    return sender, receiver


def _drain(receiver: socket.socket) -> None:
    buffer = bytearray(BLOCK)
    while receiver.recv_into(buffer):
        pass


def socket_to_file(path: Path, total_bytes: int) -> float:
    """MB/s from a loopback connection into a file, the least that any broker has to do with produced bytes."""
    sender, receiver = _pair()
    block = os.urandom(BLOCK)

    def feed() -> None:
        with sender:
            for _ in range(total_bytes // BLOCK):
                sender.sendall(block)

    feeder = threading.Thread(target=feed)
    buffer = memoryview(bytearray(BLOCK))
    started = time.perf_counter()
    feeder.start()
    with receiver, path.open("wb", buffering=0) as out:
        while got := receiver.recv_into(buffer):
            out.write(buffer[:got])
    seconds = time.perf_counter() - started
    feeder.join()
    return total_bytes / seconds / 1e6


def file_to_socket(path: Path) -> float:
    """MB/s from a file in the page cache to a loopback connection by sendfile."""
    sender, receiver = _pair()
    reader = threading.Thread(target=_drain, args=(receiver,))
    total = path.stat().st_size
    started = time.perf_counter()
    reader.start()
    with sender, path.open("rb") as source:
        sent = 0
        while sent < total:
            sent += os.sendfile(sender.fileno(), source.fileno(), sent, BLOCK)
    reader.join()
    seconds = time.perf_counter() - started
    receiver.close()
    return total / seconds / 1e6
