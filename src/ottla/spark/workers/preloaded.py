"""What every Python worker of Spark needs, imported once, before they are forked.

PySpark imports after the fork, because it does not know what it imports and threads do not survive one: each worker
spends half a second on it, and as long again on pandas. What is imported here is known. It starts no thread but that of
Arrow's allocator, which allocators stop before a fork and start again after it.

What draws a random number when it is imported has no place here: all workers would have the same.
"""

import contextlib
import os
import runpy
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy's would be threads of this process; nothing here multiplies

import numpy as np
import pyarrow  # noqa: F401
import pyspark.daemon
import pyspark.sql.streaming.python_streaming_source_runner
import pyspark.sql.worker.commit_data_source_write
import pyspark.sql.worker.create_data_source
import pyspark.sql.worker.data_source_pushdown_filters
import pyspark.sql.worker.lookup_data_sources
import pyspark.sql.worker.plan_data_source_read
import pyspark.sql.worker.python_streaming_sink_runner
import pyspark.sql.worker.write_into_data_source
import pyspark.worker

import ottla.spark.reading.kept_table
import ottla.spark.reading.reader
import ottla.spark.source
import ottla.spark.writing.batch_tasks  # noqa: F401
import pyspark_ottla  # noqa: F401
from ottla.spark.workers.words import is_of_a_stream

with contextlib.suppress(ImportError):  # Arrow imports it, if it is there, as soon as it makes an array
    import pandas  # noqa: F401

os.register_at_fork(after_in_child=np.random.seed)


def run() -> None:
    """The process that `sys.argv` names, from here on: one for a stream, or PySpark's own daemon, which does not return
    and forks the workers that are named."""
    if is_of_a_stream(sys.argv):
        sys.modules.pop(sys.argv[1], None)  # runpy warns, for all to read, of one that it runs and that is imported
        runpy.run_module(sys.argv[1], run_name="__main__", alter_sys=True)
    else:
        pyspark.daemon.manager()
