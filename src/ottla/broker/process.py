"""A broker as a process: its loop, its signals, and what it wants of the system and of Python."""

import asyncio
import gc
import logging
import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import uvloop

from ottla.broker.node import Node
from ottla.cluster.embedded import EmbeddedStore
from ottla.cluster.store import MetadataStore
from ottla.cluster.zookeeper.opening import open_zookeeper
from ottla.config.broker import BrokerSettings
from ottla.http.address import parse_address

if TYPE_CHECKING:
    from ottla.broker.metrics.listener import Guarded
    from ottla.broker.metrics.showing import Shown
    from ottla.http.server import HttpServer

logger = logging.getLogger(__name__)


def allow_many_descriptors() -> None:
    """One descriptor per connection and per segment: take all that the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def run(settings: BrokerSettings, *, announce: Callable[[str], None]) -> int:
    """Run a broker until SIGTERM or SIGINT. `announce` is told where metrics are, and when it accepts connections."""
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


def _let_the_loop_preempt_threads() -> None:
    """A background thread that computes gives way after half a millisecond, not after Python's usual five."""
    sys.setswitchinterval(0.0005)


def _metrics(node: Node, settings: BrokerSettings) -> "tuple[Shown, HttpServer] | None":
    """The listener for metrics, where one is asked for. It begins before the broker does and ends after it."""
    if not settings.metrics_listener:
        return None
    from ottla.broker.metrics.listener import metrics_server  # noqa: PLC0415 (HTTP costs time to import)
    from ottla.broker.metrics.showing import Shown  # noqa: PLC0415 (only where somebody wants to see it)

    shown = Shown(node)
    where = parse_address(settings.metrics_listener, "metrics.listener")
    return shown, metrics_server(node.telemetry, where, shown.routes(), **_guard(node, settings))


def _guard(node: Node, settings: BrokerSettings) -> "Guarded":
    """What keeps others than those who should from reading the metrics, where that is asked for."""
    if not settings.metrics_listener_login and not settings.metrics_listener_tls:
        return {"tls": None, "login": None}
    from ottla.broker.metrics.guarding import metrics_login, metrics_tls  # noqa: PLC0415 (TLS costs time to import)

    tls = metrics_tls(settings, lambda: node.tls)
    return {"tls": tls, "login": metrics_login(settings, lambda: node.store.image)}


async def _serve(settings: BrokerSettings, announce: Callable[[str], None]) -> int:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    node = Node(settings, await open_store(settings))
    node.failed_dirs.on_all_failed = stopped.set
    metrics = _metrics(node, settings)
    try:
        if metrics is not None:
            metrics[0].start()
            await metrics[1].start()
        addresses = await node.start()
        _calm_garbage_collection()
        _let_the_loop_preempt_threads()
        logger.info("Broker %d started on %s", node.node_id, ", ".join(addresses))
        if metrics is not None:
            announce(f"ottla broker {node.node_id} serves metrics on {metrics[1].url}/metrics")
        announce(f"ottla broker {node.node_id} accepts connections on {', '.join(addresses)}")
        await stopped.wait()
        logger.info("Broker %d shutting down", node.node_id)
    finally:
        failed = node.logs.all_offline
        await node.stop()
        if metrics is not None:
            await metrics[1].stop()
            await metrics[0].stop()
        logger.info("Broker %d shut down completed", node.node_id)
    return 1 if failed else 0
