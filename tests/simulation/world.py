"""One run: a cluster of real brokers, clients, faults by chance, then peace, and a judgement; all from one seed."""

import asyncio
import atexit
import contextlib
import gc
import hashlib
import itertools
import logging
import os
import random
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar
from unittest import mock

from tests.simulation import invariants
from tests.simulation.back_to_back import BackToBackTransactor
from tests.simulation.brokers import SESSION_TIMEOUT_MS, SimulatedBroker
from tests.simulation.clients import Client, Failures, History, PlainProducer, Reader
from tests.simulation.disk import names_watched
from tests.simulation.faults import Faults
from tests.simulation.invariants import EverythingHeals, Invariant, NothingUnexpected, Violation
from tests.simulation.loop import HOST, START_SECONDS, Deadlock, Endless, Host, SimulatedLoop, host_context
from tests.simulation.network import Network
from tests.simulation.observer import Observer, StateWrite
from tests.simulation.pipelining import PipeliningProducer
from tests.simulation.transactors import Committer, Copier, Transactor
from tests.simulation.zookeeper_model import ZooKeeperModel

from ottla.broker.replication.partition import Partition
from ottla.broker.storage import manager
from ottla.client import connection
from ottla.cluster.store import MetadataStore
from ottla.cluster.zookeeper.store import ZooKeeperStore
from ottla.config.broker import BrokerSettings
from ottla.model import names
from ottla.model.errors import ErrorCode
from ottla.model.names import TopicPartition
from ottla.protocol import codec
from ottla.protocol.messages.api_versions import ApiVersionsResponse
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.schema import TopLevel

M = TypeVar("M", bound=TopLevel)
SHARED_MEMORY = "/dev/shm"
SAMPLE_SECONDS = 0.2
HEAL_SECONDS_MAX = 90.0
RUN_SECONDS_MAX = 600.0
STORE_SECONDS_MAX = 5.0
INPUT, OUTPUT = "input", "output"
RUNS_BETWEEN_COLLECTIONS = 10
_runs = itertools.count()


