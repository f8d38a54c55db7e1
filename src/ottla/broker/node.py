"""The broker as a whole: builds every part, starts them in order and stops them in the opposite order.

Start: metadata, settings, logs (recovered if the last stop was not clean), partitions, groups, sockets.
Stop:  leadership (handed over), sockets (what is in flight is finished), groups, jobs, metadata (others know that this
       broker is gone), logs (flushed, marked clean).
"""

import asyncio
import logging
import random
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.broker.background import coordinator_jobs, replication_jobs, storage_jobs
from ottla.broker.changes import Follower, MetadataFollowers, topics_came_or_grew
from ottla.broker.controller import lost_logs, membership
from ottla.broker.controller.dynamic_passwords import encode_anew, own_settings
from ottla.broker.controller.expired_tokens import drop_expired
from ottla.broker.controller.leading import LeadingController
from ottla.broker.controller.loop import Controller
from ottla.broker.coordination.kinds import CoordinatorEntry, CoordinatorKind, Coordinators
from ottla.broker.coordination.markers import LocalMarkers
from ottla.broker.coordination.partition_log import PartitionLog
from ottla.broker.coordination.remote_markers import ClusterMarkers
from ottla.broker.coordination.runtime import GroupCoordinator
from ottla.broker.coordination.sending import InterBroker
from ottla.broker.coordination.transaction_partitions import ClusterTransactionPartitions
from ottla.broker.coordination.transaction_runtime import TransactionCoordinator
from ottla.broker.failed_dirs import FailedLogDirs
from ottla.broker.handlers.context import Broker
from ottla.broker.handlers.fetching.sessions import FetchSessions
from ottla.broker.handlers.producing.schema_ids import SchemaIds
from ottla.broker.handlers.table import advertised
from ottla.broker.jobs import Job, Jobs
from ottla.broker.life import BrokerState, OpeningProgress
from ottla.broker.life import SystemClock as SystemClock  # noqa: PLC0414 (known from here)
from ottla.broker.quotas.clients import ClientQuotas
from ottla.broker.replication.connected_peers import ConnectedPeers
from ottla.broker.replication.fetchers import ReplicaFetchers
from ottla.broker.replication.isr import IsrWriter
from ottla.broker.replication.moving import ReplicaMoves
from ottla.broker.replication.partitions import Partitions
from ottla.broker.replication.peers import Peers
from ottla.broker.replication.throttling import leader_throttle
from ottla.broker.security.access_control import AccessControl
from ottla.broker.security.authenticators import Authenticators
from ottla.broker.security.decoys import shared_decoy
from ottla.broker.security.peers import inter_broker_security
from ottla.broker.server.answer import Answer
from ottla.broker.server.dispatch import Dispatcher
from ottla.broker.server.listener import Listener, Server
from ottla.broker.storage.boot import BootId, BootRecord, kernel_boot_id
from ottla.broker.storage.compaction.cleaner import LogCleaner
from ottla.broker.storage.disk import Disk
from ottla.broker.storage.log import Log
from ottla.broker.storage.manager import LogManager
from ottla.cluster.image import CLUSTER_WIDE, NO_BROKER_EPOCH, BrokerImage, ClusterImage, Endpoint, ImageChange
from ottla.cluster.store import MetadataStore, Session
from ottla.config.broker import BrokerSettings
from ottla.config.listeners import ListenerAddress, advertised_listeners, inter_broker_listener, opened_listeners
from ottla.config.live import LiveConfig
from ottla.model.clock import Clock
from ottla.model.names import TRANSACTION_STATE, TopicPartition
from ottla.telemetry.pushed import ClientMetrics
from ottla.telemetry.registry import Telemetry

if TYPE_CHECKING:
    from ottla.broker.security.tls.listeners import TlsListeners

logger = logging.getLogger(__name__)

STOP_GRACE_SECONDS = 10.0

