"""Many pipelines in one driver: starts their queries, starts failed ones again, and stops them when told to.

One thread, the one that calls `run`, decides everything; others only set the flag that asks it to stop.
"""

import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ottla.client.errors import ClientError, Unreachable
from ottla.model.errors import OttlaError
from ottla.pipelines.errors import FatalFailure, PipelineError
from ottla.pipelines.plan import QueryPlan
from ottla.pipelines.runner.batches import Counters
from ottla.pipelines.runner.deployment import Deployment
from ottla.pipelines.runner.failures import Failure, behind_the_first_words, judge, pause_before_restart
from ottla.pipelines.runner.progress import LagMeter, ProgressBook, QueryProgress
from ottla.pipelines.runner.queries import StartedQuery, start_query
from ottla.pipelines.runner.topics import prepare_topics

LOOK_SECONDS = 0.1
PROGRESS_SECONDS = 0.5
STOP_SECONDS_MAX = 60.0
DETAILS_FILE = "last_error.txt"
CAUSES_MAX = 10
NO_BROKER = "; start a broker with `ottla up`, or name another with --bootstrap-server"


class State(Enum):
    STARTING = "starting"
    RUNNING = "running"
    WAITING = "waiting"
    """For its next start, after a failure."""
    DONE = "done"
    """It has read all there was (`--once`)."""
    STOPPED = "stopped"
    FAILED = "failed"


ENDED = (State.DONE, State.STOPPED, State.FAILED)


@dataclass
class SupervisedQuery:
    plan: QueryPlan
    name: str
    """As Spark calls it."""
    state: State = State.STARTING
    started: StartedQuery | None = None
    restarts: int = 0
    failures_in_a_row: int = 0
    busy_in_a_row: int = 0
    """Failures to start because the machine had too much to do; they are counted by themselves."""
    last_error: str | None = None
    start_at: float = 0.0
    look_at: float = 0.0
    reports: int = 0
    """Of how many batches Spark's own report has been taken in, since the query was started."""
    batches_before: int = 0
    rows_before: dict[str, int] = field(default_factory=dict)
    dead_letters_before: int = 0
    unread_before: dict[str, int] = field(default_factory=dict)

    @property
    def batches(self) -> int:
        return self.batches_before + (self.started.work.counters.batches if self.started else 0)

    @property
    def dead_letters(self) -> int:
        return self.dead_letters_before + (self.started.work.counters.dead_letters if self.started else 0)

    @property
    def unread_in_tables(self) -> dict[str, int]:
        return dict(self.started.work.counters.unread_in_tables if self.started else self.unread_before)

    @property
    def rows(self) -> dict[str, int]:
        rows = dict(self.rows_before)
        for name, count in (self.started.work.counters.rows if self.started else {}).items():
            rows[name] = rows.get(name, 0) + count
        return rows

    def close_books(self) -> None:
        """Keep what was counted when a started query goes."""
        self.batches_before, self.dead_letters_before, self.rows_before = self.batches, self.dead_letters, self.rows
        self.unread_before = self.unread_in_tables
        self.started = None


@dataclass
class SupervisedPipeline:
    deployment: Deployment
    queries: list[SupervisedQuery]
    lag_meters: dict[str | None, LagMeter]
    """By the cluster that is read."""
    stop_asked: threading.Event = field(default_factory=threading.Event)
    prepared: bool = False

    @property
    def name(self) -> str:
        return self.deployment.plan.name

    @property
    def state(self) -> State:
        states = {query.state for query in self.queries}
        for state in (State.FAILED, State.WAITING, State.STARTING, State.RUNNING, State.STOPPED):
            if state in states:
                return state
        return State.DONE

    @property
    def ended(self) -> bool:
        return all(query.state in ENDED for query in self.queries)


@dataclass(frozen=True)
class Event:
    """Something worth telling."""

    pipeline: str
    query: str | None
    what: str
    message: str = ""


