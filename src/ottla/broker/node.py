"""The broker as a whole: builds every part, starts them in order and stops them in the opposite order.

Start: metadata, settings, logs (recovered if the last stop was not clean), partitions, groups, sockets.
Stop:  leadership (handed over), sockets (what is in flight is finished), groups, jobs, metadata (others know that this
       broker is gone), logs (flushed, marked clean).
"""

import asyncio
import gc
import logging
import os
import random
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable

import uvloop

from ottla.broker.controller import lost_logs, membership
from ottla.broker.controller.leading import LeadingController
from ottla.broker.controller.loop import Controller
from ottla.broker.coordination.markers import LocalMarkers
from ottla.broker.coordination.membership import ClusterMembership
from ottla.broker.coordination.partition_log import PartitionLog
from ottla.broker.coordination.remote_markers import ClusterMarkers
from ottla.broker.coordination.runtime import GroupCoordinator
from ottla.broker.coordination.transaction_runtime import TransactionCoordinator
from ottla.broker.handlers.context import Broker
from ottla.broker.handlers.fetch_sessions import FetchSessions
from ottla.broker.handlers.table import advertised
from ottla.broker.jobs import Job, Jobs
from ottla.broker.replication.connected_peers import ConnectedPeers
from ottla.broker.replication.fetchers import ReplicaFetchers
from ottla.broker.replication.isr import IsrWriter
from ottla.broker.replication.moving import ReplicaMoves
from ottla.broker.replication.partitions import Partitions
from ottla.broker.replication.peers import Peers
from ottla.broker.replication.throttling import leader_throttle
from ottla.broker.server.dispatch import Dispatcher
from ottla.broker.server.listener import Listener, Server
from ottla.broker.storage.boot import BootId, BootRecord, kernel_boot_id
from ottla.broker.storage.compaction.cleaner import LogCleaner
from ottla.broker.storage.disk import Disk
from ottla.broker.storage.log import Log
from ottla.broker.storage.log_dir import LogDir
from ottla.broker.storage.manager import LogManager
from ottla.cluster.embedded import EmbeddedStore
from ottla.cluster.image import CLUSTER_WIDE, NO_BROKER_EPOCH, BrokerImage, ClusterImage, Endpoint, ImageChange
from ottla.cluster.store import MetadataStore, Session
from ottla.cluster.zookeeper.opening import open_zookeeper
from ottla.config.broker import BrokerSettings
from ottla.config.listeners import ListenerAddress, advertised_listeners, inter_broker_listener, opened_listeners
from ottla.config.live import LiveConfig
from ottla.model.clock import Clock
from ottla.model.names import TRANSACTION_STATE, TopicPartition

log = logging.getLogger(__name__)

STOP_GRACE_SECONDS = 10.0
PROGRESS_INTERVAL_SECONDS = 1.0
DELETED_FILES_INTERVAL_MS = 1_000
FLUSH_INTERVAL_MS_MAX = 1_000
AWAKE_INTERVAL_MS_MAX = 60_000
PRODUCER_EXPIRY_INTERVAL_MS = 600_000
MISSING_LOGS_INTERVAL_MS = 5_000


MakeServer = Callable[[LiveConfig, Dispatcher, asyncio.AbstractEventLoop], Server]
"""Opens what clients connect to; a simulation has no sockets and opens something else."""


class SystemClock:
    """The clock of this machine."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


class OpeningProgress:
    """Says in the log how far the opening of many logs has come, once a second at most."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._said_at = clock.monotonic()

    def __call__(self, directory: str, opened: int, total: int) -> None:
        if opened < total and self._clock.monotonic() - self._said_at >= PROGRESS_INTERVAL_SECONDS:
            self._said_at = self._clock.monotonic()
            log.info("%s: %d of %d logs are open", directory, opened, total)


