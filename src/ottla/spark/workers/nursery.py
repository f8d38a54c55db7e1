"""A process that has imported what others would have to import, and becomes any of them, by fork.

Who wants to be another process hands over its arguments, environment and standard files and waits. The fork ends when
it goes, and gets the signals that it passes on; it is told the exit code. A nursery begins to listen before it imports,
so that whoever starts it can go on. It ends when its standard input does.
"""

import contextlib
import gc
import os
import selectors
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from ottla.spark.workers.words import Asked, hear, tell_end

HELLO_SECONDS_MAX = 10.0
_SIGNALS_MAX = 16


@dataclass
class Nursery:
    listener: socket.socket
    become: Callable[[], None]
    """What a fork does when it is who it is to be."""
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    forks: dict[int, tuple[int, socket.socket]] = field(default_factory=dict)
    """By the file that tells of their end: their process ids, and who waits for it."""

    def run(self) -> None:
        """Until standard input ends."""
        self.selector.register(0, selectors.EVENT_READ)
        self.selector.register(self.listener, selectors.EVENT_READ, self._admit)
        while True:
            for key, _ in self.selector.select():
                if key.fd == 0:
                    if not os.read(0, 1):
                        return
                elif self.selector.get_map().get(key.fd) is key:  # else what came before it in this turn was its end
                    key.data()

    def _admit(self) -> None:
        connection = self.listener.accept()[0]
        connection.settimeout(HELLO_SECONDS_MAX)
        try:
            asked, files = hear(connection)
        except (OSError, ValueError):
            connection.close()
            return
        connection.settimeout(None)
        pid = os.fork()
        if pid == 0:
            self._be(asked, files)
        for file in files:
            os.close(file)
        ended = os.pidfd_open(pid)
        self.forks[ended] = pid, connection
        self.selector.register(ended, selectors.EVENT_READ, lambda: self._has_ended(ended))
        self.selector.register(connection, selectors.EVENT_READ, lambda: self._hear(ended))

    def _be(self, asked: Asked, files: list[int]) -> NoReturn:
        """In the fork: become the process that asked, as far as it can be told."""
        code = 1
        try:
            self.selector.close()
            self.listener.close()
            for ended, (_, connection) in self.forks.items():
                os.close(ended)
                connection.close()
            for number, file in enumerate(files):
                os.dup2(file, number)
                os.close(file)
            os.environ.clear()
            os.environ.update(asked.environment)
            sys.argv[:], sys.path[:] = asked.arguments, asked.path
            os.chdir(asked.directory)
            self.become()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException as error:  # noqa: BLE001 - nothing of this may go on as the nursery
            print(f"This fork of a nursery failed: {error!r}", file=sys.stderr)
        finally:
            os._exit(code)

    def _hear(self, ended: int) -> None:
        """Numbers of signals; or that who waits has gone."""
        pid, connection = self.forks[ended]
        try:
            told = connection.recv(_SIGNALS_MAX)
        except OSError:
            told = b""
        for number in told or [signal.SIGTERM]:
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        if not told:
            self.selector.unregister(connection)
            connection.close()

    def _has_ended(self, ended: int) -> None:
        pid, connection = self.forks.pop(ended)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self.selector.unregister(ended)
        os.close(ended)
        if connection.fileno() >= 0:
            with contextlib.suppress(OSError):
                tell_end(connection, code if code >= 0 else 1)
            self.selector.unregister(connection)
            connection.close()


def keep_out_of_collections() -> None:
    """A fork's collector need not look at what all of them share, nor copy it by doing so."""
    gc.collect()
    gc.freeze()


def run_at(place: str, prepare: Callable[[], Callable[[], None]]) -> None:
    """Listen there, import what `prepare` imports, and be what it returns for everyone who asks."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        path = Path(place)
        path.unlink(missing_ok=True)
        listener.bind(place)
        listener.listen(64)
        try:
            Nursery(listener, prepare()).run()
        finally:
            path.unlink(missing_ok=True)
