"""What goes wrong, when, and for how long: all by chance, each fault with a name and an end."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from tests.simulation.clients import Client, Failures

from ottla.model.names import TopicPartition
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from ottla.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions

if TYPE_CHECKING:
    from tests.simulation.brokers import SimulatedBroker
    from tests.simulation.world import World

SCRATCH = "scratch"
LOSING_CRASHES = 0.1
"""How often a machine may crash although that loses what was acknowledged: everybody in sync lost it."""


class Faults:
    def __init__(self, world: "World", chance: random.Random) -> None:
        self._world = world
        self._chance = chance
        self.done: list[str] = []
        self.elections: set[TopicPartition] = set()
        """Partitions for which somebody asked for an election or a move."""
        self._under_way: set[asyncio.Task[None]] = set()
        self._admin: Client | None = None
        self._kinds: dict[str, tuple[int, Callable[[], Awaitable[None]]]] = {
            "kill": (4, self._kill),
            "crash": (4, self._crash),
            "stop": (2, self._stop),
            "pause": (4, self._pause),
            "partition": (4, self._partition),
            "one-way": (2, self._one_way),
            "cut-off": (3, self._cut_off),
            "breaks": (2, self._breaks),
            "slow": (2, self._slow),
            "zookeeper-isolated": (3, self._isolate_from_zookeeper),
            "zookeeper-cut": (2, self._cut_from_zookeeper),
            "zookeeper-expiry": (3, self._expire),
            "zookeeper-down": (2, self._zookeeper_down),
            "elect": (1, self._elect),
            "reassign": (3, self._reassign),
            "scratch": (1, self._scratch),
        }

    async def run(self) -> None:
        """Spread over the run, several at a time if it comes to that."""
        plan = self._world.plan
        moments = sorted(self._chance.uniform(0.0, plan.seconds) for _ in range(plan.faults))
        started = self._world.loop.time()
        names = [name for name in self._kinds if not plan.only or name in plan.only]
        weights = [self._kinds[name][0] for name in names]
        for moment in moments:
            await asyncio.sleep(max(0.0, started + moment - self._world.loop.time()))
            (name,) = self._chance.choices(names, weights)
            task = self._world.loop.create_task(self._one(name))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)
        await asyncio.sleep(max(0.0, started + plan.seconds - self._world.loop.time()))

    async def _one(self, name: str) -> None:
        await self._kinds[name][1]()

    def _note(self, name: str, details: object = "") -> None:
        self.done.append(f"{name} {details}".rstrip())
        self._world.trace("*", f"{name} {details}")
        for each in self._world.invariants:
            each.on_sample()

    async def heal(self) -> None:
        """The last fault is over: everything that can work works."""
        for task in list(self._under_way):
            task.cancel()
        self._note("healed")
        world = self._world
        world.network.break_chance = 0.0
        world.network.slow_chance = 0.02
        world.network.heal()
        world.zookeeper.start()
        for broker in world.brokers:
            world.zookeeper.heal(broker.site)
            if broker.host.paused:
                world.loop.resume(broker.host)
        for broker in world.brokers:
            if broker.stopping is not None:
                await asyncio.wait([broker.stopping])
            if not broker.runs:
                broker.start()

    # -- brokers

    def _some(self, *, running: bool = True) -> "SimulatedBroker | None":
        found = [broker for broker in self._world.brokers if broker.runs == running and not broker.host.paused]
        return self._chance.choice(found) if found else None

    def _while_down(self) -> float:
        return self._chance.choice((0.05, 0.5, 2.0, 5.0, 8.0)) * self._chance.uniform(0.5, 1.5)

    async def _kill(self) -> None:
        broker = self._some()
        if broker is not None:
            self._note("kill", broker.site)
            broker.kill()
            await self._start_later(broker)

    async def _crash(self) -> None:
        safe = [
            broker
            for broker in self._world.brokers
            if broker.runs and not broker.host.paused and not self._world.observer.would_lose(broker.id)
        ]
        broker = self._chance.choice(safe) if safe else None
        if broker is None or self._chance.random() < LOSING_CRASHES:
            broker = self._some()
        if broker is not None and (safe or self._chance.random() < LOSING_CRASHES):
            self._note("crash", broker.site)
            self._world.observer.machine_crashed(broker.id)
            broker.kill(crash=True)
            await self._start_later(broker)

    async def _stop(self) -> None:
        broker = self._some()
        if broker is None:
            return
        self._note("stop", broker.site)
        await asyncio.wait([broker.stop()])
        self._note("stopped", broker.site)
        await self._start_later(broker)

    async def _start_later(self, broker: "SimulatedBroker") -> None:
        lives = broker.lives
        await asyncio.sleep(self._while_down())
        if broker.lives == lives and not broker.runs:
            self._note("start", broker.site)
            broker.start()

    async def _pause(self) -> None:
        broker = self._some()
        if broker is None:
            return
        host = broker.host
        self._note("pause", broker.site)
        host.paused = True
        await asyncio.sleep(self._while_down())
        if host.paused:
            self._note("resume", broker.site)
            self._world.loop.resume(host)

    # -- the network

    def _sides(self) -> tuple[list[str], list[str]]:
        sites = [broker.site for broker in self._world.brokers]
        one = self._chance.sample(sites, self._chance.randint(1, len(sites) - 1))
        other = [site for site in sites if site not in one]
        for number in range(1, 12):
            (one if self._chance.random() < 0.5 else other).append(f"client-{number}")
        return one, other

    async def _partition(self) -> None:
        one, other = self._sides()
        self._note("partition", f"{[site for site in one if site[0] == 'b']}")
        self._world.network.cut(one, other)
        await asyncio.sleep(self._while_down())
        self._note("heal")
        self._world.network.heal()

    async def _one_way(self) -> None:
        one, other = self._chance.sample([b.site for b in self._world.brokers], 2)
        self._note("one-way", f"{one} to {other}")
        self._world.network.cut([one], [other], both_ways=False)
        await asyncio.sleep(self._while_down())
        self._note("heal")
        self._world.network.heal()

    async def _cut_off(self) -> None:
        """A broker reaches neither the others nor ZooKeeper, but clients reach it: it must not do them any harm."""
        broker = self._chance.choice(self._world.brokers)
        self._note("cut-off", broker.site)
        self._world.network.cut([broker.site], [each.site for each in self._world.brokers if each is not broker])
        self._world.zookeeper.isolate(broker.site)
        await asyncio.sleep(self._while_down())
        self._note("heal")
        self._world.zookeeper.heal(broker.site)
        self._world.network.heal()

    async def _breaks(self) -> None:
        self._note("breaks")
        self._world.network.break_chance = self._chance.choice((0.01, 0.05, 0.2))
        await asyncio.sleep(self._chance.uniform(0.5, 3.0))
        self._world.network.break_chance = 0.0

    async def _slow(self) -> None:
        self._note("slow")
        self._world.network.slow_chance = self._chance.choice((0.1, 0.5))
        await asyncio.sleep(self._chance.uniform(0.5, 3.0))
        self._world.network.slow_chance = 0.02

    # -- ZooKeeper

    async def _isolate_from_zookeeper(self) -> None:
        broker = self._chance.choice(self._world.brokers)
        self._note("zookeeper-isolated", broker.site)
        self._world.zookeeper.isolate(broker.site)
        await asyncio.sleep(self._while_down())
        self._note("zookeeper-heal", broker.site)
        self._world.zookeeper.heal(broker.site)

    async def _cut_from_zookeeper(self) -> None:
        broker = self._chance.choice(self._world.brokers)
        self._note("zookeeper-cut", broker.site)
        self._world.zookeeper.cut(broker.site)

    async def _expire(self) -> None:
        broker = self._chance.choice(self._world.brokers)
        self._note("zookeeper-expiry", broker.site)
        self._world.zookeeper.expire(broker.site)

    async def _zookeeper_down(self) -> None:
        self._note("zookeeper-down")
        self._world.zookeeper.stop()
        await asyncio.sleep(self._while_down())
        self._note("zookeeper-up")
        self._world.zookeeper.start()

    # -- what administrators do

    async def _administer(self, work: Callable[[Client], Awaitable[object]]) -> None:
        """Asked once; whatever becomes of it, the cluster has to be well afterwards."""
        if self._admin is None:
            self._admin = self._world.new_client(Client)
        try:
            await self._admin.host_task(work(self._admin))
        except Failures as error:
            self._world.trace("*", f"refused: {error}")

    def _some_partition(self) -> TopicPartition | None:
        known = sorted(self._world.observer.replicas)
        return self._chance.choice(known) if known else None

    async def _elect(self) -> None:
        partition = self._some_partition()
        if partition is not None:
            self._note("elect", partition)
            self.elections.add(partition)
            wanted = TopicPartitions(topic=partition.topic, partitions=[partition.partition])
            request = ElectLeadersRequest(election_type=0, topic_partitions=[wanted])
            await self._administer(lambda admin: admin.call(admin.any_broker(), request, ElectLeadersResponse))

    async def _reassign(self) -> None:
        partition = self._some_partition()
        if partition is None:
            return
        ids = self._world.broker_ids
        replicas = self._chance.sample(ids, min(3, len(ids)))
        self._note("reassign", f"{partition} to {replicas}")
        self.elections.add(partition)
        wanted = ReassignablePartition(partition_index=partition.partition, replicas=replicas)
        request = AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name=partition.topic, partitions=[wanted])]
        )
        await self._administer(
            lambda admin: admin.call(admin.any_broker(), request, AlterPartitionReassignmentsResponse)
        )

    async def _scratch(self) -> None:
        """A topic comes and goes, and another of its name comes."""
        if SCRATCH in self._world.observer.topic_ids:
            self._note("delete", SCRATCH)
            gone = DeleteTopicsRequest(topics=[DeleteTopicState(name=SCRATCH)], timeout_ms=2_000)
            await self._administer(lambda admin: admin.call(admin.any_broker(), gone, DeleteTopicsResponse))
            if self._chance.random() < 0.5:
                return
        self._note("create", SCRATCH)
        topic = CreatableTopic(name=SCRATCH, num_partitions=self._chance.randint(1, 3), replication_factor=2)
        made = CreateTopicsRequest(topics=[topic], timeout_ms=2_000)
        await self._administer(lambda admin: admin.call(admin.any_broker(), made, CreateTopicsResponse))
