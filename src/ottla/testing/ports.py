"""Ports of 127.0.0.1 for servers that must know them before they start."""

import contextlib
import fcntl
import functools
import os
import random
import socket
import tempfile

# Below the range that the kernel takes for outgoing connections: a port chosen there may be gone a moment later.
_FIRST, _LAST = 15_000, 32_000
_CHANCE = random.SystemRandom()
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, all different, and none that this or another living process was given before."""
    found: list[int] = []
    with contextlib.ExitStack() as held:
        for port in _CHANCE.sample(range(_FIRST, _LAST), _LAST - _FIRST):
            if len(found) == count:
                break
            if not _reserve(port):
                continue
            candidate = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):  # taken
                candidate.bind(("127.0.0.1", port))
                found.append(port)
    assert len(found) == count, "there are not so many free ports"
    return found


def _reserve(port: int) -> bool:
    """For as long as this process lives: what is chosen and not opened yet, or down for a moment, looks free.

    The port is a place in a file, which is locked; the kernel lets go of it when the process ends, however it ends.
    """
    if port in _given:
        return False
    try:
        fcntl.lockf(_reservations(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except BlockingIOError:  # another process has it
        return False
    _given.add(port)
    return True


@functools.cache
def _reservations() -> int:
    path = os.path.join(tempfile.gettempdir(), f"ottla-ports-{os.getuid()}")
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)  # stays open: closing it would unlock all
