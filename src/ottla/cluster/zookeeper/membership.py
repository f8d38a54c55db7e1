"""Which brokers run and who is the controller: ephemeral nodes, read, created and replaced."""

import asyncio
import contextlib
import logging
from typing import NamedTuple

from ottla.cluster.image import NO_CONTROLLER, BrokerImage
from ottla.cluster.zookeeper.client import (
    BadVersion,
    Check,
    Create,
    Delete,
    NodeExists,
    NoNode,
    Operation,
    Set,
    Stat,
    Watch,
    ZooKeeperClient,
)
from ottla.cluster.zookeeper.layout import (
    BROKERS,
    CONTROLLER,
    CONTROLLER_EPOCH,
    broker_document,
    broker_path,
    controller_document,
    read_broker,
    read_controller,
    read_epoch,
)
from ottla.model.errors import OttlaError

logger = logging.getLogger(__name__)


class BrokerIdTaken(OttlaError):
    """Another broker runs under this id."""


class Leadership(NamedTuple):
    """Who is the controller. `guard` is the version of the epoch's node, with which its commits are checked."""

    controller_id: int
    epoch: int
    guard: int
    session: int
    """Of the controller: an id alone may be that of its former registration, whose session has not expired yet."""


NOBODY = Leadership(NO_CONTROLLER, 0, 0, 0)


async def read_brokers(client: ZooKeeperClient, watch: Watch | None) -> dict[int, BrokerImage]:
    """All are read again at every change: one that was replaced has the same name and another epoch."""
    ids = sorted(int(name) for name in await client.children(BROKERS, watch))
    nodes = await client.get_many([broker_path(broker_id) for broker_id in ids])
    return {
        broker_id: read_broker(broker_id, node[0], node[1].created)
        for broker_id, node in zip(ids, nodes, strict=True)
        if node is not None  # else it is gone since: the watch will say so
    }


async def read_leadership(client: ZooKeeperClient, watch: Watch | None) -> Leadership:
    if await client.exists(CONTROLLER, watch) is None:
        data, stat = await client.get(CONTROLLER_EPOCH)
        return NOBODY._replace(epoch=read_epoch(data), guard=stat.version)
    while True:
        try:
            data, stat = await client.get(CONTROLLER)
        except NoNode:
            data, stat = await client.get(CONTROLLER_EPOCH)
            return NOBODY._replace(epoch=read_epoch(data), guard=stat.version)
        controller_id, epoch = read_controller(data)
        epoch_data, epoch_stat = await client.get(CONTROLLER_EPOCH)
        if read_epoch(epoch_data) == epoch:  # else there has been another election between the two requests
            return Leadership(controller_id, epoch, epoch_stat.version, stat.owner)


async def stand_for_election(client: ZooKeeperClient, broker_id: int, before: Leadership) -> bool:
    """Become the controller if nobody is, and nobody has been since `before` was read."""
    epoch = before.epoch + 1
    try:
        await client.multi(
            [
                Set(CONTROLLER_EPOCH, str(epoch).encode(), before.guard),
                Create(CONTROLLER, controller_document(broker_id, epoch), ephemeral=True),
            ]
        )
    except (BadVersion, NodeExists):
        return False
    return True


async def register(client: ZooKeeperClient, broker: BrokerImage, patience_s: float) -> int:
    """Make a broker known and return its epoch. BrokerIdTaken if another has its id and keeps it.

    What this broker's own former registration left is replaced in one step, so that nobody can take its place between.
    Another's is waited for: that broker may have died, and its session be about to expire.
    """
    path, document = broker_path(broker.id), broker_document(broker)
    deadline = asyncio.get_running_loop().time() + patience_s
    while True:
        gone = asyncio.Event()
        if await client.exists(path, gone.set) is None:
            with contextlib.suppress(NodeExists):
                await client.multi([Create(path, document, ephemeral=True)])
            continue
        try:
            data, stat = await client.get(path)
            if stat.owner == client.session_id and data == document:
                return stat.created
            there = read_broker(broker.id, data, stat.created)
            if stat.owner == client.session_id or _is_own_registration(there, broker):
                deposed = await _deposition(client, stat)
                anew = Create(path, document, ephemeral=True)
                await client.multi([*deposed, Delete(path, stat.version), anew])
                continue
        except (NoNode, NodeExists, BadVersion):
            continue  # it changed while we looked: look again
        await _wait_for(gone, there, deadline)


def _is_own_registration(there: BrokerImage, broker: BrokerImage) -> bool:
    return bool(broker.incarnation) and there.incarnation == broker.incarnation


async def _deposition(client: ZooKeeperClient, registration: Stat) -> list[Operation]:
    """If the former registration was the controller it is so no more."""
    try:
        _, stat = await client.get(CONTROLLER)
    except NoNode:
        return []
    return [Check(CONTROLLER, stat.version), Delete(CONTROLLER)] if stat.owner == registration.owner else []


async def _wait_for(gone: asyncio.Event, there: BrokerImage, deadline: float) -> None:
    remaining_s = deadline - asyncio.get_running_loop().time()
    address = ", ".join(f"{each.host}:{each.port}" for each in there.endpoints)
    if remaining_s <= 0:
        raise BrokerIdTaken(
            f"broker id {there.id} is taken by another broker, at {address}. "
            "Give this one another node.id, or stop the other"
        )
    logger.info("Broker id %d is already registered at %s; waiting in case that session expires", there.id, address)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(remaining_s):
            await gone.wait()
