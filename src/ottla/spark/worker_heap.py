"""The heap of Spark's Python workers."""

import gc
import os
import sys

_frozen_in: tuple[int, int] | None = None
"""In which process, with how many modules: workers are forked, and import more when they do another kind of task."""


def freeze_modules() -> None:
    """Take what is loaded by now out of the reach of the collector, once for each set of modules.

    Spark collects all garbage after every task: with the modules of a worker that takes tens of milliseconds, of which
    nothing comes, and it is most of what a small micro-batch costs in Python.
    """
    global _frozen_in
    here = os.getpid(), len(sys.modules)
    if _frozen_in != here:
        _frozen_in = here
        gc.collect()
        gc.freeze()