@dataclass
class Plan:
    """What a run is made of; chance picks it, a test may say otherwise."""

    brokers: int
    partitions: int
    seconds: float
    """For how long faults and clients go on."""
    faults: int
    busy_while_healing: bool = True
    """Whether clients go on until everything has healed, or only end what they are at."""
    settings: dict[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    """Names of the faults to choose from; all if empty."""

    @staticmethod
    def by_chance(chance: random.Random) -> "Plan":
        return Plan(
            brokers=chance.choice((3, 3, 3, 4, 5)),
            partitions=chance.choice((1, 1, 2)),
            seconds=chance.choice((2.0, 4.0, 4.0, 8.0)) * chance.uniform(0.5, 1.0),
            faults=chance.randint(2, 8),
            busy_while_healing=chance.random() < 0.25,
            settings={"log.roll.ms": "700"} if chance.random() < 0.3 else {},
        )


@dataclass
class Result:
    seed: int
    violations: list[Violation]
    trace: str
    """A hash of everything that happened, in order. Two runs of one seed have the same."""
    virtual_seconds: float
    requests: int
    faults: list[str]
    acknowledged: int
    excused: int
    leader_changes: int


class World:
    def __init__(self, seed: int, plan: Plan | None = None, *, verbose: bool = False, directory: str = "") -> None:
        self.seed = seed
        self.plan = plan or Plan.by_chance(random.Random(f"{seed}/plan"))
        self.loop = SimulatedLoop(random.Random(f"{seed}/threads"))
        self.network = Network(self.loop, random.Random(f"{seed}/network"), self.trace)
        zookeeper_chance = random.Random(f"{seed}/zookeeper")
        self.zookeeper = ZooKeeperModel(self.loop, latency=lambda: 0.0002 + zookeeper_chance.random() * 0.003)
        self.observer = Observer(self.zookeeper)
        self.history = History()
        self.observer.now = self.history.now
        self.violations: list[Violation] = []
        self.logged_errors: list[str] = []
        self.final_values: dict[TopicPartition, dict[int, int]] = {}
        """Value to offset, of every partition, as a last reader found them."""
        self.everything_read = False
        self.leader_changes = 0
        self.observer.on_write.append(self._count_leaders)
        self.copied = {INPUT: OUTPUT}
        self.directory = directory
        self._verbose = verbose
        self._hash = hashlib.blake2b(digest_size=12)
        chance = random.Random(f"{seed}/machines")
        self.brokers = [
            SimulatedBroker(
                number, f"{directory}/{number}", self.loop, self.network, self._open_store, chance,
                self.plan.settings,
            )
            for number in range(1, self.plan.brokers + 1)
        ]  # fmt: skip
        self.faults = Faults(self, random.Random(f"{seed}/faults"))
        self.invariants: list[Invariant] = [kind(self) for kind in invariants.ALL]
        for each in self.invariants:
            self.observer.on_write.append(each.on_write)
            self.observer.on_commit.append(each.on_commit)
        self._clients: list[PlainProducer | Reader | Committer | Transactor] = []
        self._client_tasks: list[asyncio.Future[Any]] = []
        self._client_numbers = itertools.count(1)

    # -- what others ask and tell

    @property
    def broker_ids(self) -> list[int]:
        return [broker.id for broker in self.brokers]

    def broker(self, number: int) -> SimulatedBroker:
        return self.brokers[number - 1]

    def leader_of(self, partition: TopicPartition) -> Partition | None:
        """The leader's own partition, if it runs and knows."""
        state = self.observer.states.get(partition)
        node = self.broker(state.leader).node if state is not None and state.leader > 0 else None
        found = node.partitions.find(*partition) if node is not None else None
        return found if found is not None and found.is_leader else None

    def _count_leaders(self, write: StateWrite) -> None:
        if write.before is not None and write.after is not None and write.after.leader not in (-1, write.before.leader):
            self.leader_changes += 1

    def violated(self, invariant: str, what: str) -> None:
        self.violations.append(Violation(invariant, what, self.loop.time()))
        self.trace("!", f"{invariant}: {what}")

    def trace(self, what: str, details: object) -> None:
        line = f"{self.loop.time():.6f} {what} {details}"
        self._hash.update(line.encode())
        if self._verbose and what[0] not in "<>":
            print(line)

    def heard(self, record: logging.LogRecord) -> None:
        """Something was logged by a broker."""
        host = HOST.get()
        words = record.getMessage()
        if self._verbose:
            print(f"{self.loop.time():.6f}     {host.name if host else '-'}: {words}")
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            where = error.__traceback__
            while where is not None and where.tb_next is not None:
                where = where.tb_next
            place = f"{where.tb_frame.f_code.co_filename}:{where.tb_lineno}" if where is not None else "?"
            self.logged_errors.append(f"{words}: {error!r} at {place}")

    # -- the run

    async def main(self) -> None:
        for broker in self.brokers:
            broker.start()
        sampling = self.loop.create_task(self._sample())
        await self._create_topics()
        self._start_clients()
        await self.faults.run()
        await self.faults.heal()
        if not self.plan.busy_while_healing:
            self._end_clients()
        await self._wait_until_healed()
        if not self.violations:
            await self._finish()
        sampling.cancel()
        for each in self.invariants:
            each.on_end()

    async def _sample(self) -> None:
        while True:
            await asyncio.sleep(SAMPLE_SECONDS)
            for each in self.invariants:
                each.on_sample()

    async def _create_topics(self) -> None:
        client = self.new_client(Client)
        await client.host_task(self._create(client, INPUT, OUTPUT))

    async def _create(self, client: Client, *names: str) -> None:
        """Until they are there, whoever answers."""
        topics = [
            CreatableTopic(name=name, num_partitions=self.plan.partitions, replication_factor=3) for name in names
        ]
        while topics:
            try:
                request = CreateTopicsRequest(topics=topics, timeout_ms=5_000)
                response = await client.call(client.any_broker(), request, CreateTopicsResponse)
            except Failures:
                await client.pause()
                continue
            done = {
                result.name
                for result in response.topics
                if ErrorCode(result.error_code) in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
            }
            topics = [topic for topic in topics if topic.name not in done]
            await client.pause()

    def new_client(self, kind: Callable[..., Any], **options: Any) -> Any:
        number = next(self._client_numbers)
        chance = random.Random(f"{self.seed}/client/{number}")
        return kind(Host(f"client-{number}"), self.broker_ids, chance, self.history, loop=self.loop, **options)

    def _start_clients(self) -> None:
        inputs, outputs = (
            [TopicPartition(topic, number) for number in range(self.plan.partitions)] for topic in (INPUT, OUTPUT)
        )
        self._clients = [
            self.new_client(PlainProducer, partitions=inputs, acks=-1),
            self.new_client(PlainProducer, partitions=inputs, acks=1),
            self.new_client(PipeliningProducer, partitions=inputs, acks=-1),
            self.new_client(Transactor, transactional_id="transactor", partitions=inputs),
            self.new_client(BackToBackTransactor, transactional_id="back-to-back", partitions=inputs + outputs),
            self.new_client(Copier, transactional_id="copier", group="copiers", source=inputs[0], target=outputs[0]),
            self.new_client(Reader, partitions=inputs + outputs, committed=True),
            self.new_client(Reader, partitions=inputs + outputs, committed=False),
            self.new_client(Committer, group="committers", partition=inputs[0]),
        ]
        self.copied = {} if self.plan.partitions > 1 else {INPUT: OUTPUT}  # the copier carries over one partition
        self._client_tasks = [client.host_task(client.run()) for client in self._clients]

    async def _wait_until_healed(self) -> None:
        ends = self.loop.time() + HEAL_SECONDS_MAX
        while self._unhealed():
            if self.loop.time() > ends:
                self._not_healed(self._unhealed())
                return
            await asyncio.sleep(SAMPLE_SECONDS)

    def _unhealed(self) -> list[str]:
        """What is still wrong."""
        wrong = [f"{broker.site} does not serve" for broker in self.brokers if not broker.ready]
        for partition, replicas in self.observer.replicas.items():
            state = self.observer.states.get(partition)
            if state is None or state.leader < 0 or set(state.isr) != set(replicas):
                wrong.append(f"{partition} is held by {replicas}: {state}")
            elif self.leader_of(partition) is None:
                wrong.append(f"{partition}: {state.leader} does not know that it leads")
        return wrong

    def _uncommitted(self) -> bool:
        leaders = [self.leader_of(partition) for partition in self.observer.states]
        return any(leader is None or leader.high_watermark < leader.log.end_offset for leader in leaders)

    async def _finish(self) -> None:
        """Let clients end what they are at, write something everywhere, then read everything."""
        self._end_clients()
        steps = {
            "clients end what they are at": self._clients_ended,
            "every partition takes a record": self._write_everywhere,
            "everything is committed": self._all_committed,
            "everything is carried over": self._carried_over,
            "everything is read": self._read_all,
        }
        for what, step in steps.items():
            try:
                async with asyncio.timeout(HEAL_SECONDS_MAX):
                    await step()
            except TimeoutError:
                self._not_healed([f"it does not come to this: {what}"])
                return
        self.everything_read = True

    async def _clients_ended(self) -> None:
        await asyncio.gather(*self._client_tasks)

    async def _write_everywhere(self) -> None:
        for client in self._clients:
            if isinstance(client, PlainProducer):
                for partition in client.partitions:
                    await client.host_task(client.send(partition, 1))

    async def _all_committed(self) -> None:
        """What only a leader acknowledged is on its way to the others."""
        while self._uncommitted():  # noqa: ASYNC110
            await asyncio.sleep(SAMPLE_SECONDS)

    async def _carried_over(self) -> None:
        for client in self._clients:
            if isinstance(client, Copier) and not self.observer.excused:  # else its position may lie beyond the end
                await client.host_task(client.catch_up())

    async def _read_all(self) -> None:
        partitions = [
            TopicPartition(topic, number) for topic in (INPUT, OUTPUT) for number in range(self.plan.partitions)
        ]
        # Transactions that the lost part of their coordinator's log told of stay open.
        lost = any(partition.topic in names.INTERNAL_TOPICS for partition in self.observer.excused)
        for committed in (False,) if lost else (True, False):
            reader: Reader = self.new_client(Reader, partitions=partitions, committed=committed)
            for partition in partitions:
                values = await reader.host_task(reader.read_to_end(partition))
                if not committed:
                    self.final_values[partition] = {value: offset for offset, value in values}

    def _end_clients(self) -> None:
        for client in self._clients:
            client.stopping = True

    def _not_healed(self, what: list[str]) -> None:
        for each in self.invariants:
            if isinstance(each, EverythingHeals):
                each.not_healed("; ".join(what))

    async def _open_store(self, settings: BrokerSettings, site: str) -> MetadataStore:
        client = self.zookeeper.client(site, session_timeout_ms=SESSION_TIMEOUT_MS)
        return await ZooKeeperStore.open(client, STORE_SECONDS_MAX)

    def result(self) -> Result:
        return Result(
            seed=self.seed,
            violations=self.violations,
            trace=self._hash.hexdigest(),
            virtual_seconds=self.loop.time() - START_SECONDS,
            requests=self.network.requests,
            faults=self.faults.done,
            acknowledged=len(self.history.acknowledged),
            excused=len(self.observer.excused),
            leader_changes=self.leader_changes,
        )


# -- running one


def run(seed: int, plan: Plan | None = None, *, verbose: bool = False) -> Result:
    """Run one seed in this process. What the run changes of the process is put back."""
    directory = tempfile.mkdtemp(
        prefix="ottla-simulation-", dir=SHARED_MEMORY if os.path.isdir(SHARED_MEMORY) else None
    )
    random.seed(seed)
    try:
        with _everything_by_chance(seed):
            world = World(seed, plan, verbose=verbose, directory=directory)
            with names_watched([broker.machine for broker in world.brokers]), _logs_heard(world):
                _run_to_end(world)
                result = world.result()
            with _unheard():
                _let_go(world)
            return result
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _run_to_end(world: World) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(RUN_SECONDS_MAX):
            await world.main()

    try:
        world.loop.run(world.loop.create_task(bounded()))
    except (Deadlock, Endless, TimeoutError) as error:
        world.violated("EverythingHeals", f"the run does not end: {error!r}")
        for each in world.invariants:
            if isinstance(each, NothingUnexpected):
                each.on_end()


def _let_go(world: World) -> None:
    """What was left half done is collected now, where nothing that it tidies up can reach another run."""
    for broker in world.brokers:
        if broker.runs:
            broker.kill()
        broker.host.kept.clear()
    world.loop.close()
    world.__dict__.clear()


_served: dict[bytes, ApiVersionsResponse] = {}


def _decode(message: type[M], version: int, frame: Any, position: int = 0) -> M:
    """What every broker says it serves is decoded once: it is a tenth of the work otherwise."""
    if message is not ApiVersionsResponse:
        return codec.decode(message, version, frame, position)
    told = bytes(frame[position:])
    if told not in _served:
        _served[told] = codec.decode(ApiVersionsResponse, version, frame, position)
    return _served[told]  # type: ignore[return-value]


class _InlineExecutor:
    """Does what it is given at once."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __enter__(self) -> "_InlineExecutor":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, work: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        try:
            future.set_result(work(*arguments))
        except BaseException as error:  # noqa: BLE001 - the future carries it, like an executor's
            future.set_exception(error)
        return future


@contextlib.contextmanager
def _everything_by_chance(seed: int) -> Iterator[None]:
    """Random bytes from the seed, no threads, and no collection of garbage in the middle of things."""
    chance = random.Random(f"{seed}/bytes")
    gc.disable()
    try:
        with (
            mock.patch.object(os, "urandom", chance.randbytes),
            mock.patch.object(names.new_topic_id, "__defaults__", (chance.randbytes,)),
            mock.patch.object(manager, "ThreadPoolExecutor", _InlineExecutor),
            mock.patch.object(connection, "decode", _decode),
        ):
            yield
            if next(_runs) % RUNS_BETWEEN_COLLECTIONS == 0:
                collect()
    finally:
        gc.enable()


def collect() -> None:
    """Let go of what was left half done, open files among it. Its last words are of no interest."""
    with _unheard():
        gc.collect()


@contextlib.contextmanager
def _unheard() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    with mock.patch.object(sys, "unraisablehook"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    logging.disable(before)


atexit.register(collect)


class _Hearing(logging.Handler):
    def __init__(self, world: World, level: int) -> None:
        super().__init__(level)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        self._world.heard(record)


@contextlib.contextmanager
def _logs_heard(world: World) -> Iterator[None]:
    logger = logging.getLogger("ottla")
    before = (logger.level, logger.propagate, list(logger.handlers))
    level = logging.INFO if world._verbose else logging.ERROR
    logger.setLevel(level)
    logger.propagate = False
    logger.handlers = [_Hearing(world, level)]
    try:
        yield
    finally:
        logger.setLevel(before[0])
        logger.propagate, logger.handlers = before[1], before[2]


__all__ = ["Plan", "Result", "World", "host_context", "run"]
