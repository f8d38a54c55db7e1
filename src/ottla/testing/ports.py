"""Ports of 127.0.0.1 for servers that must know them before they start."""

import contextlib
import os
import random
import socket

# Below the range that the kernel takes for outgoing connections: a port chosen there may be gone a moment later.
_FIRST, _LAST = 15_000, 32_000
_SLOT = 500
"""A process looks in a part of its own first: what another has chosen and not opened yet looks free."""
_CHANCE = random.SystemRandom()
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, all different, and none that this process was given before."""
    found: list[int] = []
    with contextlib.ExitStack() as held:
        for port in _candidates():
            if len(found) == count:
                break
            candidate = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):  # taken
                candidate.bind(("127.0.0.1", port))
                found.append(port)
    assert len(found) == count, "there are not so many free ports"
    _given.update(found)
    return found


def _candidates() -> list[int]:
    """In the order in which they are tried. One given before may belong to a server that is down for a moment."""
    slot = os.getpid() % ((_LAST - _FIRST) // _SLOT)
    own = set(range(_FIRST + slot * _SLOT, _FIRST + (slot + 1) * _SLOT)) - _given
    others = set(range(_FIRST, _LAST)) - own - _given
    return _CHANCE.sample(sorted(own), len(own)) + _CHANCE.sample(sorted(others), len(others))
