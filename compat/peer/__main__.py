"""Fetch Apache Kafka and run it in the foreground: python -m compat.peer DIRECTORY."""

import signal
import sys
import threading
from pathlib import Path

from compat.peer.kafka import running


def main() -> None:
    """Run a node until a signal asks to stop."""
    asked_to_stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: asked_to_stop.set())
    with running(Path(sys.argv[1])) as node:
        sys.stdout.write(f"Apache Kafka listens on {node.bootstrap}\n")
        sys.stdout.flush()
        asked_to_stop.wait()


if __name__ == "__main__":
    main()
