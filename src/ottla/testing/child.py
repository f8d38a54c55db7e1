"""Processes that end when the process that started them has ended, however it did.

The parent holds the other end of standard input and never writes to it. However the parent ends, the kernel closes
that pipe, and reading it returns. A death signal asked of the kernel would follow the thread that started us instead,
and test runners start brokers from threads that end before the broker should.
"""

import os
import signal
import subprocess
import threading

GRACEFUL_STOP_SECONDS = 15.0

_GUARD = 'cat > /dev/null; kill -9 "$1" 2> /dev/null'


def end_with_parent() -> None:
    """Called in the child: a broker watches for itself."""
    threading.Thread(target=_watch, name="end with parent", daemon=True).start()


def guard(pid: int) -> "subprocess.Popen[bytes]":
    """Called in the parent, for a child that is not ours to program: a shell that kills it when we are gone.

    Whoever reaps the child kills the guard first: the child's number may be given to another process then.
    """
    return subprocess.Popen(["/bin/sh", "-c", _GUARD, "guard", str(pid)], stdin=subprocess.PIPE, start_new_session=True)


def _watch() -> None:
    """Wait for the end of standard input, then stop as if asked to; at once if that takes too long."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(GRACEFUL_STOP_SECONDS)
    os._exit(1)
