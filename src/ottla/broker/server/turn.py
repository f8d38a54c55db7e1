"""When responses leave."""

import asyncio
from collections.abc import Callable
from typing import Protocol

NO_TURN = -1


class Sender(Protocol):
    def flush(self) -> None: ...


class FlushTurn:
    """Sends what the connections have to say at the end of a loop step, all of them one after the other.

    Done one by one, each send would wake a client that has gone to sleep since the last one; done together, the
    second finds it awake. With many connections that halves the cost of a small response.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[Sender] = []
        self.now_ns = NO_TURN
        """When the last of them was done, while others are being sent; 0 when nobody has asked for the time yet."""

    def add(self, connection: Sender) -> None:
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(connection)

    def time_of_sending(self, now_ns: Callable[[], int]) -> int:
        return self.now_ns if self.now_ns > 0 else now_ns()

    def sent(self, now_ns: Callable[[], int]) -> int:
        """The end of one connection's sending is the beginning of the next one's: one look at the clock for both."""
        now = now_ns()
        if self.now_ns != NO_TURN:
            self.now_ns = now
        return now

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        self.now_ns = 0
        for connection in waiting:
            connection.flush()
        self.now_ns = NO_TURN
