"""Several brokers in one process: their logs, partitions, followers and handlers, on one store and without sockets.

Requests between brokers go through the codec and the real handlers. Links can be cut, brokers can stop and come back,
and a broker can be kept from hearing about changes of the metadata.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast
from uuid import uuid4

from msgspec.structs import replace

from ottla.broker.handlers.context import Broker, Call, Parked, Raw
from ottla.broker.handlers.fetching.sessions import FetchSessions
from ottla.broker.quotas.clients import ClientQuotas
from ottla.broker.replication.fetchers import ReplicaFetchers
from ottla.broker.replication.isr import IsrWriter
from ottla.broker.replication.partition import Partition
from ottla.broker.replication.partitions import Partitions
from ottla.broker.replication.peers import PeerUnavailable
from ottla.broker.replication.throttling import leader_throttle
from ottla.broker.session import Session as ClientSession
from ottla.broker.storage.manager import LogManager
from ottla.cluster.documents import (
    apply_documents,
    config_document,
    partition_document,
    partition_path,
    topic_config_path,
    topic_document,
)
from ottla.cluster.image import BrokerImage, ClusterImage, Endpoint, ImageChange, PartitionImage, changes_between
from ottla.cluster.store import ABSENT, Document, Session, SessionObserver, Subscriber, VersionConflict, Write
from ottla.config.live import LiveConfig
from ottla.config.load import settings_from
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import decode, encode
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from ottla.protocol.records import NewRecord, encode_batch
from ottla.protocol.schema import TopLevel

R = TypeVar("R", bound=TopLevel)

TOPIC = "t"
SOON_S = 10.0
SESSION_TIMEOUT_MS = 6_000
FAST = {
    "replica.fetch.wait.max.ms": "100",
    "replica.fetch.backoff.ms": "40",
    "replica.lag.time.max.ms": "10000",
}


class WorldClock:
    """The time of the loop, which a test can put forward. Threads that open logs read it too."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.ahead_s = 0.0

    def now_ms(self) -> int:
        return int(self.monotonic() * 1000)

    def monotonic(self) -> float:
        return self._loop.time() + self.ahead_s


class SharedDocuments:
    """What the brokers' stores have in common."""

    def __init__(self) -> None:
        self.versions: dict[str, int] = {}
        self.image = ClusterImage(cluster_id="c")
        self.stores: list[WorldStore] = []
        self.epoch = 100

    def write(self, writes: Sequence[Write]) -> None:
        for path, _, expected in writes:
            found = self.versions.get(path, ABSENT)
            if found != expected:
                raise VersionConflict(path, expected, found)
        for path, data, expected in writes:
            if data is None:
                self.versions.pop(path)
            else:
                self.versions[path] = expected + 1
        self.publish(apply_documents(self.image, ((path, data) for path, data, _ in writes)))

    def publish(self, image: ClusterImage) -> None:
        self.image = image
        for store in tuple(self.stores):
            if not store.deaf:
                store.hear()


class WorldStore:
    """A broker's view of the store. One that is deaf hears of nothing until it listens again."""

    def __init__(self, shared: SharedDocuments) -> None:
        self._shared = shared
        self._versions: dict[str, int] = {}
        self._subscribers: list[Subscriber] = []
        self._observers: list[SessionObserver] = []
        self.image = ClusterImage()
        self.session = Session.CONNECTED
        self.session_timeout_ms = SESSION_TIMEOUT_MS
        self.deaf = False
        self.commits = 0
        self.trouble: Exception | None = None
        shared.stores.append(self)
        self.hear()

    def hear(self) -> None:
        change = changes_between(self.image, self._shared.image)
        self.image = self._shared.image
        self._versions = dict(self._shared.versions)
        for callback in tuple(self._subscribers):
            callback(change)

    def listen(self) -> None:
        self.deaf = False
        self.hear()

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback)

    def read(self, path: str) -> Document | None:
        return None

    def version(self, path: str) -> int:
        return self._versions.get(path, ABSENT)

    async def commit(self, writes: Sequence[Write], *, as_controller: bool = False) -> None:
        await asyncio.sleep(0)
        self.commits += 1
        if self.trouble is not None:
            raise self.trouble
        self._shared.write(writes)

    async def connected(self, within_s: float) -> None:
        """Always."""

    async def refresh(self) -> None:
        """Everybody sees it at once."""

    async def register_broker(self, broker: BrokerImage) -> None:
        self._shared.epoch += 1
        brokers = {**self._shared.image.brokers, broker.id: replace(broker, epoch=self._shared.epoch)}
        self._shared.publish(replace(self._shared.image, brokers=brokers))

    def change_session(self, session: Session) -> None:
        self.session = session
        for observer in self._observers:
            observer(session)

    def on_session(self, observer: SessionObserver) -> None:
        self._observers.append(observer)

    async def close(self) -> None:
        self._shared.stores.remove(self)


