"""Nothing acknowledged is lost: python -m tests.cluster.soak [--faults N] [--writes N] [--copies N] [--seed N] ...

Idempotent producers write to a topic with three replicas and keep every acknowledgement; transactional producers,
copiers and readers of both isolations run beside them. Meanwhile brokers are killed with SIGKILL and paused, the
connections between them are cut, and members of the ZooKeeper ensemble are killed. At the end every acknowledged write
must be in the log once, in order and at its offset, and the checker of transactions must find nothing in the history.
It is done in rounds, each with a cluster and a process of clients of its own: librdkafka 2.16 frees the error text of a
fenced producer twice when that is destroyed while brokers still refuse its batches. The workers wait for their batches
(`_let_go`), but one that hangs cannot. A round whose clients die of that says nothing, is counted, and is done again.
Progress goes to stderr, the result as one JSON document to stdout. The exit code is 0 when nothing was found.
"""

import argparse
import gc
import json
import random
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka.admin import NewTopic
from tests.cluster.faults import Fault, World, choose
from tests.cluster.gaps import TimedLedger
from tests.transactions.checker import Anomaly, summary
from tests.transactions.history import Outcome, Send
from tests.transactions.soak import Plan as TransactionPlan
from tests.transactions.soak import Run, Workers, judge
from tests.transactions.workers import OUTPUT

from ottla.testing.cluster import RunningCluster, cluster
from ottla.testing.ledger import Audit, audit
from ottla.testing.load import LoadProducer, read_log
from ottla.testing.running import SettingValue

ROOT = Path(__file__).resolve().parents[2]
TOPIC = "ledger"
PARTITIONS = 6
PRODUCERS = 3
STALL_SECONDS_MAX = 120.0
LONGEST = ("longest_gap_seconds", "longest_gap_of_a_partition_seconds")
SETTLED_FIRST = 0.8
SETTLE_SECONDS_MAX = 60.0

SETTINGS: dict[str, SettingValue] = {
    "min.insync.replicas": 2,
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 3,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1_000,
    "log.segment.bytes": 4_194_304,  # faults meet rolled segments
}


@dataclass
class Plan:
    faults: int
    writes: int
    copies: int
    seed: int
    writes_per_second: int = 3_000
    brokers: int = 3
    zookeepers: int = 3


@dataclass
class Result:
    plan: Plan
    seconds: float = 0.0
    faults: dict[str, int] = field(default_factory=dict)
    acknowledged: int = 0
    copies: int = 0
    longest_gap_seconds: float = 0.0
    longest_gap_of_a_partition_seconds: float = 0.0
    longest_gap_was_during: str = ""
    audit: Audit | None = None
    refused: int = 0
    anomalies: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return self.audit is not None and self.audit.clean and not self.refused and not self.anomalies

    def to_json(self) -> str:
        found = asdict(self)
        found["audit"] = self.audit._asdict() if self.audit is not None else None
        return json.dumps({"clean": self.clean, **found})


