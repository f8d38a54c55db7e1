"""PySpark's daemon, which forks Spark's Python workers, with everything imported that every one of them needs.

PySpark imports after the fork, because it does not know what it imports and threads do not survive one: each worker
spends half a second on it. What is imported here is known. It starts no thread but that of Arrow's allocator, which
allocators stop before a fork and start again after it.

Used where it is asked for: `spark.python.daemon.module=ottla.spark.worker_daemon`. Not by default, because with it
`test_a_job_that_fails_leaves_nothing_visible_and_nothing_open` finds a transaction open, and why is not known yet.
"""

import contextlib
import gc
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy's would be threads of the daemon; nothing here multiplies

import pyarrow  # noqa: F401
import pyspark.sql.worker.plan_data_source_read
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import ottla.spark.reading.kept_table
import ottla.spark.reading.reader
import ottla.spark.source
import ottla.spark.writing.batch_tasks  # noqa: F401

with contextlib.suppress(ImportError):  # Arrow imports it, if it is there, as soon as it makes an array
    import pandas  # noqa: F401

if __name__ == "__main__":
    gc.collect()
    gc.freeze()  # a worker's collector need not look at what all of them share, nor copy it by doing so
    manager()