class WorldPeers:
    """Implements Peers: the other broker's handlers, through the codec."""

    def __init__(self, world: "World", me: int) -> None:
        self._world = world
        self._me = me

    async def call(
        self, broker_id: int, request: TopLevel, answer: type[R], *, timeout_s: float, lane: str = "main",
        max_version: int | None = None,
    ) -> R:  # fmt: skip
        self._world.calls.append((self._me, broker_id, request))
        version = request.MAX_VERSION if max_version is None else max_version
        cut = self._world.link(self._me, broker_id)
        if cut.is_set() or broker_id not in self._world.brokers:
            await asyncio.sleep(0.002)
            raise PeerUnavailable(broker_id, "the link is cut")
        if isinstance(request, ApiVersionsRequest):
            waiting = self._world.parked.get((self._me, broker_id, lane))
            if waiting is not None and waiting.hurry is not None:
                waiting.hurry()  # as a connection does when something comes behind a request that waits
            return answer()

        def note(parked: Parked) -> None:
            self._world.parked[self._me, broker_id, lane] = parked

        asking = asyncio.ensure_future(self._world.brokers[broker_id].ask(request, answer, version, note))
        cutting = asyncio.ensure_future(cut.wait())
        done, _ = await asyncio.wait({asking, cutting}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        cutting.cancel()
        if asking not in done:
            asking.cancel()
            raise PeerUnavailable(broker_id, "no answer came")
        return asking.result()

    async def close(self) -> None: ...


class WorldBroker:
    """One broker without sockets, coordinators and controller."""

    def __init__(self, world: "World", node_id: int, directory: Path, settings: dict[str, str]) -> None:
        given = {"node.id": str(node_id), "log.dirs": str(directory), **FAST, **settings}
        if world.spare_directories:
            given["log.dirs"] += f",{directory}-spare"
        rack = world.racks.get(node_id)
        if rack is not None:
            given["broker.rack"] = rack
        self.node_id = node_id
        self.config = LiveConfig(settings_from(given))
        self.clock = world.clock
        self.store = WorldStore(world.shared)
        self.logs = LogManager(self.config.static, self.config.topic, self.clock)
        self.partitions = Partitions(node_id, self.logs, self.config, self.clock)
        self.isr = IsrWriter(self.store, self.partitions)
        self.fetchers = ReplicaFetchers(
            node_id,
            WorldPeers(world, node_id),
            self.config,
            self.clock,
            lambda: self.store.image.brokers[node_id].epoch,
        )
        self.partitions.observers.append(self.fetchers)
        self.broker = cast(
            "Broker",
            SimpleNamespace(
                node_id=node_id,
                config=self.config,
                settings=self.config.broker,
                clock=self.clock,
                metadata=self.store,
                partitions=self.partitions,
                leader_throttle=leader_throttle(node_id, self.config),
                fetch_sessions=FetchSessions(lambda: 10, world.next_number),
                quotas=ClientQuotas(),
                authorizer=None,
            ),
        )

    async def start(self, *, at_rest: bool = False) -> None:
        self._configure(self.store.image)
        self.logs.open()
        self.partitions.load(self.store.image)
        self.store.subscribe(self._on_change)
        self.store.on_session(lambda session: self.partitions.on_session(session, SESSION_TIMEOUT_MS))
        self.partitions.on_session(Session.CONNECTED, SESSION_TIMEOUT_MS)
        await self.store.register_broker(
            BrokerImage(
                self.node_id, self.config.broker.broker_rack, (Endpoint("PLAINTEXT", "h", 9000 + self.node_id),)
            )
        )
        if not at_rest:
            self.fetchers.start()

    def _on_change(self, change: ImageChange) -> None:
        self._configure(change.new)
        self.partitions.apply(change)

    def _configure(self, image: ClusterImage) -> None:
        for name, topic in image.topics.items():
            self.config.update_topic(name, topic.configs)

    async def stop(self, *, clean: bool = True) -> None:
        await self.fetchers.stop()
        await self.isr.stop()
        await self.store.close()
        for partition in self.partitions:
            partition.stop()
        if clean:
            self.logs.close()
        else:
            self.logs.abandon()

    async def ask(
        self, request: TopLevel, answer: type[R], version: int, note: Callable[[Parked], None] | None = None
    ) -> R:
        key = ApiKey(request.API_KEY)
        received = decode(type(request), version, bytearray(encode(request, version)))
        handle = import_module(f"ottla.broker.handlers.{key.name.lower()}").handle
        outcome = handle(self.broker, Call(key, version, "client", ClientSession("PLAINTEXT", "127.0.0.1")), received)
        if isinstance(outcome, Parked):
            if note is not None:
                note(outcome)
            outcome = await _resolved(outcome)
        if isinstance(outcome, Raw):
            body = b"".join(bytes(c) if isinstance(c, bytes | bytearray) else c.read() for c in outcome.chunks)
        else:
            body = bytes(encode(outcome, version))
        return decode(answer, version, body)

    def partition(self, number: int = 0) -> Partition:
        found = self.partitions.find(TOPIC, number)
        assert found is not None
        return found

    async def produce(
        self,
        *values: bytes,
        number: int = 0,
        acks: int = -1,
        timeout_ms: int = 5_000,
        batch: bytes | bytearray | None = None,
    ) -> Any:
        """The partition's answer to a produce of one batch."""
        now_ms = self.clock.now_ms()
        records = batch or encode_batch([NewRecord(None, value, now_ms) for value in values])
        request = ProduceRequest(
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=[
                TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=number, records=records)])
            ],
        )
        answer = await self.ask(request, ProduceResponse, 9)
        return answer.responses[0].partition_responses[0]