class Soak:
    """One run."""

    def __init__(self, running: RunningCluster, plan: Plan) -> None:
        self._cluster = running
        self._plan = plan
        self._result = Result(plan)
        self._chance = random.Random(plan.seed)
        self._ledger = TimedLedger()
        self._begun = time.monotonic()
        self._said = 0.0
        self._now = "nothing yet"

    def run(self) -> Result:
        self._cluster.create_topic(NewTopic(TOPIC, PARTITIONS))
        self._cluster.wait_until_settled()
        producers = self._start_producers()
        # Copies are to last about as long as the writes: each transaction has 30 records in the mean.
        seconds = self._plan.writes / self._plan.writes_per_second + 5.0 * self._plan.faults
        rest = min(1.0, 30 * 2 * seconds / max(1, self._plan.copies))
        transactions = Run(TransactionPlan(0, 0, self._plan.seed, producers=2, rest_seconds=rest / 2))
        self._transactions = transactions
        workers = Workers(self._cluster.bootstrap, transactions)
        self._workers = workers
        self._ledger.begin_anew()
        self._do_faults(producers)
        self._wait_for(self._plan.writes, producers, copies=self._plan.copies)
        self._say("all faults are done; everything is stopped and counted", now=True)
        self._result.longest_gap_seconds = round(self._ledger.longest_gap, 3)
        self._result.longest_gap_of_a_partition_seconds = round(self._ledger.longest_gap_of_a_partition, 3)
        for producer in producers:
            producer.stop(STALL_SECONDS_MAX)
        workers.finish()
        self._judge(transactions)
        return self._result

    def _start_producers(self) -> list[LoadProducer]:
        return [
            LoadProducer(
                self._cluster.bootstrap, TOPIC, PARTITIONS, number=number, ledger=self._ledger,
                records_per_second=self._plan.writes_per_second // PRODUCERS,
                client_settings={"message.timeout.ms": 600_000, "compression.type": codec},
            ).start()
            for number, codec in zip(range(PRODUCERS), ("none", "lz4", "zstd"), strict=True)
        ]  # fmt: skip

    def _do_faults(self, producers: list[LoadProducer]) -> None:
        """As many writes between any two of them; most come when the cluster has recovered from the one before."""
        world = World(self._cluster, self._chance, TOPIC, PARTITIONS)
        counts: Counter[str] = Counter()
        for number in range(self._plan.faults):
            aim = self._plan.writes * (number + 1) // (self._plan.faults + 1)
            self._wait_for(aim, producers)
            if self._chance.random() < SETTLED_FIRST:
                self._cluster.wait_until_settled(seconds=SETTLE_SECONDS_MAX)
            fault = choose(self._chance)
            self._do(fault, world)
            counts[fault.__name__] += 1
            self._result.faults = dict(counts)
            self._say(f"fault {number + 1} of {self._plan.faults}: {self._now}", now=True)

    def _do(self, fault: Fault, world: World) -> None:
        before = self._ledger.longest_gap_of_a_partition
        try:
            self._now = fault(world)
        except BaseException:
            self._now = f"{fault.__name__} failed"
            raise
        if self._ledger.longest_gap_of_a_partition > before:
            self._result.longest_gap_was_during = self._now

    def _wait_for(self, writes: int, producers: list[LoadProducer], *, copies: int = 0) -> None:
        """Until so much is done; AssertionError when nothing moves any more."""
        moved, seen = time.monotonic(), (-1, -1)
        while True:
            for worker in self._workers.all:
                if worker.failure is not None:
                    raise worker.failure
            assert not any(producer.finished for producer in producers), self._ledger.refusals[:5]
            done = (self._ledger.total, self._transactions.recorder.operations)
            # The copies are counted anew each time, so that is done when all else is there and not too often.
            if done[0] >= writes and (not copies or self._copies() >= copies):
                return
            if done != seen:
                moved, seen = time.monotonic(), done
            assert time.monotonic() - moved < STALL_SECONDS_MAX, f"nothing moves at {done}; the last fault: {self._now}"
            self._say("")
            time.sleep(1.0 if copies else 0.05)

    def _copies(self) -> int:
        """Acknowledged copies; those of transactions that were aborted are told apart at the end."""
        history = self._transactions.recorder.history
        return sum(
            isinstance(each, Send) and each.partition.topic == OUTPUT and each.outcome is Outcome.OK for each in history
        )

    def _say(self, words: str, *, now: bool = False) -> None:
        """At most a line in ten seconds, unless there is something to tell."""
        if not now and time.monotonic() - self._said < 10.0:
            return
        self._said = time.monotonic()
        line = (
            f"{self._said - self._begun:6.0f} s  {self._ledger.total:>9,} writes  "
            f"{self._transactions.recorder.operations:>9,} operations  longest gap {self._ledger.longest_gap:.1f} s "
            f"(of a partition {self._ledger.longest_gap_of_a_partition:.1f} s)  {words}"
        )
        print(line, file=sys.stderr, flush=True)

    def _judge(self, transactions: Run) -> None:
        promised = self._ledger.promised()
        self._result.audit = audit(promised, read_log(self._cluster.bootstrap, TOPIC, PARTITIONS))
        self._result.acknowledged = self._result.audit.acknowledged
        self._result.refused = len(self._ledger.refusals)
        self._result.copies = self._copies()
        anomalies: list[Anomaly] = judge(transactions)
        self._result.anomalies = summary(anomalies).splitlines() if anomalies else []
        self._result.anomalies += self._ledger.refusals[:5]
        self._result.seconds = round(time.monotonic() - self._begun, 1)


