"""Brokers on machines that can be killed, crashed, paused and started again: real nodes, one life after the other."""

import asyncio
import contextvars
import logging
import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast

from tests.simulation.clients import BASE_PORT
from tests.simulation.disk import Machine
from tests.simulation.loop import Host, SimulatedLoop, host_context
from tests.simulation.network import Network, SimulatedServer

from ottla.broker.node import Node
from ottla.broker.server.listener import Server
from ottla.cluster.store import MetadataStore
from ottla.config.broker import BrokerSettings
from ottla.config.load import settings_from
from ottla.model.errors import OttlaError

log = logging.getLogger("ottla.simulation")

START_AGAIN_SECONDS = 0.5
STOP_SECONDS_MAX = 30.0
WALL_CLOCK_MS = 1_700_000_000_000
SESSION_TIMEOUT_MS = 3_000
SETTINGS = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.enable": "false",  # its work is done in a process of its own
    "log.flush.offset.checkpoint.interval.ms": "2000",
    "log.flush.start.offset.checkpoint.interval.ms": "2000",
    "min.insync.replicas": "2",
    "num.recovery.threads.per.data.dir": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "3",
    "replica.high.watermark.checkpoint.interval.ms": "2000",
    "replica.lag.time.max.ms": "2500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.replication.factor": "3",
}

OpenStore = Callable[[BrokerSettings, str], Awaitable[MetadataStore]]
"""How a broker gets at its metadata; the name is that of its site."""


class HostClock:
    """The clock of one machine: it goes right and shows the wrong time, by up to a few seconds."""

    def __init__(self, loop: SimulatedLoop, wrong_ms: int) -> None:
        self._loop = loop
        self._wrong_ms = wrong_ms

    def now_ms(self) -> int:
        return WALL_CLOCK_MS + self._wrong_ms + int(self._loop.time() * 1000)

    def monotonic(self) -> float:
        return self._loop.time()


class SimulatedBroker:
    """One broker id on one machine."""

    def __init__(
        self, number: int, root: str, loop: SimulatedLoop, network: Network, open_store: OpenStore,
        chance: random.Random, settings: dict[str, str],
    ) -> None:  # fmt: skip
        self.id = number
        self.site = f"broker-{number}"
        self.machine = Machine(root, chance)
        self.node: Node | None = None
        """While a life goes on that has come far enough."""
        self.host = Host(self.site)
        self.lives = 0
        self.ready = False
        """Whether it serves."""
        self.failures_to_start: list[str] = []
        self.stopping: asyncio.Task[None] | None = None
        """While it hands over and ends."""
        self._loop = loop
        self._network = network
        self._open_store = open_store
        self._seed = chance.getrandbits(64)
        self._clock = HostClock(loop, chance.randint(-2_000, 2_000))
        self._settings = settings_from(
            SETTINGS
            | settings
            | {
                "node.id": str(number),
                "log.dirs": f"{root}/logs",
                "listeners": f"PLAINTEXT://{self.site}:{BASE_PORT + number}",
                "broker.rack": f"rack-{number % 3}",
            }
        )
        self._starting: asyncio.Task[Any] | None = None

    @property
    def runs(self) -> bool:
        return self._starting is not None and not self.host.stopped

    def start(self) -> None:
        """Begin a life. One that fails to start is tried again, as whoever supervises processes would do."""
        assert not self.runs
        self.host = Host(self.site)
        self.lives += 1
        self._network.host_started(self.site)
        self._starting = self._loop.create_task(self._live(), context=host_context(self.host))
        self._starting.add_done_callback(self._started)

    def _started(self, task: "asyncio.Task[Any]") -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._loop.failures.append({"message": f"{self.site} does not start", "exception": error})

    async def _live(self) -> None:
        try:
            store = await self._open_store(self._settings, self.site)
            self.node = Node(
                self._settings,
                store,
                clock=self._clock,
                disk=self.machine,
                boot_id=lambda: self.machine.boot_id,
                chance=random.Random(f"{self._seed}/{self.lives}"),
                make_server=cast("Callable[..., Server]", partial(SimulatedServer, self._network, self.host)),
            )
            await self.node.start()
            self.ready = True
        except OttlaError as error:
            self.failures_to_start.append(str(error))
            log.info("%s does not start: %s", self.site, error)
            self._loop.call_later(START_AGAIN_SECONDS, self._start_after, self.host, context=contextvars.Context())
            self.kill()

    def _start_after(self, failed: Host) -> None:
        if self.host is failed:
            self.start()

    def kill(self, *, crash: bool = False) -> None:
        """End the process; with `crash` its machine too."""
        self._loop.kill(self.host)
        self.host.kept.append(self.node)
        self.node = None
        self.ready = False
        self._starting = None
        self._network.host_killed(self.site, silently=crash)
        if crash:
            self.machine.crash()
        else:
            self.machine.kill_process()

    def stop(self) -> "asyncio.Task[None]":
        """As on SIGTERM: hand over, then end. A process that takes too long is killed."""
        if self.stopping is None:
            self.stopping = self._loop.create_task(self._stop(), context=contextvars.Context())
        return self.stopping

    async def _stop(self) -> None:
        node = self.node
        if node is None or not self.ready:
            self.kill()
            self.stopping = None
            return
        host = self.host
        ending = self._loop.create_task(node.stop(), context=host_context(host))
        await asyncio.wait([ending], timeout=STOP_SECONDS_MAX)
        if self.host is host and not host.stopped:
            self.kill()
        self.stopping = None
        if ending.done() and not ending.cancelled() and ending.exception() is not None:
            self._loop.failures.append({"message": f"{self.site} does not stop", "exception": ending.exception()})
