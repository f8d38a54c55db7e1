"""Bytes to lines. A line ends with \\n, \\r\\n or \\r; a \\r at the very end waits for the byte behind it."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_ENDS = (b"\n", b"\r")


class Lines(NamedTuple):
    content: list[bytes]
    """Without their ends."""
    starts: npt.NDArray[np.int64]
    """Where each begins, in bytes from the start of what was cut."""
    used: int
    """So many bytes were cut; the rest is the beginning of a line."""


def cut(block: bytes, *, final: bool) -> Lines:
    """The complete lines of a block; with `final` the block's end also ends a line."""
    end = len(block) if final else complete_until(block)
    used = block[:end]
    lengths = np.fromiter(map(len, used.splitlines(keepends=True)), dtype=np.int64)
    starts = np.zeros(len(lengths), dtype=np.int64)
    np.cumsum(lengths[:-1], out=starts[1:])
    return Lines(used.splitlines(), starts, end)


def complete_until(block: bytes) -> int:
    """The end of the last complete line in a block, 0 if there is none."""
    searched = block[:-1] if block.endswith(b"\r") else block
    return 1 + max(searched.rfind(end) for end in _ENDS)


def cut_stream(blocks: Iterable[bytes], start: int = 0) -> Iterator[tuple[list[bytes], npt.NDArray[np.int64]]]:
    """All lines of a stream of blocks, the last one too if nothing ends it, each with its position."""
    rest, position = b"", start
    for block in blocks:
        lines = cut(rest + block, final=False)
        if lines.content:
            yield lines.content, lines.starts + position
        rest = (rest + block)[lines.used :]
        position += lines.used
    last = cut(rest, final=True)
    if last.content:
        yield last.content, last.starts + position
