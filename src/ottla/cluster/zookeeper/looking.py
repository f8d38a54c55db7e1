"""For tools: which brokers a ZooKeeper knows, and a client to look around in it. Nothing is created on the way."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from ottla.cluster.image import BrokerImage
from ottla.cluster.zookeeper.client import ConnectionLost, NoNode, SessionEvent
from ottla.cluster.zookeeper.layout import BROKERS, read_broker
from ottla.config.zookeeper import Ensemble

if TYPE_CHECKING:
    from ottla.cluster.zookeeper.kazoo_client import KazooZooKeeper

T = TypeVar("T")

CONNECT_SECONDS_MAX = 5.0
SESSION_SECONDS_MAX = 30.0
SESSION_TIMEOUT_MS = 10_000


def run_with_client(ensemble: Ensemble, work: "Callable[[KazooZooKeeper], Awaitable[T]]") -> T:
    """Run `work` in a session. ConnectionLost says at once where nobody listens."""
    unreachable = _unreachable(ensemble.hosts)
    if len(unreachable) == len(ensemble.hosts):
        raise ConnectionLost(f"no ZooKeeper can be reached at {','.join(ensemble.hosts)} ({'; '.join(unreachable)})")
    # Kazoo tells its troubles to the log; a tool has no log, and says itself what is wrong.
    logging.getLogger("kazoo").addHandler(logging.NullHandler())
    return asyncio.run(_session(ensemble, work))


async def _session(ensemble: Ensemble, work: "Callable[[KazooZooKeeper], Awaitable[T]]") -> T:
    from ottla.cluster.zookeeper.kazoo_client import KazooZooKeeper  # noqa: PLC0415 - for the few who want it

    client = KazooZooKeeper(
        ",".join(ensemble.hosts),
        chroot=ensemble.chroot,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        creates_chroot=False,
    )
    await client.start(_ignore, SESSION_SECONDS_MAX)
    try:
        return await work(client)
    finally:
        await client.close()


async def registered_brokers(client: "KazooZooKeeper") -> list[BrokerImage]:
    """The brokers that run, by id; none where the path or the node is not there."""
    try:
        ids = sorted(int(name) for name in await client.children(BROKERS) if name.isdecimal())
    except NoNode:
        return []
    nodes = await client.get_many([f"{BROKERS}/{broker_id}" for broker_id in ids])
    return [
        read_broker(broker_id, node[0], node[1].created)
        for broker_id, node in zip(ids, nodes, strict=True)
        if node is not None
    ]


def _unreachable(hosts: Sequence[str]) -> list[str]:
    """Why each host does not take a connection, up to the first that does."""
    problems: list[str] = []
    for address in hosts:
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS_MAX).close()
        except OSError as error:
            problems.append(f"{address}: {error.strerror or error}")
        else:
            break
    return problems


def _ignore(_event: SessionEvent) -> None:
    """A request under way hears of it itself."""
