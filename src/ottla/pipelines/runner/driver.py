"""A driver's life: take the pipelines' folders, start Spark, run until all have ended, leave a last status behind."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from ottla.http.address import LOOPBACK, HttpAddress
from ottla.http.thread import HttpThread
from ottla.pipelines.runner.deploy import deploy
from ottla.pipelines.runner.deployment import Deployment
from ottla.pipelines.runner.spark_figures import spark_figures
from ottla.pipelines.runner.state_folder import StateFolder
from ottla.pipelines.runner.status import status_document
from ottla.pipelines.runner.supervisor import Event, Supervisor
from ottla.telemetry.metric import Metric

if TYPE_CHECKING:
    from ottla.http.application import Served

STATUS_SECONDS = 1.0
ANY_FREE_PORT = HttpAddress(LOOPBACK, 0)

Tell = Callable[[Event], None]
Show = Callable[[dict[str, Any]], None]
StartSpark = Callable[[], AbstractContextManager[SparkSession]]


class Driver:
    """Runs the live version of pipelines, or (`beside`) makes another version beside it."""

    def __init__(
        self,
        deployments: Sequence[Deployment],
        *,
        once: bool,
        beside: bool = False,
        listen: HttpAddress = ANY_FREE_PORT,
    ) -> None:
        self._deployments = deployments
        self._once = once
        self._beside = beside
        self._listen = listen
        self._supervisor: Supervisor | None = None
        self._stop_asked = False

    def stop(self, name: str | None = None) -> None:
        """End after the batch that runs now. Safe in a signal handler."""
        if self._supervisor is not None:
            self._supervisor.stop(name)
        elif name is None:
            self._stop_asked = True

    def run(self, start_spark: StartSpark, tell: Tell, show: Show) -> bool:
        """True if no pipeline failed. `show` gets the status again and again."""
        with ExitStack() as stack:
            folders = [_PipelineFolders(deployment, beside=self._beside) for deployment in self._deployments]
            for folder in folders:
                folder.lock()
                stack.callback(folder.unlock)
            # Before Spark: what it imports is imported while a JVM starts, and a port that is taken is told at once.
            server = HttpThread(self._status_api, self._listen)
            server.start()
            stack.callback(server.close)
            spark = stack.enter_context(start_spark())
            stack.callback(server.close)  # on the way out it ends before Spark does, of which it speaks
            supervisor = Supervisor(spark, self._deployments, once=self._once, tell=tell)
            self._supervisor = supervisor
            if self._stop_asked:
                supervisor.stop()
            run = {"pid": os.getpid(), "http": server.url, "started": time.time()}
            for folder in folders:
                folder.own.write("run.json", run)
            book = _StatusWriter(supervisor, folders, show)
            try:
                return supervisor.run(book.look)
            finally:
                book.write()

    def _status_api(self) -> "Served":
        from ottla.pipelines.runner.status_api import status_api  # noqa: PLC0415 - the thread's to import

        return status_api(self._status, self.stop, self._spark_figures)

    def _status(self) -> dict[str, Any] | None:
        return None if self._supervisor is None else status_document(self._supervisor)

    def _spark_figures(self) -> Mapping[Metric, float]:
        return {} if self._supervisor is None else spark_figures(self._supervisor.spark)


class _PipelineFolders:
    """The folder of a pipeline and that of its version: a live run holds both, a version that is made only its own."""

    def __init__(self, deployment: Deployment, *, beside: bool) -> None:
        self.deployment = deployment
        self._beside = beside
        self.live = StateFolder(deployment.folder.parent, deployment.plan.name)
        self._version = self._version_folder(deployment)
        assert self._version is not None or not beside

    @property
    def own(self) -> StateFolder:
        return self._version if self._beside and self._version is not None else self.live

    def lock(self) -> None:
        for folder in self._held():
            folder.lock()

    def unlock(self) -> None:
        for folder in self._held():
            folder.unlock()

    def switched(self) -> Deployment | None:
        """Another deployment, if `ottla pipeline switch` has made another version the live one."""
        if self._beside or self.live.active_version == self.deployment.version:
            return None
        old = self.deployment
        new = deploy(
            old.checked.path,
            bootstrap=old.bootstrap,
            state_dir=old.folder.parent,
            version=self.live.active_version,
        )
        folder = self._version_folder(new)
        if folder is not None:
            folder.lock()
        if self._version is not None:
            self._version.unlock()
        self.deployment, self._version = new, folder
        return new

    def _held(self) -> list[StateFolder]:
        both = [self._version] if self._beside else [self.live, self._version]
        return [folder for folder in both if folder is not None]

    def _version_folder(self, deployment: Deployment) -> StateFolder | None:
        if deployment.version is None:
            return None
        return StateFolder(deployment.folder.parent, deployment.plan.name, deployment.version)


class _StatusWriter:
    """Writes the status down about once a second, so that it is there when the driver is not."""

    def __init__(self, supervisor: Supervisor, folders: Sequence[_PipelineFolders], show: Show) -> None:
        self._supervisor = supervisor
        self._folders = folders
        self._show = show
        self._next = 0.0

    def look(self) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + STATUS_SECONDS
        for number, folder in enumerate(self._folders):
            new = folder.switched()
            if new is not None:
                self._supervisor.replace(number, new)
        self.write()

    def write(self) -> None:
        document = status_document(self._supervisor)
        for folder, pipeline in zip(self._folders, document["pipelines"], strict=True):
            folder.own.write("status.json", {"time": document["time"], **pipeline})
        self._show(document)
