"""A broker that leads many partitions dies: python -m benchmarks.cluster.failover [--partitions 500] [--rounds 3].

Where the time goes: until its session expires, until the controller has decided and written who leads, until every
broker knows it, until the first write to each partition is acknowledged. The result is one JSON document.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.cluster.clusters import OttlaCluster, admin_of, fresh_topic, wait_until_settled
from benchmarks.cluster.watching import FirstWrites, Followers, Registration, decision_of

from ottla.testing.load import LoadProducer
from ottla.testing.waiting import wait_until

VICTIM = 2
WRITES_PER_SECOND = 2_000


def kill_and_watch(cluster: OttlaCluster, topic: str, partitions: int) -> dict[str, float]:
    """One round: the broker is killed, the rest recover, the broker comes back."""
    running = cluster.cluster
    others = [each for number, each in running.brokers.items() if number != VICTIM]
    ledger = FirstWrites()
    producer = LoadProducer(
        cluster.bootstrap, topic, partitions, number=0, ledger=ledger, records_per_second=WRITES_PER_SECOND,
        client_settings={"message.timeout.ms": 300_000, "topic.metadata.refresh.interval.ms": 1_000},
    ).start()  # fmt: skip
    registration = Registration(running.zookeeper.connect, VICTIM)
    try:
        wait_until(lambda: ledger.total > 2 * partitions, "records are acknowledged", seconds=120)
        with Followers(others, topic, VICTIM) as followers:
            began = time.time()
            running.brokers[VICTIM].kill()
            killed = time.monotonic()
            ledger.mark()
            expired = registration.wait()
            known = followers.wait()
            wait_until(lambda: len(ledger.first) == partitions, "every partition takes records", seconds=300)
    finally:
        producer.stop(120)
        registration.close()
    decision = decision_of(others, began)
    first = sorted(ledger.first.values())
    running.brokers[VICTIM].start()
    begun = time.monotonic()
    wait_until_settled(admin_of(cluster), topic)
    return {
        "partitions": partitions,
        "moved": decision.moved,
        "session_expiry_s": round(expired - killed, 3),
        "decision_s": round((decision.begun_ms + decision.decided_ms) / 1000, 4),
        "commit_s": round(decision.committed_ms / 1000, 4),
        "all_brokers_know_s": round(known - expired, 3),
        "first_write_s": round(first[0] - expired, 3),
        "median_first_write_s": round(statistics.median(first) - expired, 3),
        "last_first_write_s": round(first[-1] - expired, 3),
        "whole_s": round(first[-1] - killed, 3),
        "in_sync_again_s": round(time.monotonic() - begun, 3),
    }


def measure(partitions: int, rounds: int) -> list[dict[str, float]]:
    with tempfile.TemporaryDirectory(prefix="ottla-failover-") as folder:
        cluster = OttlaCluster(Path(folder))
        try:
            cluster.start()
            orders = ([VICTIM, 3, 1], [VICTIM, 1, 3])
            found = []
            for _ in range(rounds):
                # A topic of its own for each round: after a failover the leaders are elsewhere.
                topic = fresh_topic(cluster, partitions, assignment=[orders[n % 2] for n in range(partitions)])
                found.append(kill_and_watch(cluster, topic, partitions))
                admin = admin_of(cluster)
                admin.delete_topics([topic])[topic].result(60)
            return found
        finally:
            cluster.stop()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster.failover", description=__doc__)
    parser.add_argument("--partitions", type=int, default=500, help="that the broker leads (500)")
    parser.add_argument("--rounds", type=int, default=3, help="how often it is killed (3)")
    arguments = parser.parse_args()
    print(json.dumps({"rounds": measure(arguments.partitions, arguments.rounds)}, indent=1))


if __name__ == "__main__":
    main()
