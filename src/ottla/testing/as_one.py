"""A cluster where a test expects a broker: the tests of one broker then run against several, unchanged.

`bootstrap` names every broker; `host`, `port` and `pid` are those of the first. To kill "the broker" is to kill all of
them at once: what the test then expects of its data it may expect of a cluster too.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

from ottla.testing.cluster import RunningCluster, cluster
from ottla.testing.running import STOP_SECONDS_MAX, RunningBroker, SettingValue
from ottla.testing.zookeeper import shared_zookeeper


class ClusterAsBroker(RunningBroker):
    def __init__(self, running: RunningCluster) -> None:
        self.cluster = running
        self.first = next(iter(running.brokers.values()))
        super().__init__(running.data_dir, {})
        self.listeners = self.first.listeners

    @property
    def bootstrap(self) -> str:
        return self.cluster.bootstrap

    @property
    def log_dirs(self) -> list[Path]:
        return self.first.log_dirs

    @property
    def pid(self) -> int:
        return self.first.pid

    @property
    def running(self) -> bool:
        """Whether all of them run."""
        return len(self.cluster.running) == len(self.cluster.brokers)

    def log_text(self) -> str:
        return "".join(f"--- broker {number}\n{each.log_text()}" for number, each in self.cluster.brokers.items())

    def start(self) -> Self:
        """As of a single broker, it can be expected then that every partition is served."""
        self.cluster.start().wait_until_settled()
        return self

    def launch(self) -> None:
        for each in self.cluster.brokers.values():
            each.launch()

    def wait_until_ready(self) -> Self:
        for each in self.cluster.brokers.values():
            each.wait_until_ready()
        return self

    def pause(self) -> None:
        for each in self.cluster.running:
            each.pause()

    def resume(self) -> None:
        for each in self.cluster.running:
            each.resume()

    def wipe(self) -> None:
        for each in self.cluster.brokers.values():
            each.wipe()

    def kill(self) -> None:
        self.cluster.kill()

    def ask_to_stop(self) -> None:
        for each in self.cluster.running:
            each.ask_to_stop()

    def wait(self, seconds: float = STOP_SECONDS_MAX) -> int:
        """The largest exit code."""
        return max(each.wait(seconds) for each in self.cluster.brokers.values())

    def restart(self, settings: Mapping[str, SettingValue] | None = None) -> Self:
        """All of them together, as a single broker would be away for a while too."""
        stopping = self.cluster.running
        self.ask_to_stop()
        for each in stopping:
            each.wait()
        for each in self.cluster.brokers.values():
            each.change(settings or {})
        return self.start()

    def close(self) -> None:
        self.cluster.close()


@contextlib.contextmanager
def cluster_as_broker(
    brokers: int, settings: Mapping[str, SettingValue], *, data_dir: str | os.PathLike[str] | None
) -> Iterator[ClusterAsBroker]:
    with cluster(brokers, settings=settings, zookeeper=shared_zookeeper(), data_dir=data_dir) as running:
        yield ClusterAsBroker(running)
