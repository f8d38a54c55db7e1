"""Exactly once on Spark under kill -9: python -m tests.spark_reliability.soak --target driver --kills 20

A pipeline of two queries, with duplicates, a table that changes and state of its own, writes to topics, Parquet files,
PostgreSQL and a dead-letter topic, all real, while its driver, an executor (on a standalone cluster of two workers) or
the broker is killed at random moments. At the end the output of every sink is compared with the input. The exit code is
0 when they agree exactly.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.pipelines.postgres import postgres_server
from tests.spark_reliability import world
from tests.spark_reliability.checking import check
from tests.spark_reliability.feeding import Feeder, Place
from tests.spark_reliability.standalone import StandaloneCluster, standalone_cluster

from ottla.testing.load import RECONNECT, quiet
from ottla.testing.running import RunningBroker, broker
from ottla.testing.waiting import wait_until

TARGETS = ("driver", "executor", "broker", "none")
LOCAL_MASTER = "local[2]"
STALL_SECONDS_MAX = 480.0
DRIVER_MEMORY = "1g"
# Between two kills the pipeline gets some time to do work worth interrupting, and a moment that no rhythm favours.
QUIET_SECONDS = (0.2, 4.0)


@dataclass
class Report:
    target: str
    records: int
    kills: int = 0
    driver_starts: int = 0
    seconds: float = 0.0
    seed: int = 0
    seen: dict[str, int] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)


class Driver:
    """The pipeline's driver: a process that can be killed and started again from its checkpoint."""

    def __init__(self, file: Path, bootstrap: str, master: str, folder: Path) -> None:
        self.starts = 0
        self._command = [
            str(Path(sys.executable).with_name("ottla")), "pipeline", "run", str(file),
            "--bootstrap-server", bootstrap, "--master", master, "--state-dir", str(folder / "state"), "--json",
            "--conf", f"spark.driver.memory={DRIVER_MEMORY}", "--conf", "spark.executor.memory=768m",
            "--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1",
            "--conf", "spark.task.maxFailures=8",
        ]  # fmt: skip
        self.log = folder / "driver.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.starts += 1
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self._command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}, start_new_session=True,
            )  # fmt: skip

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """The whole of it at once: Python, its JVM and their workers are one process group."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", choices=TARGETS, default="driver", help="what is killed")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--slices", type=int, default=20, help="how often the joined table changes")
    parser.add_argument("--max-records", type=int, default=20_000, help="records per micro-batch")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--folder", type=Path, default=None, help="keep everything here instead of a temporary folder")
    options = parser.parse_args(arguments)
    seed = options.seed if options.seed is not None else random.randrange(1 << 30)
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="spark-soak-")))
        payments = world.Payments(options.records, options.slices)
        report = soak(options.target, options.kills, payments, options.max_records, seed, folder)
    print(json.dumps(asdict(report), indent=2))
    return 1 if report.wrong else 0


def soak(target: str, kills: int, payments: world.Payments, max_records: int, seed: int, folder: Path) -> Report:
    report = Report(target, payments.records, seed=seed)
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(broker(data_dir=folder / "broker"))
        postgres = stack.enter_context(postgres_server())
        cluster = stack.enter_context(standalone_cluster(folder / "spark")) if target == "executor" else None
        _create_topics(server.bootstrap)
        file = folder / "pipeline.yaml"
        world.write_pipeline(file, postgres, folder, max_records, payments)
        driver = Driver(file, server.bootstrap, cluster.master_url if cluster else LOCAL_MASTER, folder)
        stack.callback(driver.kill)
        progress = Progress(server, payments)
        stack.callback(progress.close)
        feeder = Feeder(server.bootstrap, payments, progress.reached)
        stack.callback(feeder.close)
        feeder.start()
        driver.start()
        looking = Looking(driver, feeder, progress)
        _kill_at_random(target, kills, random.Random(seed), looking, server, cluster, report)
        _finish(looking)
        report.driver_starts = driver.starts
        driver.kill()
        verdict = check(server.bootstrap, postgres, folder, payments)
    report.seen, report.wrong = verdict.seen, verdict.wrong
    report.seconds = round(time.monotonic() - began, 1)
    return report


class Progress:
    """How far the pipeline's consumer groups have come, asked as any Kafka tool would. Used by several threads."""

    def __init__(self, server: RunningBroker, payments: world.Payments) -> None:
        self._sent = payments.sent
        self._consumers = {
            group: Consumer(
                {
                    "bootstrap.servers": server.bootstrap,
                    "group.id": group,
                    "isolation.level": "read_committed",
                    **RECONNECT,
                },
                logger=quiet,
            )
            for group in (world.GROUP, world.GROUP_COUNTED)
        }

    def reached(self, group: str = world.GROUP, topic: str = world.INPUT) -> Place:
        """By partition; nothing if the broker is down at the moment."""
        partitions = [TopicPartition(topic, number) for number in range(world.PARTITIONS)]
        try:
            committed = self._consumers[group].committed(partitions, timeout=5)
        except KafkaException:
            return {}
        return {partition.partition: max(partition.offset, 0) for partition in committed}

    def done(self) -> int:
        return sum(self.reached().values())

    def done_counting(self) -> int:
        return sum(self.reached(world.GROUP_COUNTED, world.OUTPUT).values())

    @property
    def has_read_all(self) -> bool:
        return self.done() >= self._sent

    @property
    def complete(self) -> bool:
        """The first query has read all, and the second all that the first has written."""
        if not self.has_read_all:
            return False
        reached = self.reached(world.GROUP_COUNTED, world.OUTPUT)
        consumer = self._consumers[world.GROUP_COUNTED]
        try:
            ends = {
                number: consumer.get_watermark_offsets(TopicPartition(world.OUTPUT, number), timeout=5)[1]
                for number in range(world.PARTITIONS)
            }
        except KafkaException:
            return False
        return all(reached.get(number, -1) >= end for number, end in ends.items())

    def close(self) -> None:
        for consumer in self._consumers.values():
            consumer.close()


