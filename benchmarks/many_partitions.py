"""Real brokers with thousands of topics and groups, for benchmarks: made, filled, looked at, upset.

Several brokers have a ZooKeeper of their own, with the heap that `ottla cluster` gives it; everybody has the settings
of a server, not of a test.
"""

import asyncio
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.console_process import batch, cpu_seconds, memory_mb

from ottla.client import groups
from ottla.client.admin import ADMIN_TIMEOUT_MS
from ottla.client.cluster import Cluster, raise_for
from ottla.client.producer import Producer
from ottla.cluster.zookeeper_server import HEAP_MB
from ottla.model.names import TopicPartition
from ottla.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition
from ottla.protocol.records import NewRecord
from ottla.testing.cluster import RunningCluster
from ottla.testing.process import open_descriptors
from ottla.testing.running import ANY_FREE_PORT, RunningBroker, SettingValue
from ottla.testing.zookeeper import ZooKeeperEnsemble

PROBED = "probed"
TOPICS_AT_ONCE = 50
GROUPS_AT_ONCE = 50
WRITTEN_MAX = 4_000
"""Topics that have records."""
CREATE_SECONDS_MAX = 300.0
SETTLE_SECONDS_MAX = 900.0
LOOK_PAUSE_SECONDS = 0.5


class Sizes(NamedTuple):
    topics: int
    partitions: int
    """Of each topic."""
    replicas: int
    groups: int


class Many(NamedTuple):
    """The processes."""

    brokers: Sequence[RunningBroker]
    zookeeper: ZooKeeperEnsemble | None

    @property
    def bootstrap(self) -> str:
        return ",".join(each.bootstrap for each in self.brokers)

    def cpu_seconds(self) -> float:
        return sum(cpu_seconds(each.pid) for each in self.brokers)


@contextmanager
def started(brokers: int, folder: Path) -> Iterator[Many]:
    settings: dict[str, SettingValue] = {"listeners": ANY_FREE_PORT, "log.cleaner.enable": False}
    with ExitStack() as stack:
        if brokers == 1:
            alone = RunningBroker(folder, settings, for_tests=False)
            stack.callback(alone.close)
            yield Many([alone.start()], None)
            return
        zookeeper = ZooKeeperEnsemble(folder, settings={"tickTime": 1_000, "forceSync": "yes"}, heap_mb=HEAP_MB)
        stack.callback(zookeeper.close)
        zookeeper.start()
        several = RunningCluster(folder, brokers=brokers, zookeeper=zookeeper, settings=settings, for_tests=False)
        stack.callback(several.close)
        stack.callback(several.kill)  # before that: nobody wants to wait for a hundred thousand logs to be closed
        several.start()
        yield Many(list(several.brokers.values()), zookeeper)


