"""What the daemon of Spark's Python workers imports must survive a fork, and be all that a worker needs."""

import subprocess
import sys

_THREADS = """
import os
import ottla.spark.workers.preloaded
print(*sorted(open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")))
"""
_FORKED = """
import os, sys
import ottla.spark.workers.preloaded
before = set(sys.modules)
if os.fork() == 0:
    import pyarrow.compute
    from ottla.spark.reading.reader import BatchReader
    from ottla.spark.writing.batch_tasks import WriteEncodedTask
    from pyspark.worker import main
    import pyspark.sql.streaming.python_streaming_source_runner, pyspark_ottla
    import pyspark.sql.worker.create_data_source, pyspark.sql.worker.lookup_data_sources
    assert pyarrow.compute.sum(pyarrow.array([1, 2, 3])).as_py() == 6
    print(*[name for name in set(sys.modules) - before if not name.startswith("pyarrow")], flush=True)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


_OF_A_STREAM = """
import sys
import ottla.spark.workers.preloaded
sys.argv[1:] = ["pyspark.sql.streaming.python_streaming_source_runner"]
try:
    ottla.spark.workers.preloaded.run()
except (KeyError, OSError) as error:
    print("it asks for Spark")
"""


def said_by(program: str) -> list[str]:
    # From 3.12 on Python counts threads before a fork, and the allocator's among them, which does survive one.
    command = [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_it_starts_no_thread_but_the_allocators() -> None:
    assert set(said_by(_THREADS)) <= {"python", "python3", "jemalloc_bg_thd"}


def test_a_process_of_a_stream_is_run_as_spark_runs_it_and_says_nothing() -> None:
    assert said_by(_OF_A_STREAM) == ["it", "asks", "for", "Spark"]


def test_a_worker_has_nothing_left_to_import() -> None:
    assert said_by(_FORKED) == []