class Looking(NamedTuple):
    """What is looked at while the pipeline runs."""

    driver: Driver
    feeder: Feeder
    progress: Progress

    def check(self) -> None:
        if self.feeder.failure is not None:
            raise self.feeder.failure
        log = self.driver.log
        assert self.driver.running, f"the driver ended by itself:\n{log.read_text(errors='replace')[-4000:]}"

    def has_passed(self, goal: int) -> bool:
        self.check()
        return self.progress.done() >= goal


def _kill_at_random(
    target: str,
    kills: int,
    chance: random.Random,
    looking: Looking,
    server: RunningBroker,
    cluster: StandaloneCluster | None,
    report: Report,
) -> None:
    """Kill, let it come back and do some more, kill again; spread so that the input lasts for all of them."""
    share = report.records // (kills + 1) if kills else 0
    for number in range(kills):
        goal = max(1, share * number // 2)
        wait_until(
            partial(looking.has_passed, goal),
            f"the pipeline gets past {goal} records (see {looking.driver.log})",
            seconds=STALL_SECONDS_MAX,
        )
        threading.Event().wait(chance.uniform(*QUIET_SECONDS))  # the moment is random on purpose
        if looking.progress.complete:
            break
        if target == "driver":
            looking.driver.kill()
            looking.driver.start()
        elif target == "broker":
            server.kill()
            server.restart()
        elif cluster is not None:
            executors = wait_until(cluster.executors, "an executor runs", seconds=STALL_SECONDS_MAX)
            chance.choice(executors).kill()
        report.kills += 1


def _finish(looking: Looking) -> None:
    last, since = (-1, -1), time.monotonic()
    while not looking.progress.complete:
        looking.check()
        done = (looking.progress.done(), looking.progress.done_counting())
        if done > last:
            last, since = done, time.monotonic()
        elif time.monotonic() - since > STALL_SECONDS_MAX:
            log = looking.driver.log.read_text(errors="replace")
            raise AssertionError(f"no progress past {last}:\n{log[-4000:]}")
        threading.Event().wait(0.2)


def _create_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    names = (world.INPUT, world.OUTPUT, world.COUNTED, world.DEAD)
    topics = [NewTopic(name, world.PARTITIONS) for name in names]
    topics.append(NewTopic(world.ACCOUNTS, 1, config={"cleanup.policy": "compact"}))
    for future in admin.create_topics(topics).values():
        future.result(30)


if __name__ == "__main__":
    sys.exit(main())
