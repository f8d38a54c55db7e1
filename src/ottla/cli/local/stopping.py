"""What `kafka-server-stop` and `zookeeper-server-stop` share."""

import os
import signal

from ottla.cli.common.output import CommandError, note
from ottla.cli.local import processes

SIGNAL_VARIABLE = "SIGNAL"
"""As Kafka's scripts have it: which signal to send, TERM unless it is set."""


def stop_all(found: list[processes.Running], *, nothing: str, what: str) -> int:
    if not found:
        print(nothing)
        return 1
    word = os.environ.get(SIGNAL_VARIABLE, "TERM").upper().removeprefix("SIG")
    try:
        number = signal.Signals[f"SIG{word}"]
    except KeyError:
        raise CommandError(f"${SIGNAL_VARIABLE} is {word}, which is no signal; TERM is the usual one") from None
    for process in found:
        own = "" if process.node_id is None else f" {process.node_id}"
        note(f"stopping {what}{own}, process {process.pid}")
    left = processes.stop(found, number)
    for process in left:
        note(f"process {process.pid} is still stopping after {processes.STOP_SECONDS_MAX:g} s")
    return 0
