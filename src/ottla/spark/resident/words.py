"""What a command and a resident driver say to each other: one line of JSON each way, then the connection stays open
for as long as the command needs its session."""

import json
import socket
import struct
from typing import Any

LINE_BYTES_MAX = 4096
_CREDENTIALS = struct.Struct("3i")


def send(connection: socket.socket, **words: Any) -> None:
    connection.sendall(json.dumps(words).encode() + b"\n")


def receive(connection: socket.socket) -> dict[str, Any] | None:
    """One line; None if the other side has gone or talks nonsense."""
    line = b""
    while not line.endswith(b"\n"):
        more = connection.recv(LINE_BYTES_MAX)
        line += more
        if not more or len(line) > LINE_BYTES_MAX:
            return None
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def user_of(connection: socket.socket) -> int | None:
    """Who is at the other end of a local socket, where the system tells; the folder's rights hold anyway."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    _, uid, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size))
    return int(uid)
