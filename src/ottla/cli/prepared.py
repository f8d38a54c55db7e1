"""The process that `ottla pipeline serve` keeps beside Spark's JVM: commands that are handed over are forks of it.

`python -m ottla.cli.prepared PLACE`
"""

import importlib
import signal
import sys
from collections.abc import Callable

from ottla.cli.main import run_here
from ottla.spark.workers.nursery import keep_out_of_collections, run_at

NEEDED = (
    "ottla.cli.pipeline.sql",
    "ottla.cli.pipeline.sql_output",
    "ottla.cli.pipeline.sql_running",
    "ottla.cli.pipeline.test",
    "ottla.pipelines.runner.cases",
    "ottla.spark.resident.caller",
)


def prepare() -> Callable[[], None]:
    for name in NEEDED:
        importlib.import_module(name)
    keep_out_of_collections()
    return _run_command


def _run_command() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # who serves in the background may have it ignored
    sys.exit(run_here(sys.argv[1:]))


if __name__ == "__main__":
    run_at(sys.argv[1], prepare)
