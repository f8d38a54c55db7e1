"""A driver's life: take the pipelines' folders, start Spark, run until all have ended, leave a last status behind."""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from pyspark.sql import SparkSession

from ottla.pipelines.runner.deployment import Deployment
from ottla.pipelines.runner.state_folder import StateFolder
from ottla.pipelines.runner.status import status_document
from ottla.pipelines.runner.status_http import StatusServer
from ottla.pipelines.runner.supervisor import Event, Supervisor

STATUS_SECONDS = 1.0

Tell = Callable[[Event], None]
Show = Callable[[dict[str, Any]], None]


class Driver:
    def __init__(self, deployments: Sequence[Deployment], *, once: bool, port: int = 0) -> None:
        self._deployments = deployments
        self._once = once
        self._port = port
        self._supervisor: Supervisor | None = None
        self._stop_asked = False

    def stop(self, name: str | None = None) -> None:
        """End after the batch that runs now. Safe in a signal handler."""
        if self._supervisor is not None:
            self._supervisor.stop(name)
        elif name is None:
            self._stop_asked = True

    def run(self, start_spark: Callable[[], SparkSession], tell: Tell, show: Show) -> bool:
        """True if no pipeline failed. `show` gets the status again and again."""
        with ExitStack() as stack:
            folders = []
            for deployment in self._deployments:
                folder = StateFolder(deployment.folder.parent, deployment.plan.name)
                folder.lock()
                stack.callback(folder.unlock)
                folders.append(folder)
            spark = start_spark()
            stack.callback(spark.stop)
            supervisor = Supervisor(spark, self._deployments, once=self._once, tell=tell)
            self._supervisor = supervisor
            if self._stop_asked:
                supervisor.stop()
            server = StatusServer(self._port, lambda: status_document(supervisor), supervisor.stop)
            server.start()
            stack.callback(server.close)
            for folder in folders:
                folder.write("run.json", {"pid": os.getpid(), "http": server.address, "started": time.time()})
            book = _StatusBook(supervisor, folders, show)
            try:
                return supervisor.run(book.look)
            finally:
                book.write()


class _StatusBook:
    """Writes the status down about once a second, so that it is there when the driver is not."""

    def __init__(self, supervisor: Supervisor, folders: Sequence[StateFolder], show: Show) -> None:
        self._supervisor = supervisor
        self._folders = folders
        self._show = show
        self._next = 0.0

    def look(self) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + STATUS_SECONDS
            self.write()

    def write(self) -> None:
        document = status_document(self._supervisor)
        for folder, pipeline in zip(self._folders, document["pipelines"], strict=True):
            folder.write("status.json", {"time": document["time"], **pipeline})
        self._show(document)