async def _resolved(parked: Parked) -> Any:
    done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    parked.when_resolved(lambda response: done.set_result(response) if not done.done() else None)
    try:
        return await done
    except asyncio.CancelledError:
        if parked.abandon is not None:
            parked.abandon()
        raise


class World:
    def __init__(self, directory: Path, **settings: str) -> None:
        self._directory = directory
        self._settings = {name.replace("_", "."): value for name, value in settings.items()}
        self._cuts: dict[tuple[int, int], asyncio.Event] = {}
        self._number = 0
        self.clock = WorldClock()
        self.shared = SharedDocuments()
        self.brokers: dict[int, WorldBroker] = {}
        self.calls: list[tuple[int, int, TopLevel]] = []
        self.parked: dict[tuple[int, int, str], Parked] = {}
        self.racks: dict[int, str] = {}
        self.spare_directories = False

    def next_number(self) -> int:
        self._number += 1
        return self._number

    async def start(self, node_id: int, *, at_rest: bool = False) -> WorldBroker:
        """A broker; one `at_rest` does not fetch by itself."""
        broker = WorldBroker(self, node_id, self._directory / str(node_id), self._settings)
        self.brokers[node_id] = broker
        await broker.start(at_rest=at_rest)
        return broker

    async def stop(self, node_id: int, *, clean: bool = True) -> None:
        """The broker ends, and the cluster knows at once; nobody is elected for it."""
        await self.brokers.pop(node_id).stop(clean=clean)
        brokers = {known: broker for known, broker in self.shared.image.brokers.items() if known != node_id}
        self.shared.publish(replace(self.shared.image, brokers=brokers))

    def wipe(self, node_id: int) -> None:
        shutil.rmtree(self._directory / str(node_id))

    def link(self, one: int, other: int) -> asyncio.Event:
        """Set while the link is cut."""
        return self._cuts.setdefault((min(one, other), max(one, other)), asyncio.Event())

    def cut(self, one: int, other: int) -> None:
        self.link(one, other).set()

    def mend(self, one: int, other: int) -> None:
        self.link(one, other).clear()

    def create(self, *replicas: int, partitions: int = 1, isr: tuple[int, ...] | None = None, **configs: str) -> None:
        """The topic, led by the first of its replicas."""
        state = PartitionImage(replicas[0], 0, replicas, isr or replicas)
        writes = [Write(topic_config_path(TOPIC), config_document(_dotted(configs)), ABSENT)]
        writes.append(Write(f"/brokers/topics/{TOPIC}", topic_document(uuid4(), [state] * partitions), ABSENT))
        writes += [
            Write(partition_path(TOPIC, number), partition_document(state), ABSENT) for number in range(partitions)
        ]
        self.shared.write(writes)

    def state(self, number: int = 0) -> PartitionImage:
        return self.shared.image.topics[TOPIC].partitions[number]

    def elect(self, leader: int, isr: tuple[int, ...] | None = None, number: int = 0) -> None:
        """Make this replica the leader, as a controller would."""
        state = self.state(number)
        kept = isr if isr is not None else tuple(r for r in state.isr if r in self.brokers or r == leader)
        new = replace(state, leader=leader, leader_epoch=state.leader_epoch + 1, isr=kept)
        path = partition_path(TOPIC, number)
        self.shared.write([Write(path, partition_document(new), self.shared.versions[path])])

    def assign(self, *replicas: int, number: int = 0) -> None:
        """Give the partition to other brokers, at once."""
        topic = self.shared.image.topics[TOPIC]
        states = [replace(s, replicas=replicas) if n == number else s for n, s in enumerate(topic.partitions)]
        path = f"/brokers/topics/{TOPIC}"
        self.shared.write([Write(path, topic_document(topic.topic_id, states), self.shared.versions[path])])

    async def until(self, condition: Callable[[], bool], what: str = "") -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + SOON_S
        while not condition():
            assert loop.time() < deadline, what or "it did not happen in time"
            await asyncio.sleep(0.001)

    async def settled(self, number: int = 0) -> None:
        """Until every running replica has what the leader has, and knows that it is committed."""
        leader = self.brokers[self.state(number).leader].partition(number)
        replicas = [self.brokers[r].partition(number) for r in self.state(number).replicas if r in self.brokers]
        await self.until(
            lambda: all(
                p.log.end_offset == leader.log.end_offset == p.high_watermark and p.leader_epoch == leader.leader_epoch
                for p in replicas
            ),
            f"ends {[(p.log.end_offset, p.high_watermark) for p in replicas]}",
        )


def _dotted(configs: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "."): value for name, value in configs.items()}


@asynccontextmanager
async def world_of(directory: Path, *nodes: int, **settings: str) -> AsyncIterator[World]:
    world = World(directory, **settings)
    for node in nodes:
        await world.start(node)
    try:
        yield world
    finally:
        for broker in tuple(world.brokers.values()):
            await broker.stop()


def contents(partition: Partition) -> bytes:
    """The log from its first offset on, as it lies on disk."""
    log, data, offset = partition.log, b"", partition.log.start_offset
    while offset < log.end_offset:
        piece = log.read(offset, 2**30, log.end_offset, min_one_batch=True)
        data += piece.read()
        later = [s.base_offset for s in log.segments.all if s.base_offset > piece.segment_base_offset]
        offset = later[0] if later else log.end_offset
    return data
