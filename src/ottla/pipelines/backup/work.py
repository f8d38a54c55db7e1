"""Tasks of a backup, in this process or on Spark: each gives its result when it is done, and may be tried again.

Little data is moved sooner than Spark starts, so few small tasks run here. On Spark each task is a job of its own, as
many at once as there are cores: results come one by one, and what is done is told at once.
"""

import logging
import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from ottla.model.errors import OttlaError
from ottla.pipelines.backup.manifest import BackupProblem, DamagedBackup
from ottla.pipelines.errors import FatalFailure
from ottla.protocol.errors import CorruptBatch
from ottla.spark.worker_heap import freeze_modules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

A = TypeVar("A")
R = TypeVar("R")

logger = logging.getLogger(__name__)

THREADS_HERE = 4
ATTEMPTS = 3
_FINAL = (BackupProblem, FatalFailure, CorruptBatch)


class _Failed(NamedTuple):
    text: str
    is_final: bool
    is_damage: bool


class Tasks(Protocol):
    @property
    def threads(self) -> int:
        """So many tasks run at once."""

    def one(self, work: Callable[[A], R], task: A) -> R: ...


class Here:
    threads = THREADS_HERE

    def one(self, work: Callable[[A], R], task: A) -> R:
        found: R = _tried(lambda: _guarded(work, task))
        return found


class OnSpark:
    def __init__(self, spark: "SparkSession") -> None:
        self._context = spark.sparkContext
        self.threads = max(1, self._context.defaultParallelism)

    def one(self, work: Callable[[A], R], task: A) -> R:
        packed = pickle.dumps((work, task))
        found: R = _tried(lambda: self._context.parallelize([packed], 1).map(_unpacked).collect()[0])
        return found


Job = Callable[[threading.Event], R]
"""Hands out tasks one after the other; none any more when the event is set."""


def run_all(tasks: Tasks, work: Callable[[A], R], wanted: Sequence[A]) -> Iterator[R]:
    """Results in the order in which they come; the first failure ends it, once those under way have ended."""
    return side_by_side(tasks, [partial(_single, tasks, work, task) for task in wanted])


def _single(tasks: Tasks, work: Callable[[A], R], task: A, _: threading.Event) -> R:
    return tasks.one(work, task)


def side_by_side(tasks: Tasks, jobs: Sequence[Job[R]]) -> Iterator[R]:
    """As many jobs at once as tasks can run, and one more each, so that no core waits for the driver."""
    ending = threading.Event()
    with ThreadPoolExecutor(tasks.threads, "backup") as pool:
        waiting: set[Future[R]] = set()
        left = iter(jobs)
        try:
            while True:
                waiting |= {pool.submit(job, ending) for job in islice(left, max(0, 2 * tasks.threads - len(waiting)))}
                if not waiting:
                    return
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            ending.set()
            for future in waiting:
                future.cancel()


def _unpacked(packed: bytes) -> Any:
    freeze_modules()
    work, task = pickle.loads(packed)  # noqa: S301 - the driver packed it
    return _guarded(work, task)


def _guarded(work: Callable[[A], R], task: A) -> R | _Failed:
    """Errors go to the driver as what they say: Spark would bury them in a page of Java's stack."""
    try:
        return work(task)
    except (OttlaError, OSError) as error:
        return _Failed(str(error), isinstance(error, _FINAL), isinstance(error, DamagedBackup | CorruptBatch))


def _tried(attempt: Callable[[], Any]) -> Any:
    for number in range(1, ATTEMPTS + 1):
        found = attempt()
        if not isinstance(found, _Failed):
            return found
        if found.is_final or number == ATTEMPTS:
            raise (DamagedBackup if found.is_damage else BackupProblem)(found.text)
        logger.warning("A task failed and is tried again: %s", found.text)
    raise AssertionError("the last attempt has returned or raised")
