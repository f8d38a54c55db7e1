"""Exactly once under kills: python -m tests.transactions.soak [--operations N] [--kills N] [--seed N] ...

Transactional producers, copiers (consume, transform, produce) and readers of both isolations run against a real
broker, which is killed with SIGKILL, paused with SIGSTOP and restarted all the while. Everything they do and see goes
into a history, and the checker judges it. The exit code is 0 when it finds nothing.
"""

import argparse
import contextlib
import gc
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import confluent_kafka
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.transactions.checker import Anomaly, check, summary
from tests.transactions.history import Abort, Commit, Crash, Outcome, Poll, read_history, write_history
from tests.transactions.recorder import Recorder
from tests.transactions.workers import (
    GROUP,
    INPUT,
    OUTPUT,
    Copier,
    Reader,
    TransactionalProducer,
    Worker,
    read_to_the_end,
)

from ottla.testing.load import RECONNECT, quiet
from ottla.testing.running import broker
from ottla.testing.waiting import wait_until

STALL_SECONDS_MAX = 90.0
# Transactions that nobody ends are ended soon, and kills meet rolled segments and fresh checkpoints.
SETTINGS: dict[str, str | int | bool] = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1_000,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
    "log.segment.bytes": 1_048_576,
}


class Target(Protocol):
    """A broker that can be made to suffer."""

    @property
    def bootstrap(self) -> str: ...
    @property
    def pid(self) -> int: ...
    def kill(self) -> None: ...
    def restart(self) -> object: ...


@dataclass
class Plan:
    operations: int
    kills: int
    seed: int
    partitions: int = 4
    producers: int = 3
    copiers: int = 2
    group_protocol: str = "classic"
    rest_seconds: float = 0.0
    """How long a producer rests after each transaction."""


@dataclass
class Run:
    """What was done to the broker, and what the clients saw."""

    plan: Plan
    recorder: Recorder = field(default_factory=Recorder)
    kills: int = 0
    pauses: int = 0
    restarts: int = 0
    seconds: float = 0.0

    def figures(self) -> str:
        counts = Counter(operation.NAME for operation in self.recorder.history)
        of_each = ", ".join(f"{count:,} {name}" for name, count in counts.most_common())
        read = sum(len(each.offsets) for each in self.recorder.history if isinstance(each, Poll))
        committed = self._ended(Commit)
        refused = sum(isinstance(each, Commit) and each.outcome is Outcome.FAIL for each in self.recorder.history)
        crashes = sum(isinstance(each, Crash) for each in self.recorder.history)
        return (
            f"seed {self.plan.seed}: {self.recorder.operations:,} operations ({of_each}; {read:,} records read) in "
            f"{self.seconds:.0f} s; transactions: {committed:,} committed, {self._ended(Abort):,} aborted, {crashes:,} "
            f"left open, of which {refused:,} were refused a late commit; the broker was killed {self.kills} times, "
            f"paused {self.pauses} times, restarted in order {self.restarts} times"
        )

    def _ended(self, kind: type[Commit | Abort]) -> int:
        return sum(isinstance(each, kind) and each.outcome is Outcome.OK for each in self.recorder.history)


def run(target: Target, plan: Plan) -> Run:
    """Do all of it. The history that comes back is complete: everything is decided, and read to its end."""
    done = Run(plan)
    begun = time.monotonic()
    workers = Workers(target.bootstrap, done)
    _torment(target, done, workers.all)
    workers.finish()
    done.seconds = time.monotonic() - begun
    return done


