"""Inside the process of a test's broker: end when the process that started it has ended.

The parent holds the other end of standard input and never writes to it. However the parent ends, the kernel closes
that pipe, and reading it returns. A death signal asked of the kernel would follow the thread that started us instead,
and test runners start brokers from threads that end before the broker should.
"""

import os
import signal
import threading

GRACEFUL_STOP_SECONDS = 15.0


def end_with_parent() -> None:
    threading.Thread(target=_watch, name="end with parent", daemon=True).start()


def _watch() -> None:
    """Wait for the end of standard input, then stop as if asked to; at once if that takes too long."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(GRACEFUL_STOP_SECONDS)
    os._exit(1)