def run(running: RunningCluster, plan: Plan) -> Result:
    return Soak(running, plan).run()


def in_rounds(plan: Plan, rounds: int, data: Path | None) -> dict[str, Any]:
    """Each round in a process of its own; returns what they found together."""
    found: list[dict[str, Any]] = []
    crashes = 0
    while len(found) < rounds and crashes <= rounds:
        number = len(found) + crashes + 1
        command = [
            sys.executable, "-m", "tests.cluster.soak", "--rounds", "1",
            "--faults", str(-(-plan.faults // rounds)), "--writes", str(-(-plan.writes // rounds)),
            "--copies", str(-(-plan.copies // rounds)), "--seed", str(plan.seed + number),
            "--rate", str(plan.writes_per_second), "--brokers", str(plan.brokers),
        ]  # fmt: skip
        if data is not None:
            command += ["--data", str(data / f"round-{number}")]
        print(f"round {len(found) + 1} of {rounds}, seed {plan.seed + number}", file=sys.stderr, flush=True)
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, cwd=ROOT)
        if done.returncode < 0:
            crashes += 1
            print(f"the clients died of signal {-done.returncode}: once more", file=sys.stderr, flush=True)
            continue
        found.append(json.loads(done.stdout) if done.stdout else {"clean": False})
    return {
        "clean": len(found) == rounds and all(each["clean"] for each in found),
        "client_crashes": crashes,
        **{key: sum(each.get(key, 0) for each in found) for key in ("acknowledged", "copies", "refused", "seconds")},
        **{key: max((each.get(key, 0.0) for each in found), default=0.0) for key in LONGEST},
        "faults": dict(sum((Counter(each.get("faults", {})) for each in found), Counter())),
        "rounds": found,
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.soak", description=__doc__)
    parser.add_argument("--faults", type=int, default=100, help="how many (100)")
    parser.add_argument("--writes", type=int, default=1_000_000, help="acknowledged at least (1000000)")
    parser.add_argument("--copies", type=int, default=100_000, help="through transactional copies at least (100000)")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000_007, help="of all choices by chance")
    parser.add_argument("--rate", type=int, default=3_000, help="writes per second (3000)")
    parser.add_argument("--brokers", type=int, default=3, help="how many (3)")
    parser.add_argument("--rounds", type=int, default=4, help="with a cluster of its own each (4)")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="keep the files and logs of all processes there")
    arguments = parser.parse_args()
    plan = Plan(
        arguments.faults, arguments.writes, arguments.copies, arguments.seed,
        writes_per_second=arguments.rate, brokers=arguments.brokers,
    )  # fmt: skip
    if arguments.rounds > 1:
        together = in_rounds(plan, arguments.rounds, arguments.data)
        print(json.dumps(together))
        return 0 if together["clean"] else 1
    gc.disable()  # a history is millions of objects that all stay; looking through them again and again is waste
    with cluster(
        plan.brokers, settings=SETTINGS, zookeeper=plan.zookeepers, cuttable=True, data_dir=arguments.data
    ) as running:
        result = run(running, plan)
    print(result.to_json())
    return 0 if result.clean else 1


if __name__ == "__main__":
    sys.exit(main())
