"""The parts of a broker without its sockets: requests go in and come out through the codec, in any version."""

import asyncio
import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import pytest

from ottla.broker.controller.loop import Controller
from ottla.broker.coordination.kinds import CoordinatorEntry, CoordinatorKind
from ottla.broker.coordination.markers import LocalMarkers
from ottla.broker.coordination.partition_log import PartitionLog
from ottla.broker.coordination.runtime import GroupCoordinator
from ottla.broker.coordination.sending import InterBroker
from ottla.broker.coordination.transaction_partitions import ClusterTransactionPartitions
from ottla.broker.coordination.transaction_runtime import TransactionCoordinator
from ottla.broker.handlers.context import Broker, Call
from ottla.broker.handlers.fetching.sessions import FetchSessions
from ottla.broker.handlers.table import advertised
from ottla.broker.replication.connected_peers import ConnectedPeers
from ottla.broker.replication.moving import ReplicaMoves
from ottla.broker.replication.partitions import Partitions
from ottla.broker.replication.throttling import leader_throttle
from ottla.broker.security.access_control import AccessControl
from ottla.broker.security.authenticators import Authenticators
from ottla.broker.session import Session
from ottla.broker.storage.manager import LogManager
from ottla.cluster.embedded import EmbeddedStore
from ottla.cluster.image import CLUSTER_WIDE, BrokerImage, Endpoint, ImageChange
from ottla.config.live import LiveConfig
from ottla.config.load import settings_from
from ottla.model.names import TRANSACTION_STATE
from ottla.protocol.apis import API, ApiKey
from ottla.protocol.codec import decode, encode
from ottla.protocol.schema import TopLevel
from ottla.telemetry.registry import Telemetry
from ottla.testing.clock import ManualClock

NODE_ID = 1
R = TypeVar("R", bound=TopLevel)


class Harness:
    """One broker on a directory. `call` does what a connection would do between two frames."""

    def __init__(self, directory: Path, **settings: str) -> None:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        self.config = LiveConfig(settings_from({"log.dirs": str(directory), **given}))
        self.clock = ManualClock()
        self.store = EmbeddedStore.open(directory)
        self.logs = LogManager(self.config.static, self.config.topic, self.clock)
        self.logs.open()
        self.partitions = Partitions(NODE_ID, self.logs, self.config, self.clock)
        telemetry = Telemetry()
        self.access = AccessControl(self.config, telemetry)
        self.access.load(self.store.image)
        self.store.subscribe(self._follow)
        controller = Controller(self.store, self.config, NODE_ID, self.clock)
        groups = GroupCoordinator(
            PartitionLog(self.partitions, self.store, self.clock), lambda: self.config.broker, self.clock
        )
        transactions = TransactionCoordinator(
            PartitionLog(self.partitions, self.store, self.clock, TRANSACTION_STATE),
            lambda: self.config.broker,
            self.clock,
            LocalMarkers(self.partitions, groups, self.store, self.clock),
            controller.allocate_producer_id,
        )
        peers = ConnectedPeers(NODE_ID, self.store, "PLAINTEXT")
        self.broker = Broker(
            node_id=NODE_ID,
            config=self.config,
            clock=self.clock,
            metadata=self.store,
            controller=controller,
            partitions=self.partitions,
            logs=self.logs,
            moves=ReplicaMoves(self.logs, lambda: self.config.broker, self.clock, lambda log: None),
            leader_throttle=leader_throttle(NODE_ID, self.config),
            groups=groups,
            transactions=transactions,
            coordinators={
                CoordinatorKind.GROUP: CoordinatorEntry(groups, controller.ensure_offsets_topic),
                CoordinatorKind.TRANSACTION: CoordinatorEntry(transactions, controller.ensure_transactions_topic),
            },
            transaction_partitions=ClusterTransactionPartitions(
                transactions, InterBroker(NODE_ID, self.store, peers, lambda: self.config.broker)
            ),
            peers=peers,
            fetch_sessions=FetchSessions(lambda: 10, lambda: 1),
            authenticators=Authenticators(lambda: self.config.broker, lambda: self.store.image),
            served_apis=advertised(),
            telemetry=telemetry,
            authorizer=self.access.authorizer,
        )
        endpoints = (Endpoint("PLAINTEXT", "outside.example", 9092), Endpoint("INSIDE", "::1", 19092))
        asyncio.run(self.store.register_broker(BrokerImage(NODE_ID, "rack-a", endpoints)))

    def call(self, request: TopLevel, response: type[R], version: int, *, listener: str = "PLAINTEXT") -> R:
        """Send a request in this version, through the codec both ways."""
        return self.ask(request, response, version, Session(listener, "127.0.0.1"))[0]

    def ask(self, request: TopLevel, response: type[R], version: int, session: Session) -> tuple[R, Call]:
        """The same through a connection, with what the broker noted of the call."""
        key = ApiKey(request.API_KEY)
        received = decode(type(request), version, encode(request, version))
        handle = import_module(f"ottla.broker.handlers.{key.name.lower()}").handle
        call = Call(key, version, "client", session)

        async def run() -> TopLevel:
            outcome: Any = handle(self.broker, call, received)
            answer: TopLevel = await outcome if inspect.iscoroutine(outcome) else outcome
            return answer

        answer = asyncio.run(run())
        assert type(answer) is API[key].response_class
        return decode(response, version, encode(answer, version)), call

    def close(self) -> None:
        self.logs.close()
        asyncio.run(self.store.close())

    def _follow(self, change: ImageChange) -> None:
        new = change.new
        configs = new.broker_configs
        self.config.update_broker(configs.get(CLUSTER_WIDE, {}), configs.get(str(NODE_ID), {}))
        for name, topic in new.topics.items():
            self.config.update_topic(name, topic.configs)
        self.access.apply(change)
        self.partitions.apply(change)
        self.broker.quotas.follow(change)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Harness]]:
    """Starts brokers with settings (dots as underscores) and closes them in the end."""
    started: list[Harness] = []

    def begin(**settings: str) -> Harness:
        started.append(Harness(tmp_path / f"broker{len(started)}", **settings))
        return started[-1]

    yield begin
    for harness in started:
        harness.close()


@pytest.fixture
def harness(start: Callable[..., Harness]) -> Harness:
    """A broker with the default settings."""
    return start()