class Workers:
    """All clients of a run: they start, somebody torments what they talk to, and then they finish."""

    def __init__(self, bootstrap: str, done: Run) -> None:
        self._bootstrap = bootstrap
        self._done = done
        plan = done.plan
        admin = AdminClient({"bootstrap.servers": bootstrap}, logger=quiet)
        created = admin.create_topics([NewTopic(topic, plan.partitions) for topic in (INPUT, OUTPUT)])
        for future in created.values():
            future.result(30)
        common = (bootstrap, done.recorder)
        self.producers: list[Worker] = [
            TransactionalProducer(*common, f"producer-{number}", plan.seed, plan.partitions, rest=plan.rest_seconds)
            for number in range(plan.producers)
        ]
        self.copiers: list[Worker] = [
            Copier(*common, f"copier-{number}", plan.seed, plan.group_protocol) for number in range(plan.copiers)
        ]
        self.readers: list[Worker] = [
            Reader(*common, f"reader-{committed_only}", plan.seed, plan.partitions, committed_only=committed_only)
            for committed_only in (True, False)
        ]
        self.all = [*self.producers, *self.copiers, *self.readers]
        for worker in self.all:
            worker.start()

    def finish(self) -> None:
        """Everything is decided, carried over and read to its end."""
        _stop(self.producers)
        _finish(self._bootstrap, self._done, self.all)
        _stop([*self.copiers, *self.readers])
        for topic in (INPUT, OUTPUT):
            for committed_only in (True, False):
                read_to_the_end(
                    self._bootstrap, self._done.recorder, topic, self._done.plan.partitions,
                    committed_only=committed_only,
                )  # fmt: skip


def _torment(target: Target, done: Run, workers: list[Worker]) -> None:
    """Kill, pause and restart the broker, with about the same number of operations between any two kills."""
    chance = random.Random(done.plan.seed)
    between = done.plan.operations / (done.plan.kills + 1)
    aim = 0.0
    for _ in range(done.plan.kills):
        aim += between
        if chance.random() < 0.4:
            _wait_for_operations(done, int(aim - between * chance.uniform(0.3, 0.7)), workers)
            _pause(target, chance.choice((0.05, 0.5, 2.0)))
            done.pauses += 1
        if chance.random() < 0.1:
            target.restart()
            done.restarts += 1
        _wait_for_operations(done, int(aim - between * chance.uniform(0.0, 0.2)), workers)
        target.kill()
        _stay_away(chance.choice((0.0, 0.0, 0.5)))
        target.restart()
        done.kills += 1
    _wait_for_operations(done, done.plan.operations, workers)


def _wait_for_operations(done: Run, count: int, workers: list[Worker]) -> None:
    def enough() -> bool:
        for worker in workers:
            if worker.failure is not None:
                raise worker.failure
        return done.recorder.operations >= count

    seen = -1
    while not enough():
        assert done.recorder.operations > seen, f"no operation for {STALL_SECONDS_MAX:g} s, at {seen:,} of {count:,}"
        seen = done.recorder.operations
        with contextlib.suppress(AssertionError):
            wait_until(enough, "more operations", seconds=STALL_SECONDS_MAX)


def _pause(target: Target, seconds: float) -> None:
    pid = target.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        _stay_away(seconds)
    finally:
        os.kill(pid, signal.SIGCONT)


def _stay_away(seconds: float) -> None:
    """The time for which the clients are to find nobody there: this is not waiting for anything."""
    threading.Event().wait(seconds)


def _stop(workers: list[Worker]) -> None:
    for worker in workers:
        worker.ask_to_stop()
    for worker in workers:
        worker.join(STALL_SECONDS_MAX)


