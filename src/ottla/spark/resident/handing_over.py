"""A command in a fork of a process that has imported all it needs, which `ottla pipeline serve` keeps beside the JVM.

The fork is the command: with its arguments, directory, environment and standard files. What is left here passes on
Ctrl-C and waits for the exit code. Imports next to nothing: that is what it is for.
"""

import contextlib
import os
import signal
from types import FrameType

from ottla.spark.resident.place import SWITCH, command_socket_of, folder_of, this_key
from ottla.spark.workers.words import ask, connected, pass_on, wait_for_end


def hand_over() -> int | None:
    """Run this process's command there. The exit code; None if there is nobody to hand it to."""
    folder = None if os.environ.get(SWITCH) == "off" else folder_of(os.environ)
    if folder is None or not any(folder.glob(command_socket_of(folder, "*").name)):
        return None
    connection = connected(str(command_socket_of(folder, this_key())))
    if connection is None:
        return None

    def interrupted(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(OSError):  # it has ended by itself
            pass_on(connection, number)

    with connection:
        # An interrupt that comes while it is told who this is waits until it can be passed on.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        ask(connection)
        signal.signal(signal.SIGINT, interrupted)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        return wait_for_end(connection)
