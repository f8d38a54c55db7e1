"""Standard input for a tool that has something else to do while nobody types: the client's callbacks, and signals."""

import io
import os
import select
import sys
from collections.abc import Callable, Iterator
from typing import IO

from ottla.cli.data.kafka_clients import POLL_S

BUFFER_BYTES = 64 * 1024


class PolledInput(io.RawIOBase):
    """A descriptor to read from that calls `idle` while there is nothing, and ends when `is_stopped` says so."""

    def __init__(self, descriptor: int, idle: Callable[[], object], is_stopped: Callable[[], object]) -> None:
        self._descriptor = descriptor
        self._idle = idle
        self._is_stopped = is_stopped

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]
        while not self._is_stopped():
            if select.select([self._descriptor], [], [], POLL_S)[0]:
                data = os.read(self._descriptor, len(buffer))
                buffer[: len(data)] = data
                return len(data)
            self._idle()
        return 0


def polled(source: IO[bytes], idle: Callable[[], object], is_stopped: Callable[[], object]) -> IO[bytes]:
    """`source` as a stream that can be waited for; what has no descriptor never has to be."""
    try:
        descriptor = source.fileno()
    except OSError:
        return source
    return io.BufferedReader(PolledInput(descriptor, idle, is_stopped), BUFFER_BYTES)


def lines(source: IO[bytes], is_stopped: Callable[[], object], *, prompt: bool) -> Iterator[str]:
    """Lines without their ends. Bytes that are no UTF-8 survive as they are."""
    while True:
        if prompt:
            print(">", end="", flush=True)
        line = source.readline()
        if not line or (is_stopped() and not line.endswith(b"\n")):
            return  # the rest of a line that a signal cut off was not meant to be a record
        yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "surrogateescape")


def is_typed(source: IO[bytes]) -> bool:
    """A person is at both ends: prompt, and wait for as long as it takes."""
    return source.isatty() and sys.stdout.isatty()
