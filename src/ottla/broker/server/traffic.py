"""How many connections there are and were, and how many bytes went through them, by listener.

Open connections keep their own figures; here is only what is left of those that are closed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from ottla.broker.session import Session
from ottla.telemetry import catalogue
from ottla.telemetry.registry import Telemetry

Readings = Iterator[tuple[tuple[str], int]]


class Counted(Protocol):
    """What is asked of a connection."""

    session: Session
    received_bytes: int

    @property
    def sent_bytes(self) -> int: ...


class Traffic:
    def __init__(self, connections: Callable[[], Iterable[Counted]]) -> None:
        self._open = connections
        self._created: Counter[str] = Counter()
        self._received: Counter[str] = Counter()
        self._sent: Counter[str] = Counter()

    def opened(self, session: Session) -> None:
        self._created[session.listener] += 1

    def closed(self, connection: Counted) -> None:
        listener = connection.session.listener
        self._received[listener] += connection.received_bytes
        self._sent[listener] += connection.sent_bytes

    def show(self, telemetry: Telemetry) -> None:
        telemetry.observe(catalogue.CONNECTIONS, lambda: self._read(self._open_now()))
        telemetry.observe(catalogue.CONNECTIONS_CREATED, lambda: self._read(self._created))
        telemetry.observe(catalogue.CONNECTIONS_CLOSED, self._read_closed)
        telemetry.observe(
            catalogue.BYTES_IN, lambda: self._read(self._with_open(self._received, lambda each: each.received_bytes))
        )
        telemetry.observe(
            catalogue.BYTES_OUT, lambda: self._read(self._with_open(self._sent, lambda each: each.sent_bytes))
        )

    def _open_now(self) -> Counter[str]:
        return Counter(connection.session.listener for connection in self._open())

    def _with_open(self, closed: Counter[str], figure: Callable[[Counted], int]) -> Counter[str]:
        total = Counter(closed)
        for connection in self._open():
            total[connection.session.listener] += figure(connection)
        return total

    def _read(self, by_listener: Mapping[str, int]) -> Readings:
        for listener in self._created:
            yield (listener,), by_listener.get(listener, 0)

    def _read_closed(self) -> Readings:
        now = self._open_now()
        for listener, created in self._created.items():
            yield (listener,), created - now[listener]
