"""Many bad connections side by side. Each is heard to its end: who hangs up first is not listened to by the broker."""

import contextlib
import socket
from collections.abc import Iterator, Sequence

AT_ONCE = 64
"""A refused login is answered late on purpose: one after the other they would take hours."""
ANSWER_BYTES_MAX = 1 << 20


def answers(
    address: tuple[str, int], messages: Sequence[bytes], seconds: float, enough: bytes | None = None
) -> Iterator[bytes]:
    """What comes back until the broker closes, or has said `enough`; each message has a connection of its own."""
    for start in range(0, len(messages), AT_ONCE):
        with contextlib.ExitStack() as stack:
            peers = []
            for message in messages[start : start + AT_ONCE]:
                peer = stack.enter_context(socket.create_connection(address, seconds))
                with contextlib.suppress(ConnectionError):  # it may have had enough before the last byte
                    peer.sendall(message)
                peers.append(peer)
            for peer in peers:
                yield _until_closed(peer, enough)


def _until_closed(peer: socket.socket, enough: bytes | None) -> bytes:
    said = bytearray()
    with contextlib.suppress(ConnectionError):
        while (data := peer.recv(65_536)) and len(said) < ANSWER_BYTES_MAX:
            said += data
            if enough is not None and enough in said:
                break
    return bytes(said)
