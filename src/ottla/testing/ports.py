"""Ports of 127.0.0.1 for servers that must know them before they start."""

import contextlib
import random
import socket

# Below the range that the kernel takes for outgoing connections: a port chosen there may be gone a moment later.
_FIRST, _LAST = 15_000, 32_000


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, all different."""
    found: list[int] = []
    with contextlib.ExitStack() as held:
        while len(found) < count:
            candidate = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            port = random.randrange(_FIRST, _LAST)  # noqa: S311 - to stay out of the way of other runs, not a secret
            try:
                candidate.bind(("127.0.0.1", port))
            except OSError:
                continue  # taken
            found.append(port)
    return found