def some(count: int) -> list[NewRecord]:
    return [NewRecord(None, b"x" * 100, time.time_ns() // 1_000_000)] * count


def topic_name(number: int) -> str:
    return f"topic-{number:05}"


def group_name(number: int) -> str:
    return f"group-{number:05}"


def spread_evenly(name: str, first: int, sizes: Sizes, brokers: Sequence[int]) -> CreatableTopic:
    places = [
        CreatableReplicaAssignment(
            partition_index=number,
            broker_ids=[brokers[(first + number + each) % len(brokers)] for each in range(sizes.replicas)],
        )
        for number in range(sizes.partitions)
    ]
    return CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=places)


async def fill(bootstrap: str, sizes: Sizes) -> None:
    names = [*map(topic_name, range(sizes.topics)), PROBED]
    async with Cluster(bootstrap) as cluster:
        await cluster.metadata([])
        await _create(cluster, names, sizes)
        async with Producer(cluster) as producer:
            for name in names[:WRITTEN_MAX]:
                await producer.send(batch(name, 0, some(10)))
            await producer.flush()
        began = time.perf_counter()
        for at in range(0, sizes.groups, GROUPS_AT_ONCE):
            await asyncio.gather(
                *(
                    groups.commit_offsets(
                        cluster, group_name(number),
                        {TopicPartition(names[(number + each) % sizes.topics], 0): number % 11 for each in range(3)},
                    )
                    for number in range(at, min(at + GROUPS_AT_ONCE, sizes.groups))
                )
            )  # fmt: skip
        took = time.perf_counter() - began
        print(f"{sizes.groups:,} groups with three offsets each made in {took:.0f} s", flush=True)


async def _create(cluster: Cluster, names: Sequence[str], sizes: Sizes) -> None:
    began, waits = time.perf_counter(), []
    for at in range(0, len(names), TOPICS_AT_ONCE):
        asked = [
            spread_evenly(name, (at + number) * sizes.partitions, sizes, sorted(cluster.brokers))
            for number, name in enumerate(names[at : at + TOPICS_AT_ONCE])
        ]
        request = CreateTopicsRequest(topics=asked, timeout_ms=ADMIN_TIMEOUT_MS)
        asked_at = time.perf_counter()
        answer = await cluster.call(request, CreateTopicsResponse, timeout_s=CREATE_SECONDS_MAX)
        waits.append(time.perf_counter() - asked_at)
        for topic in answer.topics:
            raise_for(topic.error_code, topic.error_message or "")
    tenth = max(1, len(waits) // 10)
    first, last = statistics.median(waits[:tenth]), statistics.median(waits[-tenth:])
    print(
        f"{len(names):,} topics of {sizes.partitions} partitions with {sizes.replicas} replicas made in "
        f"{time.perf_counter() - began:.0f} s; {TOPICS_AT_ONCE} in {first:.2f} s at first, in {last:.2f} s at last",
        flush=True,
    )


async def tell_costs(many: Many, seconds: float) -> None:
    """While nobody asks them anything."""
    before = [cpu_seconds(each.pid) for each in many.brokers]
    await asyncio.sleep(seconds)
    for number, each in enumerate(many.brokers):
        print(
            f"broker {number + 1}: {memory_mb(each.pid):.0f} MB, {open_descriptors(each.pid):,} descriptors, "
            f"{(cpu_seconds(each.pid) - before[number]) / seconds:.3f} cores while idle"
        )
    for member in many.zookeeper.members if many.zookeeper is not None else ():
        print(f"ZooKeeper: {memory_mb(member.pid):.0f} MB, with a heap of {HEAP_MB} MB at most")


async def upset(many: Many, sizes: Sizes) -> None:
    """One broker is stopped and started, then killed and started."""
    victim = many.brokers[-1]
    others = ",".join(each.bootstrap for each in many.brokers[:-1])
    wanted = sizes.replicas

    def in_sync(metadata: MetadataResponse) -> bool:
        return all(len(each.isr_nodes) == wanted for each in _filled(metadata))

    def led(metadata: MetadataResponse) -> bool:
        alive = {broker.node_id for broker in metadata.brokers}
        return len(alive) < len(many.brokers) and all(each.leader_id in alive for each in _filled(metadata))

    async with Cluster(many.brokers[0].bootstrap) as cluster:
        print(f"a broker is stopped in order in {_timed(lambda: victim.stop(SETTLE_SECONDS_MAX)):.1f} s", flush=True)
        print(f"and accepts connections again {_timed(victim.start):.1f} s after its start", flush=True)
        print(f"all replicas are in sync {await _until(cluster, in_sync):.1f} s later", flush=True)
        victim.kill()
        if sizes.replicas > 1 and others:
            print(f"what it led has other leaders {await _until(cluster, led):.1f} s after it was killed", flush=True)
        print(f"it accepts connections {_timed(victim.start):.1f} s after its start", flush=True)
        print(f"all replicas are in sync {await _until(cluster, in_sync):.1f} s later", flush=True)


def _filled(metadata: MetadataResponse) -> Iterator[MetadataResponsePartition]:
    return (each for topic in metadata.topics if (topic.name or "").startswith("topic-") for each in topic.partitions)


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


async def _until(cluster: Cluster, reached: Callable[[MetadataResponse], bool]) -> float:
    began = time.perf_counter()
    while not reached(await cluster.metadata(None)):
        assert time.perf_counter() - began < SETTLE_SECONDS_MAX, "the cluster does not settle"
        await asyncio.sleep(LOOK_PAUSE_SECONDS)
    return time.perf_counter() - began
