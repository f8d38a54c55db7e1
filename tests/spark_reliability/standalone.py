"""A standalone Spark cluster on loopback, started from the pip package: one master, some workers, real processes."""

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyspark

from ottla.config.java import find_java
from ottla.spark.class_archive import archive_options, archive_place
from ottla.spark.home import home_without_zip
from ottla.spark.java_options import SHORT_LIVED
from ottla.testing.waiting import wait_until

_MASTER_READY = re.compile(r"Starting Spark master at (spark://\S+)")
_WORKER_READY = re.compile(r"Successfully registered with master")
_EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
START_SECONDS_MAX = 90.0


class StandaloneCluster:
    def __init__(self, folder: Path, *, workers: int = 2, cores: int = 1, memory: str = "1g") -> None:
        self.master_url = ""
        self._folder = folder
        self._workers = workers
        self._cores = cores
        self._memory = memory
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        log = self._launch("master", "org.apache.spark.deploy.master.Master", ["--port", "0", "--webui-port", "0"])
        self.master_url = _wait_for(log, _MASTER_READY, "the master")
        logs = [
            self._launch(
                f"worker-{number}",
                "org.apache.spark.deploy.worker.Worker",
                ["--port", "0", "--webui-port", "0", "--cores", str(self._cores), "--memory", self._memory,
                 "--work-dir", str(self._folder / f"work-{number}"), self.master_url],
            )
            for number in range(self._workers)
        ]  # fmt: skip
        for number, log in enumerate(logs):
            _wait_for(log, _WORKER_READY, f"worker {number}")

    def executors(self) -> list[psutil.Process]:
        """The executors' JVMs that run now, on all workers."""
        found: list[psutil.Process] = []
        for process in self._processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                for child in psutil.Process(process.pid).children(recursive=True):
                    with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                        if _EXECUTOR in child.cmdline():
                            found.append(child)
        return found

    def stop(self) -> None:
        """Workers first: each takes its executors with it."""
        for process in reversed(self._processes):
            children = []
            with contextlib.suppress(psutil.NoSuchProcess):
                children = psutil.Process(process.pid).children(recursive=True)
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(15)
            for child in children:
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()
            process.kill()
            process.wait()
        self._processes.clear()

    def _launch(self, name: str, java_class: str, arguments: list[str]) -> Path:
        log = self._folder / f"{name}.log"
        home = home_without_zip("local[1]", {}, os.environ) or Path(pyspark.__file__).parent
        archive = archive_place(find_java(os.environ, wanted_by="Spark"), os.environ, home)
        environment = {
            **os.environ,
            "SPARK_HOME": str(home),  # the one whose classes are in the archive
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "384m",
            # For all of them, executors too: six JVMs that live for a minute.
            "JDK_JAVA_OPTIONS": f"{SHORT_LIVED} {archive_options(archive)}",
            "SPARK_WORKER_DIR": str(self._folder),
            "PYSPARK_PYTHON": sys.executable,
        }
        with log.open("wb") as output:
            process = subprocess.Popen(
                [str(home / "bin" / "spark-class"), java_class, "--host", "127.0.0.1", *arguments],
                stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment,
            )  # fmt: skip
        self._processes.append(process)
        return log


@contextlib.contextmanager
def standalone_cluster(folder: Path, *, workers: int = 2, cores: int = 1) -> Iterator[StandaloneCluster]:
    cluster = StandaloneCluster(folder, workers=workers, cores=cores)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def _wait_for(log: Path, pattern: re.Pattern[str], who: str) -> str:
    def said() -> str | None:
        found = pattern.search(log.read_text(errors="replace"))
        return found.group(found.lastindex or 0) if found else None

    try:
        return wait_until(said, f"{who} of the standalone cluster runs", seconds=START_SECONDS_MAX) or ""
    except AssertionError as error:
        raise AssertionError(f"{error}\n{log.read_text(errors='replace')[-2000:]}") from None