class Node:
    """One broker. `start` returns when it accepts connections; `stop` when everything is on disk."""

    def __init__(
        self,
        settings: BrokerSettings,
        store: MetadataStore,
        *,
        clock: Clock | None = None,
        disk: Disk | None = None,
        peers: Peers | None = None,
        make_server: MakeServer = Server,
        boot_id: BootId = kernel_boot_id,
        chance: random.Random | None = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self.config = LiveConfig(settings)
        self.node_id = settings.node_id
        self.store = store
        self.logs = LogManager(
            settings,
            self.config.topic,
            self.clock,
            cluster_id=self.store.image.cluster_id,
            disk=disk,
            progress=OpeningProgress(self.clock),
            on_dir_failure=self._on_dir_failure,
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self.on_hopeless: Callable[[], None] | None = None
        """Told when this broker has no disk left and had better end."""
        self.cleaner = LogCleaner(self.logs, lambda: self.config.broker, self.clock)
        self.peers = peers or ConnectedPeers(self.node_id, self.store, inter_broker_listener(settings))
        self.partitions = Partitions(self.node_id, self.logs, self.config, self.clock)
        self.isr = IsrWriter(self.store, self.partitions)
        self.fetchers = ReplicaFetchers(self.node_id, self.peers, self.config, self.clock, self._broker_epoch)
        self.partitions.observers.append(self.fetchers)
        self.moves = ReplicaMoves(self.logs, lambda: self.config.broker, self.clock, self._on_log_moved)
        self._chance = chance or random.Random()  # noqa: S311 (ids and choices, no secrets)
        self.controller = Controller(self.store, self.config, self.node_id, self.clock, chance=self._chance)
        self.leading = LeadingController(self.store, self.config, self.node_id, self.clock)
        self.groups = GroupCoordinator(
            PartitionLog(self.partitions, self.store, self.clock), lambda: self.config.broker, self.clock
        )
        self.markers = ClusterMarkers(
            self.node_id,
            LocalMarkers(self.partitions, self.groups, self.store, self.clock),
            self.store,
            self.peers,
            lambda: self.config.broker,
        )
        self.transactions = TransactionCoordinator(
            PartitionLog(self.partitions, self.store, self.clock, TRANSACTION_STATE),
            lambda: self.config.broker,
            self.clock,
            self.markers,
            self.controller.allocate_producer_id,
        )
        self.membership = ClusterMembership(
            self.node_id, self.transactions, self.store, self.peers, lambda: self.config.broker
        )
        self._boot = BootRecord(settings.data_dirs, disk or Disk(), boot_id)
        self._registered = False
        self._make_server = make_server
        self._server: Server | None = None
        self._jobs: Jobs | None = None

    async def start(self) -> list[str]:
        """Returns the addresses that accept connections, as `NAME://host:port`."""
        self._load_settings(self.store.image)
        tails_may_be_lost = self._boot.tails_may_be_lost()
        await asyncio.to_thread(self.logs.open, tails_may_be_lost=tails_may_be_lost)
        missing = lost_logs.missing_logs(self.store.image, self.node_id, self.logs.has)
        if tails_may_be_lost or missing:
            only = None if tails_may_be_lost else missing
            await membership.rejoin(self.store, self.node_id, self._incarnation(), self.clock, only)
        self._boot.remember()
        self.partitions.load(self.store.image)
        self._forget_strays()
        self.moves.resume()
        self.store.subscribe(self._on_change)
        self.store.on_session(self._on_session)
        self.partitions.on_session(self.store.session, self.store.session_timeout_ms)
        self.groups.on_topics_changed(self.store.image.topics)
        self.groups.on_group_configs_changed(self.store.image.group_configs)
        self.groups.start()
        self.transactions.start()
        loop = asyncio.get_running_loop()
        self._server = self._make_server(self.config, Dispatcher(self._handler_context(), loop), loop)
        self._server.bind(opened_listeners(self.config.broker))
        await self.store.register_broker(self._describe(self._server.listeners))
        self._registered = True
        self._loop = loop
        self._leave_failed_logs()
        self.leading.start()
        self.fetchers.start()
        await self.partitions.note_awake()  # else a standstill before the job's first round would not be noticed
        self._jobs = Jobs(self._background())
        self._jobs.start()
        self._server.start()
        return [str(listener.address._replace(port=listener.port)) for listener in self._server.listeners]

    async def stop(self) -> None:
        hands_over = self._registered and self.config.broker.controlled_shutdown_enable
        if hands_over:
            await membership.hand_over(
                self.store, self.node_id, self.clock, only_led=True, floor=self._in_sync_at_least
            )
        self._loop = None
        for task in self._leaving:
            task.cancel()
        # First whatever is parked is answered: a consumer waiting in a rebalance must not hold up the stop.
        self.groups.shutdown()
        self.transactions.shutdown()
        for partition in self.partitions:
            partition.stop()
        if self._server is not None:
            await self._server.stop(STOP_GRACE_SECONDS)
        if self._jobs is not None:
            await self._jobs.stop()
        self.markers.close()
        self.membership.close()
        await self._leave_the_cluster(hands_over)
        await self.moves.stop()
        await self.cleaner.stop()
        await asyncio.to_thread(self.logs.close)

    def _in_sync_at_least(self, topic: str) -> int:
        return self.config.topic(topic).min_insync_replicas

    async def _leave_the_cluster(self, hands_over: bool) -> None:
        """Quickly: leaders wait for a follower that is in sync, or was until just now, as long as it is registered."""
        await self.leading.stop()
        await self.isr.stop()
        await self.fetchers.stop()
        if hands_over:
            await membership.hand_over(self.store, self.node_id, self.clock, floor=self._in_sync_at_least)
        await self.peers.close()
        await self.store.close()

    def _handler_context(self) -> Broker:
        return Broker(
            node_id=self.node_id,
            config=self.config,
            clock=self.clock,
            metadata=self.store,
            controller=self.controller,
            partitions=self.partitions,
            logs=self.logs,
            moves=self.moves,
            leader_throttle=leader_throttle(self.node_id, self.config),
            groups=self.groups,
            transactions=self.transactions,
            membership=self.membership,
            peers=self.peers,
            fetch_sessions=FetchSessions(
                lambda: self.config.broker.max_incremental_fetch_session_cache_slots,
                lambda: self._chance.randrange(1, 2**31),
            ),
            served_apis=advertised(),
        )

    def _broker_epoch(self) -> int:
        """Which life of this broker the cluster knows."""
        known = self.store.image.brokers.get(self.node_id)
        return NO_BROKER_EPOCH if known is None else known.epoch

    def _on_dir_failure(self, directory: LogDir) -> None:
        """Called in any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._leave_failed_logs)

    def _leave_failed_logs(self) -> None:
        """Replicas on disks that failed play no part here; other brokers take over what they can."""
        if self.logs.all_offline and self.on_hopeless is not None:
            log.error("every log directory has failed: the broker stops")
            self.on_hopeless()
        lost = self.partitions.leave_failed()
        if lost:
            work = lost_logs.leave_to_others(self.store, self.node_id, self.clock, lost)
            task = asyncio.get_running_loop().create_task(work, name="lost logs")
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)

    def _on_log_moved(self, log: Log) -> None:
        partition = self.partitions.find(*log.tp)
        if partition is not None:
            partition.use_log(log)

    def _on_change(self, change: ImageChange) -> None:
        self._apply_settings(change)
        self.partitions.apply(change)
        if change.topics and self._loop is not None and self.logs.any_offline:
            self._leave_failed_logs()
        gone = [topic.name for topic in change.removed if topic.name not in change.new.topics]
        if gone:
            self.groups.on_topics_deleted(gone)
        if change.group_configs:
            self.groups.on_group_configs_changed(change.new.group_configs)
        if _topics_came_or_grew(change):
            self.groups.on_topics_changed(change.new.topics)
        self.groups.refresh()
        self.transactions.refresh()

    def _on_session(self, session: Session) -> None:
        self.partitions.on_session(session, self.store.session_timeout_ms)
        self.groups.refresh()
        self.transactions.refresh()

    def _load_settings(self, image: ClusterImage) -> None:
        self._apply_broker_settings(image)
        for name, topic in image.topics.items():
            self.config.update_topic(name, topic.configs)

    def _apply_settings(self, change: ImageChange) -> None:
        if change.broker_configs:
            self._apply_broker_settings(change.new)
            self.fetchers.reconfigure()
        for topic in change.removed:
            self.config.update_topic(topic.name, None)
        for topic in change.written:
            self.config.update_topic(topic.name, topic.configs)

    def _apply_broker_settings(self, image: ClusterImage) -> None:
        configs = image.broker_configs
        self.config.update_broker(configs.get(CLUSTER_WIDE, {}), configs.get(str(self.node_id), {}))

    def _forget_strays(self) -> None:
        """Directories of topics that are gone, or of replicas that were moved away while this broker was down."""
        known = {
            TopicPartition(name, index): topic.topic_id
            for name, topic in self.store.image.topics.items()
            for index, state in enumerate(topic.partitions)
            if self.node_id in state.replicas
        }
        for stray in self.logs.strays(known):
            log.warning("%s is no replica that this broker should have, and is set aside", stray.tp)
            self.logs.mark_stray(stray.tp)

    def _describe(self, listeners: list[Listener]) -> BrokerImage:
        ports = {listener.address.name: listener.port for listener in listeners}
        endpoints = tuple(
            Endpoint(address.name, _reachable_host(address), address.port or ports[address.name])
            for address in advertised_listeners(self.config.broker)
        )
        return BrokerImage(self.node_id, self.config.broker.broker_rack, endpoints, incarnation=self._incarnation())

    def _incarnation(self) -> str:
        """Tells this broker from another with the same id: one that lost its disk is another, too."""
        return self.logs.dirs[0].directory_id

    def _background(self) -> list[Job]:
        logs, settings, now_ms = self.logs, self.config.static, self.clock.now_ms

        async def apply_retention() -> None:
            logs.roll_expired(now_ms())
            await asyncio.to_thread(logs.drop_expired, now_ms())

        async def expire_producers() -> None:
            logs.expire_producers(now_ms(), self.config.broker.producer_id_expiration_ms)

        async def remove_deleted() -> None:
            await asyncio.to_thread(logs.remove_deleted, now_ms())

        return [
            Job("retention", lambda: settings.log_retention_check_interval_ms, apply_retention),
            Job("log cleaner", lambda: self.config.broker.log_cleaner_backoff_ms, self.cleaner.run),
            Job("flush", self._flush_interval_ms, lambda: asyncio.to_thread(logs.flush_due, now_ms())),
            Job("checkpoint", self._checkpoint_interval_ms, lambda: asyncio.to_thread(logs.checkpoint)),
            Job(
                "deleted files",
                lambda: DELETED_FILES_INTERVAL_MS,
                lambda: asyncio.to_thread(logs.remove_deleted, now_ms()),
            ),
            Job("in-sync replicas", lambda: max(settings.replica_lag_time_max_ms // 2, 1), self.isr.check_all),
            Job("awake", self._awake_interval_ms, self.partitions.note_awake),
            Job("missing logs", lambda: MISSING_LOGS_INTERVAL_MS, self.partitions.retry_missing),
            Job("producer expiry", lambda: PRODUCER_EXPIRY_INTERVAL_MS, expire_producers),
            Job("offset expiry", lambda: settings.offsets_retention_check_interval_ms, self.groups.expire),
            Job(
                "leader balance",
                lambda: settings.leader_imbalance_check_interval_seconds * 1000,
                self.leading.rebalance,
            ),
            Job(
                "transaction timeouts",
                lambda: settings.transaction_abort_timed_out_transaction_cleanup_interval_ms,
                self.transactions.abort_timed_out,
            ),
            Job(
                "transactional id expiry",
                lambda: settings.transaction_remove_expired_transaction_cleanup_interval_ms,
                self.transactions.expire,
            ),
        ]

    def _flush_interval_ms(self) -> int:
        """Finished segments are flushed in the background too, so this job has its own pace when none is set."""
        return min(self.config.static.log_flush_scheduler_interval_ms, FLUSH_INTERVAL_MS_MAX)

    def _awake_interval_ms(self) -> int:
        """Often enough in a session timeout to notice a standstill."""
        return min(self.store.session_timeout_ms // 8, AWAKE_INTERVAL_MS_MAX)

    def _checkpoint_interval_ms(self) -> int:
        """One job writes the three checkpoints, as often as the most frequent of them is wanted."""
        settings = self.config.static
        return min(
            settings.log_flush_offset_checkpoint_interval_ms,
            settings.log_flush_start_offset_checkpoint_interval_ms,
            settings.replica_high_watermark_checkpoint_interval_ms,
        )


def _topics_came_or_grew(change: ImageChange) -> bool:
    """Or went. Other leaders and other in-sync replicas, which come often, are nothing to consumer groups."""
    before = change.old.topics
    return bool(change.removed) or any(
        (known := before.get(topic.name)) is None or len(known.partitions) != len(topic.partitions)
        for topic in change.written
    )


def _reachable_host(address: ListenerAddress) -> str:
    return socket.gethostname() if address.on_every_interface else address.host


def allow_many_descriptors() -> None:
    """One descriptor per connection and per segment: take all that the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def run(settings: BrokerSettings, *, announce: Callable[[str], None]) -> int:
    """Run a broker until SIGTERM or SIGINT. `announce` is told once, when it accepts connections."""
    allow_many_descriptors()
    for directory in settings.data_dirs:
        os.makedirs(directory, exist_ok=True)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(settings, announce))


async def open_store(settings: BrokerSettings) -> MetadataStore:
    """Where this broker's metadata is kept, with its newest picture loaded."""
    if settings.zookeeper_connect:
        return await open_zookeeper(settings)
    return EmbeddedStore.open(settings.data_dirs[0])


def _calm_garbage_collection() -> None:
    """What exists now lives as long as the broker, and requests make next to no cycles: look for them rarely."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _favour_the_loop() -> None:
    """A background thread that computes gives way after half a millisecond, not after Python's usual five."""
    sys.setswitchinterval(0.0005)


async def _serve(settings: BrokerSettings, announce: Callable[[str], None]) -> int:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    node = Node(settings, await open_store(settings))
    node.on_hopeless = stopped.set
    try:
        addresses = await node.start()
        _calm_garbage_collection()
        _favour_the_loop()
        announce(f"ottla broker {node.node_id} accepts connections on {', '.join(addresses)}")
        await stopped.wait()
        log.info("stopping")
    finally:
        hopeless = node.logs.all_offline
        await node.stop()
    return 1 if hopeless else 0
