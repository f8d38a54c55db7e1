"""The heap of Spark's Python workers."""

import gc
import os

_settled_in: int | None = None
"""The process that has done it: workers are forked, and what their parent knew is not theirs."""


def settle() -> None:
    """Take what is loaded by now out of the reach of the collector, once in a process.

    Spark collects all garbage after every task: with the modules of a worker that takes tens of milliseconds, of which
    nothing comes, and it is most of what a small micro-batch costs in Python.
    """
    global _settled_in
    if _settled_in != os.getpid():
        _settled_in = os.getpid()
        gc.collect()
        gc.freeze()