class Supervisor:
    def __init__(
        self,
        spark: SparkSession,
        deployments: Sequence[Deployment],
        *,
        once: bool = False,
        tell: Callable[[Event], None] = lambda event: None,
    ) -> None:
        self.book = ProgressBook()
        self.pipelines = [_supervised(deployment) for deployment in deployments]
        self.spark = spark
        self._once = once
        self._tell = tell
        self._wake = threading.Event()

    def stop(self, name: str | None = None) -> None:
        """Ask a pipeline (or all) to end after the batch that runs now. Safe from any thread and from signals."""
        for pipeline in self.pipelines:
            if name is None or pipeline.name == name:
                pipeline.stop_asked.set()
        self._wake.set()

    def run(self, each_look: Callable[[], None] = lambda: None) -> bool:
        """Until all pipelines have ended; true if none of them failed."""
        try:
            self._run(each_look)
        except (Py4JNetworkError, ConnectionError) as error:
            # Nothing can be stopped any more. A new driver goes on from the checkpoints.
            raise FatalFailure(
                "Spark's JVM has ended; was there enough memory? Give it more (--conf spark.driver.memory=2g) and run "
                "again: everything goes on from the checkpoints"
            ) from error
        return not any(pipeline.state is State.FAILED for pipeline in self.pipelines)

    def _run(self, each_look: Callable[[], None]) -> None:
        try:
            while not all(pipeline.ended for pipeline in self.pipelines):
                for pipeline in self.pipelines:
                    self._look_after(pipeline)
                each_look()
                self._wake.wait(LOOK_SECONDS)
                self._wake.clear()
        finally:
            for pipeline in self.pipelines:
                self._stop_queries(pipeline, State.STOPPED)
            each_look()

    def replace(self, number: int, deployment: Deployment) -> None:
        """Go on with another deployment of the same pipeline: its batch finishes, then the other one starts."""
        old = self.pipelines[number]
        self._stop_queries(old, State.STOPPED)
        self._say(old, None, "switched", f"to version {deployment.version or 'first'}")
        self.pipelines[number] = _supervised(deployment)

    def progress(self, query: SupervisedQuery) -> QueryProgress:
        return self.book.of(query.name)

    def _look_after(self, pipeline: SupervisedPipeline) -> None:
        if pipeline.ended:
            return
        if pipeline.stop_asked.is_set():
            self._stop_queries(pipeline, State.STOPPED)
            self._say(pipeline, None, "stopped")
            return
        for query in pipeline.queries:
            if query.state in (State.STARTING, State.WAITING) and time.monotonic() >= query.start_at:
                if self._may_start(pipeline, query):
                    self._start(pipeline, query)
            elif query.state is State.RUNNING:
                self._check(pipeline, query)
            if query.state is State.FAILED:
                self._stop_queries(pipeline, State.STOPPED)
                return

    def _may_start(self, pipeline: SupervisedPipeline, query: SupervisedQuery) -> bool:
        """What reads all there is now (`--once`) waits for the phases before it: they may write what it reads."""
        phases = [other.plan.phase for other in pipeline.queries]
        before = pipeline.queries[: phases.index(query.plan.phase)]
        return not self._once or all(other.state is State.DONE for other in before)

    def _start(self, pipeline: SupervisedPipeline, query: SupervisedQuery) -> None:
        try:
            if not pipeline.prepared:
                prepare_topics(pipeline.deployment)
                pipeline.prepared = True
            query.started = start_query(query.plan, pipeline.deployment, self.spark, once=self._once)
        except (OttlaError, PySparkException, OSError) as error:
            passing = isinstance(error, ClientError | OSError) and not isinstance(error, PipelineError)
            judged = judge(f"{type(error).__name__}: {error}")
            hint = NO_BROKER if isinstance(error, Unreachable) else ""
            fatal = judged.fatal or not (passing or judged.busy)
            failure = Failure(judged.message + hint, fatal=fatal, busy=judged.busy)
            self._failed(pipeline, query, failure, "".join(traceback.format_exception(error)))
            return
        query.state = State.RUNNING
        query.reports = 0
        self._say(pipeline, query, "started")

    def _check(self, pipeline: SupervisedPipeline, query: SupervisedQuery) -> None:
        assert query.started is not None
        stream = query.started.stream
        counters = query.started.work.counters
        if counters.batches:
            query.failures_in_a_row = query.busy_in_a_row = 0
        self._pass_on_warnings(pipeline, query, counters)
        if time.monotonic() < query.look_at:
            return  # every question to Spark takes the driver's processor from it
        query.look_at = time.monotonic() + (LOOK_SECONDS if self._once else PROGRESS_SECONDS)
        if counters.batches > query.reports:  # Spark reports a batch soon after we are done with it
            query.reports += self.book.look(stream, query.started.scans)
        if stream.isActive:
            return
        error = stream.exception()
        self._close_books(query)
        if error is None:
            query.state = State.DONE if self._once else State.STOPPED
            self._say(pipeline, query, query.state.value)
        else:
            everything = _with_causes(error)
            self._failed(pipeline, query, judge(everything), f"{everything}\n{getattr(error, '_stackTrace', '')}")

    def _pass_on_warnings(self, pipeline: SupervisedPipeline, query: SupervisedQuery, counters: Counters) -> None:
        while counters.warnings:
            message = pipeline.deployment.secrets.hide(counters.warnings.pop(0))
            self._say(pipeline, query, "warning", message)

    def _failed(self, pipeline: SupervisedPipeline, query: SupervisedQuery, failure: Failure, everything: str) -> None:
        """`everything` is for who has to find out more: it is kept in the pipeline's folder."""
        secrets = pipeline.deployment.secrets
        message = secrets.hide(failure.message)
        details = pipeline.deployment.version_folder / DETAILS_FILE
        details.parent.mkdir(parents=True, exist_ok=True)
        details.write_text(secrets.hide(everything), encoding="utf-8")
        if failure.busy:
            query.busy_in_a_row += 1
        else:
            query.failures_in_a_row += 1
        in_a_row = query.busy_in_a_row if failure.busy else query.failures_in_a_row
        query.last_error = message
        errors = pipeline.deployment.checked.spec.errors
        pause = None if failure.fatal else pause_before_restart(in_a_row, errors, busy=failure.busy)
        if pause is None:
            query.state = State.FAILED
            tries = "" if failure.fatal else f" (given up after {in_a_row} failures in a row)"
            self._say(pipeline, query, "failed", f"{message}{tries}; the whole of it is in {details}")
            return
        query.state = State.WAITING
        query.restarts += 1
        query.start_at = time.monotonic() + pause
        self._say(pipeline, query, "restarts", f"in {pause:g} s, after: {message}")

    def _stop_queries(self, pipeline: SupervisedPipeline, state: State) -> None:
        """Let the batches that run now finish, and let no other begin."""
        running = [query for query in pipeline.queries if query.started is not None]
        for started in _started(running):
            started.work.stopping.set()
        for query in running:
            assert query.started is not None
            stream = query.started.stream
            deadline = time.monotonic() + STOP_SECONDS_MAX
            query.started.work.wait_until_idle(STOP_SECONDS_MAX)
            # Spark notes the end of a batch right after it; stopped before that, the batch would only be replayed.
            while stream.isActive and stream.status["isTriggerActive"] and time.monotonic() < deadline:
                self._wake.wait(LOOK_SECONDS / 5)
                self._wake.clear()
            stream.stop()
            self._pass_on_warnings(pipeline, query, query.started.work.counters)
            self._close_books(query)
        for query in pipeline.queries:
            if query.state not in ENDED:
                query.state = state

    def _close_books(self, query: SupervisedQuery) -> None:
        assert query.started is not None
        self.book.look(query.started.stream, query.started.scans)
        query.close_books()

    def _say(self, pipeline: SupervisedPipeline, query: SupervisedQuery | None, what: str, message: str = "") -> None:
        self._tell(Event(pipeline.name, query.plan.name if query else None, what, message))


def _supervised(deployment: Deployment) -> SupervisedPipeline:
    queries = [SupervisedQuery(query, deployment.query_name(query)) for query in deployment.plan.queries]
    clusters = {query.plan.source_cluster for query in queries}
    meters = {cluster: LagMeter(deployment.kafka(cluster)) for cluster in clusters}
    return SupervisedPipeline(deployment, queries, meters)


def _started(queries: Sequence[SupervisedQuery]) -> Iterator[StartedQuery]:
    for query in queries:
        if query.started is not None:
            yield query.started


def _with_causes(error: Exception) -> str:
    """PySpark keeps the causes of a Java exception and leaves them out of its text: they often are all that it says."""
    texts: list[str] = []
    cause = getattr(error, "_cause", None)
    while cause is not None and len(texts) < CAUSES_MAX:
        texts.append(f"{cause._desc}\n{cause._stackTrace}".strip())
        cause = cause._cause
    return behind_the_first_words(str(error), texts)
