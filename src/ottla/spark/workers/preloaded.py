"""What every Python worker of Spark needs, imported once, before they are forked.

PySpark imports after the fork, because it does not know what it imports and threads do not survive one: each worker
spends half a second on it, and as long again on pandas. What is imported here is known. It starts no thread but that of
Arrow's allocator, which allocators stop before a fork and start again after it.

What draws a random number when it is imported has no place here: all workers would have the same.
"""

import contextlib
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy's would be threads of this process; nothing here multiplies

import numpy as np
import pyarrow  # noqa: F401
import pyspark.daemon
import pyspark.sql.worker.plan_data_source_read
import pyspark.sql.worker.write_into_data_source
import pyspark.worker

import ottla.spark.reading.kept_table
import ottla.spark.reading.reader
import ottla.spark.source
import ottla.spark.writing.batch_tasks  # noqa: F401

with contextlib.suppress(ImportError):  # Arrow imports it, if it is there, as soon as it makes an array
    import pandas  # noqa: F401

os.register_at_fork(after_in_child=np.random.seed)


def run_daemon() -> None:
    """PySpark's own, from here on: `sys.argv` says which workers it forks. Does not return."""
    pyspark.daemon.manager()
