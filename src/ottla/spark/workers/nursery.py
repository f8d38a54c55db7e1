"""A process that has imported what Python workers need, and becomes a daemon of them, by fork, for everyone who asks.

It begins to listen before it imports, so that a driver can start it beside Spark's JVM and go on. It ends when its
standard input does, which is when the driver ends, however it does. A daemon whose process (as Spark knows it) has gone
is ended; one that ends by itself is told to that process.
"""

import contextlib
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


@dataclass
class Nursery:
    listener: socket.socket
    become: Callable[[], None]
    """What a fork does when it is who it is to be."""
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    daemons: dict[int, tuple[int, socket.socket]] = field(default_factory=dict)
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
                elif key.fileobj in self.selector.get_map():  # else the turn before was its end
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
        self.daemons[ended] = pid, connection
        self.selector.register(ended, selectors.EVENT_READ, lambda: self._has_ended(ended))
        self.selector.register(connection, selectors.EVENT_READ, lambda: self._end(ended))

    def _be(self, asked: Asked, files: list[int]) -> NoReturn:
        """In the fork: become the process that asked, as far as it can be told."""
        code = 1
        try:
            self.selector.close()
            self.listener.close()
            for ended, (_, connection) in self.daemons.items():
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
            print(f"The daemon of Python workers failed: {error!r}", file=sys.stderr)
        finally:
            os._exit(code)

    def _end(self, ended: int) -> None:
        """Spark has ended the process that it takes for the daemon."""
        pid, connection = self.daemons[ended]
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        self.selector.unregister(connection)
        connection.close()

    def _has_ended(self, ended: int) -> None:
        pid, connection = self.daemons.pop(ended)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self.selector.unregister(ended)
        os.close(ended)
        if connection.fileno() >= 0:
            with contextlib.suppress(OSError):
                tell_end(connection, code if code >= 0 else 1)
            self.selector.unregister(connection)
            connection.close()


def main(place: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(place)
        listener.listen(64)
        try:
            from ottla.spark.workers.imported import run_daemon, settle  # noqa: PLC0415 - while others connect

            settle()
            Nursery(listener, run_daemon).run()
        finally:
            path = Path(place)
            path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                path.parent.rmdir()


if __name__ == "__main__":
    main(sys.argv[1])
