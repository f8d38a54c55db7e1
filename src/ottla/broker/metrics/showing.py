"""All that a broker shows of itself, put together: who says what, and what has to run meanwhile."""

from collections.abc import Iterator
from uuid import uuid4

from starlette.routing import Route

import ottla
from ottla.broker.metrics import arrivals, clients, coordinators, host, jolokia, logs, network, topics
from ottla.broker.metrics.exporter import Exporter
from ottla.broker.metrics.figures import Figures, show_replication
from ottla.broker.metrics.jolokia import Meters
from ottla.broker.metrics.keeping import Fold, Keeper
from ottla.broker.metrics.request_times import RequestTimes
from ottla.broker.metrics.zookeeper import ServerFigures, show_session
from ottla.broker.node import Node
from ottla.cluster.zookeeper.client import SessionCounts
from ottla.telemetry.declared import controller as declared
from ottla.telemetry.declared import network as declared_network
from ottla.telemetry.metric import Row
from ottla.telemetry.pushed import ClientMetrics


class Shown:
    """Made before the broker starts, on its loop. `start` and `stop` what looks again and again."""

    def __init__(self, node: Node) -> None:
        self._node = node
        telemetry, times = node.telemetry, RequestTimes()
        self.meters = Meters(telemetry)
        settings = node.config.static
        figures = Figures(node.node_id, lambda: node.store.image, node.partitions, node.logs)
        figures.show(telemetry)
        show_replication(telemetry, node.isr, node.fetchers)
        topics.show(telemetry, node.partitions.context.traffic)
        network.show(telemetry, lambda: node.server, node.fetch_sessions)
        arrivals.show(telemetry, lambda: node.server)
        coordinators.show_groups(telemetry, node.groups)
        coordinators.show_transactions(telemetry, node.transactions, node.transaction_partitions)
        flushes = logs.show(telemetry, node.logs, node.opening)
        logs.show_cleaner(telemetry, node.cleaner, node.logs, node.clock.now_ms)
        host.show(telemetry, lambda: [directory.path for directory in node.logs.dirs])
        Exporter(
            figures,
            lambda: node.store.image,
            node.partitions,
            node.groups,
            lambda: node.config.broker.metrics_offsets_max,
        ).show(telemetry)
        telemetry.observe_one(declared_network.BROKER_STATE, lambda: int(node.state))
        self._show_controller()
        node.client_metrics = ClientMetrics(
            lambda: node.config.broker.metrics_client_series_max, lambda: node.config.broker.telemetry_max_bytes, uuid4
        )
        node.client_metrics.use(node.store.image.client_metrics)
        clients.show(telemetry, node.client_metrics, node.clock.monotonic)
        times.show(telemetry)
        node.answer_listeners.append(times.note)
        counts = node.leading.counts
        folds: list[Fold] = [times.fold, flushes.fold, node.transaction_partitions.times.fold]
        folds += [histogram.fold for histogram in (counts.elections, counts.queue, counts.processing)]
        session: SessionCounts | None = getattr(node.store, "session_counts", None)
        self._servers: ServerFigures | None = None
        if session is not None:
            show_session(telemetry, session)
            folds.append(session.latency.fold)
            self._servers = ServerFigures(settings.zookeeper_connect or "")
            self._servers.show(telemetry)
        self._keeper = Keeper(telemetry, folds, self.meters.tick)

    def routes(self) -> list[Route]:
        """What is served beside the text for Prometheus."""
        return jolokia.routes(self._node.telemetry, self.meters, {"product": "ottla", "version": ottla.__version__})

    def start(self) -> None:
        self._keeper.start()
        if self._servers is not None:
            self._servers.start()

    async def stop(self) -> None:
        await self._keeper.stop()
        if self._servers is not None:
            await self._servers.stop()

    def _show_controller(self) -> None:
        counts, telemetry = self._node.leading.counts, self._node.telemetry

        def read() -> Iterator[Row]:
            yield (), (counts.taken_up, counts.errors, counts.unclean)

        telemetry.observe_together(
            (declared.NEW_CONTROLLERS, declared.METADATA_ERRORS, declared.UNCLEAN_ELECTIONS), read
        )
        for metric, histogram in (
            (declared.ELECTIONS, counts.elections),
            (declared.QUEUE_TIME, counts.queue),
            (declared.PROCESSING_TIME, counts.processing),
        ):
            telemetry.observe_one(metric, histogram.read)
