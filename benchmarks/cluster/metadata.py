"""What the picture of a cluster costs, by its size: python -m benchmarks.cluster.metadata [--partitions 2000,...].

Topics of 100 partitions with three replicas, a broker for every 10,000 replicas. In this process, on the real code and
without a ZooKeeper: building the picture from its documents, its memory, one change of one partition's state with the
controller looking on, and what the controller decides when a broker is gone. The result is one JSON document.
"""

import argparse
import gc
import json
import resource
import statistics
import time
from collections.abc import Iterator
from uuid import UUID

from ottla.broker.controller.holders import Holders
from ottla.broker.controller.reassignments import next_state
from ottla.cluster.documents import change_of_documents, partition_document, partition_path, topic_document, topic_path
from ottla.cluster.image import BrokerImage, ClusterImage, PartitionImage

TOPIC_PARTITIONS = 100
REPLICAS = 3
REPLICAS_PER_BROKER = 10_000
MIN_IN_SYNC = 2
CHANGES = 2_000
Documents = Iterator[tuple[str, bytes]]


def _partition(number: int, brokers: int) -> PartitionImage:
    replicas = tuple((number + step) % brokers + 1 for step in range(REPLICAS))
    return PartitionImage(replicas[0], 0, replicas, replicas)


def _documents(partitions: int, brokers: int) -> Documents:
    for topic in range(partitions // TOPIC_PARTITIONS):
        name = f"topic-{topic}"
        held = [_partition(topic * TOPIC_PARTITIONS + number, brokers) for number in range(TOPIC_PARTITIONS)]
        yield topic_path(name), topic_document(UUID(int=topic + 1), held)
        for number, each in enumerate(held):
            yield partition_path(name, number), partition_document(each)


def _resident_mb() -> float:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


def _one_change(image: ClusterImage, holders: Holders, number: int, epoch: int) -> tuple[ClusterImage, float]:
    """Apply a new state of one partition to the picture, and let the controller take note of it."""
    topic, partition = divmod(number, TOPIC_PARTITIONS)
    name = f"topic-{topic}"
    before = image.topics[name].partitions[partition]
    document = partition_document(PartitionImage(before.leader, epoch, before.replicas, before.isr))
    begun = time.perf_counter()
    change = change_of_documents(image, [(partition_path(name, partition), document)])
    holders.apply(change)
    return change.new, time.perf_counter() - begun


def measure(partitions: int) -> dict[str, float]:
    brokers = max(REPLICAS, partitions * REPLICAS // REPLICAS_PER_BROKER)
    registered = {number: BrokerImage(number, None, ()) for number in range(1, brokers + 1)}
    documents = list(_documents(partitions, brokers))
    gc.collect()
    before_mb = _resident_mb()
    begun = time.perf_counter()
    image = change_of_documents(ClusterImage(cluster_id="c", brokers=registered), documents).new
    built_s = time.perf_counter() - begun
    image_mb = _resident_mb() - before_mb
    begun = time.perf_counter()
    holders = Holders(image)
    taken_up_s = time.perf_counter() - begun
    times = []
    for step in range(CHANGES):
        image, spent = _one_change(image, holders, step * 7919 % partitions, step + 1)
        times.append(spent)
    begun = time.perf_counter()
    alive = {number: each for number, each in registered.items() if number != 1}
    decided = [
        next_state(image.topics[name].partitions[number], alive, floor=MIN_IN_SYNC) for name, number in holders.of(1)
    ]
    decided_s = time.perf_counter() - begun
    assert all(each is not None for each in decided)
    return {
        "partitions": partitions,
        "brokers": brokers,
        "picture_built_s": round(built_s, 3),
        "picture_mb": round(image_mb, 1),
        "controller_takes_up_s": round(taken_up_s, 3),
        "one_change_us": round(statistics.median(times) * 1e6, 1),
        "partitions_of_a_lost_broker": len(decided),
        "decided_s": round(decided_s, 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster.metadata", description=__doc__)
    parser.add_argument("--partitions", default="2000,20000,200000", help="sizes, with commas between them")
    options = parser.parse_args()
    print(json.dumps([measure(int(size)) for size in options.partitions.split(",")], indent=1))


if __name__ == "__main__":
    main()