def _finish(bootstrap: str, done: Run, workers: list[Worker]) -> None:
    """Wait until no transaction is open any more and the copiers have carried over all there is."""
    partitions = range(done.plan.partitions)
    with contextlib.ExitStack() as closing:
        ask = {
            isolation: Consumer(
                {"bootstrap.servers": bootstrap, "group.id": GROUP, "isolation.level": isolation, **RECONNECT},
                logger=quiet,
            )
            for isolation in ("read_committed", "read_uncommitted")
        }
        for consumer in ask.values():
            closing.callback(consumer.close)

        def ends(isolation: str, topic: str) -> list[int]:
            places = [confluent_kafka.TopicPartition(topic, number) for number in partitions]
            return [ask[isolation].get_watermark_offsets(place, timeout=30.0)[1] for place in places]

        def decided(topic: str) -> bool:
            return ends("read_committed", topic) == ends("read_uncommitted", topic)

        wait_until(lambda: decided(INPUT), "no transaction is open in the input topic", seconds=60)
        read_to_the_end(bootstrap, done.recorder, INPUT, done.plan.partitions, committed_only=True)
        last = _last_offsets(done)

        def copied() -> bool:
            places = [confluent_kafka.TopicPartition(INPUT, number) for number in last]
            found = ask["read_committed"].committed(places, timeout=30.0)
            return all(each.offset > last[each.partition] for each in found)

        if done.plan.copiers:
            wait_until(copied, "the copiers have carried over everything", seconds=STALL_SECONDS_MAX)
        wait_until(lambda: decided(OUTPUT), "no transaction is open in the output topic", seconds=60)
    for worker in workers:
        if worker.failure is not None:
            raise worker.failure


def _last_offsets(done: Run) -> dict[int, int]:
    """The last committed record of each input partition."""
    last: dict[int, int] = {}
    for each in done.recorder.history:
        if isinstance(each, Poll) and each.committed_only and each.partition.topic == INPUT and each.offsets:
            number = each.partition.partition
            last[number] = max(last.get(number, -1), each.offsets[-1])
    return last


def judge(done: Run) -> list[Anomaly]:
    return check(done.recorder.history, copied={INPUT: OUTPUT} if done.plan.copiers else {})


@contextlib.contextmanager
def _apache_kafka(directory: Path) -> Iterator[Target]:
    """The peer, which is to pass too."""
    from compat.peer.kafka import Kafka

    class Node(Kafka):
        def restart(self) -> None:
            self.stop()
            self.start()

    settings = {**SETTINGS, "group.initial.rebalance.delay.ms": 0}
    node = Node(directory, settings={name: str(value) for name, value in settings.items()})
    node.start()
    try:
        yield node
    finally:
        node.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.transactions.soak", description=__doc__)
    parser.add_argument("--operations", type=int, default=500_000, help="at least so many (500000)")
    parser.add_argument("--kills", type=int, default=50, help="how often the broker is killed (50)")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000_007, help="of all choices by chance")
    parser.add_argument("--copiers", type=int, default=2, help="how many consume, transform and produce (2)")
    parser.add_argument("--group-protocol", choices=("classic", "consumer"), default="classic", help="of the copiers")
    parser.add_argument("--history", type=Path, metavar="FILE", help="write the history there")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="keep the broker's files there")
    parser.add_argument("--check", type=Path, metavar="FILE", help="only check a history that was written before")
    parser.add_argument("--kafka", action="store_true", help="run against Apache Kafka instead")
    arguments = parser.parse_args()
    if arguments.check:
        anomalies = check(read_history(arguments.check), copied={INPUT: OUTPUT})
    else:
        gc.disable()  # a history is millions of objects that all stay; looking through them again and again is waste
        plan = Plan(
            arguments.operations,
            arguments.kills,
            arguments.seed,
            copiers=arguments.copiers,
            group_protocol=arguments.group_protocol,
        )
        with contextlib.ExitStack() as stack:
            directory = arguments.data or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ottla-soak-")))
            target: Target = stack.enter_context(
                _apache_kafka(directory) if arguments.kafka else broker(SETTINGS, data_dir=directory)
            )
            done = run(target, plan)
        sys.stdout.write(done.figures() + "\n")
        if arguments.history:
            write_history(arguments.history, done.recorder.history)
        anomalies = judge(done)
    sys.stdout.write(summary(anomalies) + "\n")
    return 1 if anomalies else 0


if __name__ == "__main__":
    sys.exit(main())
