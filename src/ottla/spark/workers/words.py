"""What a process and a nursery say to each other: who it is to be, signals, and with which exit code it ended.

Imported by every process before it hands over, so it imports next to nothing.
"""

import json
import os
import socket
import sys
from typing import NamedTuple

PLACE_VARIABLE = "WORKER_NURSERY"
"""Where the nursery listens, in the environment of Spark's JVM."""
STREAMING = "pyspark.sql.streaming."
"""Where Spark's modules are that are a process of their own, for a stream."""
STANDARD_FILES = (0, 1, 2)
_HEAD_BYTES = 4
_ASKED_BYTES_MAX = 16 * 1024 * 1024


class Asked(NamedTuple):
    """A process as it was started."""

    arguments: list[str]
    directory: str
    environment: dict[str, str]
    path: list[str]
    """Where it looks for modules."""


def is_of_a_stream(arguments: list[str]) -> bool:
    """Whether it is a process that serves one stream, and no daemon that forks others."""
    return len(arguments) > 1 and arguments[1].startswith(STREAMING)


def connected(place: str) -> socket.socket | None:
    """None if nobody listens there."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(place)
    except OSError:
        connection.close()
        return None
    return connection


def ask(connection: socket.socket) -> None:
    """To be this process, with the files that it has as its standard ones."""
    directory = os.getcwd()  # noqa: PTH109 - pathlib is one more import
    text = json.dumps(Asked(sys.argv, directory, dict(os.environ), sys.path)).encode()
    socket.send_fds(connection, [len(text).to_bytes(_HEAD_BYTES)], STANDARD_FILES)
    connection.sendall(text)


def hear(connection: socket.socket) -> tuple[Asked, list[int]]:
    """What is asked, and the files. Raises OSError or ValueError for anything else."""
    head, files, _, _ = socket.recv_fds(connection, _HEAD_BYTES, len(STANDARD_FILES))
    size = int.from_bytes(head)
    if len(files) != len(STANDARD_FILES) or not 0 < size <= _ASKED_BYTES_MAX:
        raise ValueError("this is not how one asks")
    text = b""
    while len(text) < size:
        more = connection.recv(size - len(text))
        if not more:
            raise ConnectionResetError("who asked has gone")
        text += more
    return Asked(*json.loads(text)), files


def pass_on(connection: socket.socket, signal_number: int) -> None:
    connection.sendall(bytes([signal_number]))


def tell_end(connection: socket.socket, code: int) -> None:
    connection.sendall(bytes([code & 0xFF]))


def wait_for_end(connection: socket.socket) -> int:
    """The exit code; 1 if the nursery has gone."""
    told = connection.recv(1)
    return told[0] if told else 1