MakeServer = Callable[[LiveConfig, Dispatcher, asyncio.AbstractEventLoop], Server]
"""Opens what clients connect to; a simulation has no sockets and opens something else."""


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
        self.telemetry = Telemetry()
        self.node_id = settings.node_id
        self.store = store
        self.opening = OpeningProgress(self.clock)
        self.logs = self._log_manager(settings, disk)
        self.cleaner = LogCleaner(self.logs, lambda: self.config.broker, self.clock)
        self.tls = _tls_listeners(settings)
        self.peers = peers or self._connected_peers(settings)
        self.partitions = Partitions(self.node_id, self.logs, self.config, self.clock)
        self.failed_dirs = FailedLogDirs(self.node_id, self.logs, self.partitions, self.store, self.clock)
        self.isr = IsrWriter(self.store, self.partitions)
        self.fetchers = ReplicaFetchers(self.node_id, self.peers, self.config, self.clock, self._broker_epoch)
        self.partitions.observers.append(self.fetchers)
        self.moves = ReplicaMoves(self.logs, lambda: self.config.broker, self.clock, self._on_log_moved)
        self._chance = chance or random.Random()  # noqa: S311 (ids and choices, no secrets)
        self.controller = Controller(self.store, self.config, self.node_id, self.clock, chance=self._chance)
        self.controller.check_own_settings = self._check_stores
        self.leading = LeadingController(self.store, self.config, self.node_id, self.clock)
        self.groups = GroupCoordinator(
            PartitionLog(self.partitions, self.store, self.clock),
            lambda: self.config.broker,
            self.clock,
            chance=self._chance,
        )
        self._build_transactions()
        self.access = AccessControl(self.config, self.telemetry)
        self.quotas = ClientQuotas(settings)
        self.authenticators = Authenticators(lambda: self.config.broker, lambda: self.store.image)
        self.fetch_sessions = FetchSessions(
            lambda: self.config.broker.max_incremental_fetch_session_cache_slots,
            lambda: self._chance.randrange(1, 2**31),
        )
        self.followers = self._followers()
        self._boot = BootRecord(settings.data_dirs, disk or Disk(), boot_id)
        self._registered = False
        self._make_server = make_server
        self._server: Server | None = None
        self.state = BrokerState.STARTING
        self.client_metrics: ClientMetrics | None = None
        self.answer_listeners: list[Callable[[Answer], None]] = []
        """Told of every answer with its moments; to be filled before `start`."""
        self._jobs: Jobs | None = None

    def _build_transactions(self) -> None:
        others = InterBroker(self.node_id, self.store, self.peers, lambda: self.config.broker)
        self.markers = ClusterMarkers(LocalMarkers(self.partitions, self.groups, self.store, self.clock), others)
        self.transactions = TransactionCoordinator(
            PartitionLog(self.partitions, self.store, self.clock, TRANSACTION_STATE),
            lambda: self.config.broker,
            self.clock,
            self.markers,
            self.controller.allocate_producer_id,
        )
        self.coordinators: Coordinators = {
            CoordinatorKind.GROUP: CoordinatorEntry(self.groups, self.controller.ensure_offsets_topic),
            CoordinatorKind.TRANSACTION: CoordinatorEntry(self.transactions, self.controller.ensure_transactions_topic),
        }
        self.transaction_partitions = ClusterTransactionPartitions(self.transactions, others)

    def _log_manager(self, settings: BrokerSettings, disk: Disk | None) -> LogManager:
        return LogManager(
            settings,
            self.config.topic,
            self.clock,
            cluster_id=self.store.image.cluster_id,
            disk=disk,
            progress=self.opening,
            on_dir_failure=lambda _: self.failed_dirs.on_failure(),
        )

    def _connected_peers(self, settings: BrokerSettings) -> ConnectedPeers:
        listener = inter_broker_listener(settings)
        return ConnectedPeers(
            self.node_id, self.store, listener, lambda: inter_broker_security(self.config.broker, self.tls)
        )

    @property
    def server(self) -> Server | None:
        return self._server

    async def start(self) -> list[str]:
        """Returns the addresses that accept connections, as `NAME://host:port`."""
        await encode_anew(self.store, self.node_id, self.config.static)
        self._load_settings(self.store.image)
        self.access.load(self.store.image)
        if self.tls is not None:
            self.tls.load(self.config.broker, self.config.static)
        self.quotas.use(self.store.image.entity_configs)
        tails_may_be_lost = self._boot.tails_may_be_lost()
        self.state = BrokerState.RECOVERY
        await asyncio.to_thread(self.logs.open, tails_may_be_lost=tails_may_be_lost)
        missing = lost_logs.missing_logs(self.store.image, self.node_id, self.logs.has)
        if tails_may_be_lost or missing:
            only = None if tails_may_be_lost else missing
            await membership.rejoin(self.store, self.node_id, self._incarnation(), self.clock, only)
        self._boot.remember()
        self.partitions.load(self.store.image)
        self._forget_strays()
        self.moves.resume()
        self.store.subscribe(self.followers)
        self.store.on_session(self._on_session)
        self.partitions.on_session(self.store.session, self.store.session_timeout_ms)
        self.groups.on_topics_changed(self.store.image.topics)
        self.groups.on_group_configs_changed(self.store.image.group_configs)
        for entry in self.coordinators.values():
            entry.coordinator.start()
        if any(listener.speaks_sasl for listener in opened_listeners(self.config.broker)):
            self.authenticators.decoy = await shared_decoy(self.store)
            self.authenticators.start()
        loop = asyncio.get_running_loop()
        self._server = self._make_server(self.config, Dispatcher(self._handler_context(), loop), loop)
        for listener in self.answer_listeners:
            self._server.tell_answers(listener)
        self._server.tls = self.tls
        self._server.bind(opened_listeners(self.config.broker))
        await self.store.register_broker(self._describe(self._server.listeners))
        self._registered = True
        self.failed_dirs.start()
        self.leading.start()
        self.fetchers.start()
        await self.partitions.note_awake()  # else a standstill before the job's first round would not be noticed
        self._jobs = Jobs(self._background())
        self._jobs.start()
        self._server.start()
        self.state = BrokerState.RUNNING
        return [str(listener.address._replace(port=listener.port)) for listener in self._server.listeners]

    async def stop(self) -> None:
        hands_over = self._registered and self.config.broker.controlled_shutdown_enable
        if hands_over:
            self.state = BrokerState.PENDING_CONTROLLED_SHUTDOWN
            await membership.hand_over(
                self.store, self.node_id, self.clock, only_led=True, floor=self._in_sync_at_least
            )
        self.state = BrokerState.SHUTTING_DOWN
        self.failed_dirs.stop()
        # First whatever is parked is answered: a consumer waiting in a rebalance must not hold up the stop.
        for entry in self.coordinators.values():
            entry.coordinator.shutdown()
        for partition in self.partitions:
            partition.stop()
        if self._server is not None:
            await self._server.stop(STOP_GRACE_SECONDS)
        await self.authenticators.stop()
        if self._jobs is not None:
            await self._jobs.stop()
        self.markers.close()
        self.transaction_partitions.close()
        await self._leave_the_cluster(hands_over)
        await self.moves.stop()
        await self.cleaner.stop()
        await asyncio.to_thread(self.logs.close)
        await asyncio.to_thread(self.access.close)

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
        self.authenticators.counts.show(self.telemetry, self.clock.monotonic)
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
            coordinators=self.coordinators,
            transaction_partitions=self.transaction_partitions,
            peers=self.peers,
            fetch_sessions=self.fetch_sessions,
            authenticators=self.authenticators,
            served_apis=advertised(telemetry=self.client_metrics is not None),
            telemetry=self.telemetry,
            authorizer=self.access.authorizer,
            quotas=self.quotas,
            schema_ids=SchemaIds.of(self.config.broker),
            client_metrics=self.client_metrics,
        )

    def _broker_epoch(self) -> int:
        """The epoch under which the cluster knows this broker."""
        known = self.store.image.brokers.get(self.node_id)
        return NO_BROKER_EPOCH if known is None else known.epoch

    def _on_log_moved(self, log: Log) -> None:
        partition = self.partitions.find(*log.tp)
        if partition is not None:
            partition.use_log(log)

    def _followers(self) -> MetadataFollowers:
        """Who is told of a change of metadata, in this order (broker/changes.py says why)."""
        return MetadataFollowers(
            Follower("settings", self._apply_settings),
            Follower("access control lists", self.access.apply),
            Follower("quotas", self.quotas.follow),
            Follower("partitions", self.partitions.apply),
            Follower("failed disks", self.failed_dirs.follow),
            Follower("delegation tokens", self.authenticators.tokens.apply),
            Follower("consumer groups", self._tell_groups),
            Follower("metrics of clients", self._tell_client_metrics),
            Follower("coordinators", lambda change: self._refresh_coordinators()),
        )

    def _tell_groups(self, change: ImageChange) -> None:
        gone = [topic.name for topic in change.removed if topic.name not in change.new.topics]
        if gone:
            self.groups.on_topics_deleted(gone)
        if change.group_configs:
            self.groups.on_group_configs_changed(change.new.group_configs)
        if topics_came_or_grew(change):
            self.groups.on_topics_changed(change.new.topics)

    def _tell_client_metrics(self, change: ImageChange) -> None:
        if change.client_metrics and self.client_metrics is not None:
            self.client_metrics.use(change.new.client_metrics)

    def _refresh_coordinators(self) -> None:
        for entry in self.coordinators.values():
            entry.coordinator.refresh()

    def _on_session(self, session: Session) -> None:
        self.partitions.on_session(session, self.store.session_timeout_ms)
        self._refresh_coordinators()

    def _load_settings(self, image: ClusterImage) -> None:
        self._apply_broker_settings(image)
        for name, topic in image.topics.items():
            self.config.update_topic(name, topic.configs)

    def _apply_settings(self, change: ImageChange) -> None:
        if change.broker_configs:
            self._apply_broker_settings(change.new)
            if self.tls is not None:
                self.tls.apply(self.config.broker)
            self.fetchers.reconfigure()
        for topic in change.removed:
            self.config.update_topic(topic.name, None)
        for topic in change.written:
            self.config.update_topic(topic.name, topic.configs)

    def _apply_broker_settings(self, image: ClusterImage) -> None:
        configs = image.broker_configs
        own = own_settings(image, self.node_id, self.config.static)
        self.config.update_broker(configs.get(CLUSTER_WIDE, {}), own)

    def _check_stores(self, settings: BrokerSettings) -> None:
        if self.tls is not None:
            self.tls.check(settings)

    def _forget_strays(self) -> None:
        """Directories of topics that are gone, or of replicas that were moved away while this broker was down."""
        known = {
            TopicPartition(name, index): topic.topic_id
            for name, topic in self.store.image.topics.items()
            for index, state in enumerate(topic.partitions)
            if self.node_id in state.replicas
        }
        for stray in self.logs.strays(known):
            logger.warning("%s: Found a stray replica, not assigned to this broker: renaming its directory", stray.tp)
            self.logs.mark_stray(stray.tp)

    def _describe(self, listeners: list[Listener]) -> BrokerImage:
        ports = {listener.address.name: listener.port for listener in listeners}
        endpoints = tuple(
            Endpoint(
                address.name,
                _reachable_host(address),
                address.port or ports[address.name],
                address.security_protocol,
            )
            for address in advertised_listeners(self.config.broker)
        )
        return BrokerImage(self.node_id, self.config.broker.broker_rack, endpoints, incarnation=self._incarnation())

    def _incarnation(self) -> str:
        """Tells this broker from another with the same id: one that lost its disk is another, too."""
        return self.logs.dirs[0].directory_id

    def _background(self) -> list[Job]:
        settings = self.config.static
        return [
            *storage_jobs(self.logs, self.cleaner, self.config, self.clock),
            *replication_jobs(self.partitions, self.isr, self.leading, self.store, settings),
            *coordinator_jobs(self.groups, self.transactions, settings),
            Job(
                "delegation token expiry",
                lambda: settings.delegation_token_expiry_check_interval_ms,
                lambda: drop_expired(self.controller, self.store, self.node_id, self.clock.now_ms()),
            ),
        ]


def _tls_listeners(settings: BrokerSettings) -> "TlsListeners | None":
    if not any(address.speaks_tls for address in opened_listeners(settings)):
        return None
    from ottla.broker.security.tls.listeners import TlsListeners  # noqa: PLC0415 (certificates cost time to import)

    return TlsListeners()


def _reachable_host(address: ListenerAddress) -> str:
    return socket.gethostname() if address.on_every_interface else address.host
