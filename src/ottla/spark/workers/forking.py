"""The nursery of Spark's Python workers: `python -m ottla.spark.workers.forking PLACE`, beside a JVM that starts."""

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path

from ottla.spark.workers.nursery import keep_out_of_collections, run_at
from ottla.spark.workers.starting import python_of


def prepare() -> Callable[[], None]:
    from ottla.spark.workers.preloaded import run  # noqa: PLC0415 - when it can be connected to

    keep_out_of_collections()
    return run


if __name__ == "__main__":
    run_at(sys.argv[1], prepare)
    with contextlib.suppress(OSError):
        python_of(sys.argv[1]).unlink(missing_ok=True)
        Path(sys.argv[1]).parent.rmdir()
