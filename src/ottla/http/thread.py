"""An HTTP listener in a thread of its own, with a loop of its own: for programs that have none."""

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.http.address import HttpAddress
from ottla.http.limits import HttpLimits
from ottla.http.listening import address_of, listen

if TYPE_CHECKING:
    from ottla.http.application import Login, Served

JOIN_SECONDS_MAX = 5.0
"""Beyond the requests' own time. Who still answers in it then is left behind: the thread is a daemon."""


class HttpThread:
    """Clients can connect when `start` returns; they are answered once the thread has imported what it serves with.

    So a program that has something else to do meanwhile does not wait for those imports: `make` runs in the thread.
    """

    def __init__(
        self,
        make: "Callable[[], Served]",
        address: HttpAddress,
        *,
        limits: HttpLimits | None = None,
        tls: ssl.SSLContext | None = None,
        login: "Login | None" = None,
    ) -> None:
        self._make = make
        self._asked = address
        self._limits = limits or HttpLimits()
        self._tls = tls
        self._login = login
        self._address: HttpAddress | None = None
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._wake: Callable[[], object] = self._stop.set

    @property
    def url(self) -> str:
        assert self._address is not None, "start first"
        return f"{'http' if self._tls is None else 'https'}://{self._address}"

    def start(self) -> None:
        """BadListener if the address cannot be listened on."""
        self._listening = listen(self._asked, backlog=self._limits.connections_max)
        self._address = address_of(self._listening)
        self._thread = threading.Thread(target=self._run, name=f"http-{self._address.port}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends within `stop_seconds_max` of the limits, and little more."""
        if self._thread is not None:
            self._stop.set()
            with contextlib.suppress(RuntimeError):  # its loop has ended, for a reason that the thread has told
                self._wake()
            self._thread.join(self._limits.stop_seconds_max + JOIN_SECONDS_MAX)
            self._thread = None

    def _run(self) -> None:
        with self._listening:
            asyncio.run(self._serve())

    async def _serve(self) -> None:
        from ottla.http.server import HttpServer  # noqa: PLC0415 - its imports are this thread's to wait for

        server = HttpServer(self._make(), self._listening, limits=self._limits, tls=self._tls, login=self._login)
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        self._wake = lambda: loop.call_soon_threadsafe(stopped.set)
        await server.start()
        if not self._stop.is_set():  # else it was asked before there was anybody to wake
            await stopped.wait()
        await server.stop()
