"""The cleaning process: takes jobs on its standard input and reports on its standard output (see `jobs`).

It is a process of its own so that the broker's event loop shares neither its interpreter nor its memory with it. It
ends with the broker, however that ends: nobody may write into a directory that another broker has taken over.
"""

import ctypes
import os
import signal
import sys
import time
from typing import BinaryIO

from ottla.broker.storage.compaction.cleaning import Cleaning
from ottla.broker.storage.compaction.jobs import (
    LENGTH,
    CleanJob,
    Failed,
    GoOn,
    Report,
    Request,
    Swap,
    frame,
    request_decoder,
)
from ottla.broker.storage.compaction.throttle import Throttle
from ottla.protocol.errors import CorruptBatch

_PR_SET_PDEATHSIG = 1
# Where cores are scarce the broker goes first.
_NICENESS = 10


def main() -> int:
    if not _end_with(int(sys.argv[1])):
        return 1
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the broker, which then ends this process
    os.nice(_NICENESS)
    incoming, outgoing = sys.stdin.buffer, sys.stdout.buffer
    while (request := _receive(incoming)) is not None:
        if isinstance(request, CleanJob):
            _send(outgoing, _run(request, incoming, outgoing))
    return 0


def _end_with(parent: int) -> bool:
    """Have the kernel kill this process when the broker dies; False if it has died already."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    return os.getppid() == parent


def _run(job: CleanJob, incoming: BinaryIO, outgoing: BinaryIO) -> Report:
    def swap(report: Swap) -> None:
        _send(outgoing, report)
        if not isinstance(_receive(incoming), GoOn):
            sys.exit(0)

    try:
        return Cleaning(job, Throttle(job.bytes_per_second, time.monotonic, time.sleep)).run(swap)
    except FileNotFoundError as error:
        return Failed("gone", str(error))
    except OSError as error:
        return Failed("disk", str(error), error.errno or 0)
    except (CorruptBatch, OverflowError) as error:
        return Failed("damaged", str(error))


def _receive(incoming: BinaryIO) -> Request | None:
    head = incoming.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    return request_decoder.decode(incoming.read(length))


def _send(outgoing: BinaryIO, report: Report) -> None:
    outgoing.write(frame(report))
    outgoing.flush()


if __name__ == "__main__":
    sys.exit(main())
