"""The other brokers, over real connections: one per broker and lane, opened on first use, to where the image says.

A connection belongs to one broker epoch at one address. When the image tells of another epoch, another address, or
that the broker has gone, the connection is dropped and whoever waits on it is told at once.
"""

import asyncio
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from ottla.broker.replication.peers import MAIN_LANE, PeerUnavailable
from ottla.client.connection import CONNECT_TIMEOUT_S, Connection
from ottla.client.errors import ClientError
from ottla.client.security import PLAINTEXT, Security
from ottla.cluster.image import ClusterImage, Endpoint, ImageChange
from ottla.cluster.store import MetadataStore
from ottla.model.errors import OttlaError
from ottla.protocol.schema import TopLevel

R = TypeVar("R", bound=TopLevel)

RECONNECT_SECONDS = 0.05
RECONNECT_SECONDS_MAX = 1.0


class _Target(NamedTuple):
    """Where a broker is reached, in one broker epoch."""

    epoch: int
    endpoint: Endpoint


class _Lane:
    """The way to one broker; the requests of a lane take turns to be sent and share what they learn."""

    def __init__(self, target: _Target) -> None:
        self.target = target
        self.connection: Connection | None = None
        self.turn = asyncio.Lock()
        self.failures = 0
        """How many attempts failed, one after the other."""
        self.failures_ever = 0
        self.failed_at = 0.0
        self.failure = ""
        self.opened_at = 0.0
        self.is_dropped = False

    def opened(self, connection: Connection) -> None:
        self.connection = connection
        self.opened_at = asyncio.get_running_loop().time()

    def failed(self, why: str) -> None:
        self.failures += 1
        self.failures_ever += 1
        self.failed_at = asyncio.get_running_loop().time()
        self.failure = why

    def lost(self) -> None:
        """The connection broke. One that did not last is no success: who only hangs up is not called all the time."""
        self.connection = None
        if asyncio.get_running_loop().time() - self.opened_at > RECONNECT_SECONDS_MAX:
            self.failures = 0
        else:
            self.failures += 1
            self.failed_at = asyncio.get_running_loop().time()

    def pause_left(self) -> float:
        """How long to wait before the next attempt to connect."""
        if not self.failures:
            return 0.0
        pause = min(RECONNECT_SECONDS * 2.0 ** min(self.failures - 1, 10), RECONNECT_SECONDS_MAX)
        return self.failed_at + pause - asyncio.get_running_loop().time()


class ConnectedPeers:
    """Implements Peers."""

    def __init__(
        self,
        node_id: int,
        metadata: MetadataStore,
        listener: str,
        security: Callable[[], Security] = lambda: PLAINTEXT,
    ) -> None:
        """`listener` names the listener that brokers use among themselves; `security` is asked how it is spoken to."""
        self._client_id = f"broker-{node_id}"
        self._metadata = metadata
        self._listener = listener
        self._security = security
        self._lanes: dict[tuple[int, str], _Lane] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._unsubscribe = metadata.subscribe(self._on_change)

    async def call(
        self,
        broker_id: int,
        request: TopLevel,
        answer: type[R],
        *,
        timeout_s: float,
        lane: str = MAIN_LANE,
        max_version: int | None = None,
    ) -> R:
        way = self._lane(broker_id, lane)
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                connection = await self._connected(broker_id, way)
            # The connection keeps its own time: one on which an answer is missing is of no use any more.
            left = max(ends_at - loop.time(), 0.001)
            return await connection.call(request, answer, timeout_s=left, max_version=max_version)
        except TimeoutError:
            raise PeerUnavailable(broker_id, f"no connection within {timeout_s:g} s") from None
        except PeerUnavailable:
            raise
        except OttlaError as error:
            raise PeerUnavailable(broker_id, str(error)) from error

    async def close(self) -> None:
        self._is_closed = True
        self._unsubscribe()
        for key in list(self._lanes):
            self._drop(key)
        if self._closing:
            await asyncio.wait(self._closing)

    def _target(self, image: ClusterImage, broker_id: int) -> _Target | None:
        broker = image.brokers.get(broker_id)
        endpoint = None if broker is None else broker.endpoint(self._listener)
        return None if broker is None or endpoint is None else _Target(broker.epoch, endpoint)

    def _lane(self, broker_id: int, name: str) -> _Lane:
        if self._is_closed:
            raise PeerUnavailable(broker_id, "this broker is stopping")
        target = self._target(self._metadata.image, broker_id)
        if target is None:
            raise PeerUnavailable(broker_id, f"it does not run, or has no listener {self._listener}")
        key = (broker_id, name)
        known = self._lanes.get(key)
        if known is None or known.target != target:
            self._drop(key)
            known = self._lanes[key] = _Lane(target)
        return known

    async def _connected(self, broker_id: int, lane: _Lane) -> Connection:
        """The lane's connection, opened if there is none.

        The lock is fair, so requests are sent in the order they were made. Who waited while an attempt failed is
        told of that failure and makes none of its own.
        """
        failures_before = lane.failures_ever
        async with lane.turn:
            if lane.connection is not None:
                if lane.connection.usable:
                    return lane.connection
                lane.lost()
            if lane.failures_ever > failures_before:
                raise PeerUnavailable(broker_id, lane.failure)
            await asyncio.sleep(max(lane.pause_left(), 0.0))
            if lane.is_dropped:
                raise PeerUnavailable(broker_id, "it has gone, or has moved")
            return await self._open(lane)

    async def _open(self, lane: _Lane) -> Connection:
        endpoint = lane.target.endpoint
        try:
            connection = await Connection.open(
                endpoint.host,
                endpoint.port,
                client_id=self._client_id,
                timeout_s=CONNECT_TIMEOUT_S,
                security=self._security(),
            )
        except ClientError as error:
            lane.failed(str(error))
            raise
        if lane.is_dropped:
            self._close(connection)
        else:
            lane.opened(connection)
        return connection

    def _on_change(self, change: ImageChange) -> None:
        if not change.brokers:
            return
        for key, lane in list(self._lanes.items()):
            if self._target(change.new, key[0]) != lane.target:
                self._drop(key)

    def _drop(self, key: tuple[int, str]) -> None:
        lane = self._lanes.pop(key, None)
        if lane is None:
            return
        lane.is_dropped = True
        if lane.connection is not None:
            self._close(lane.connection)

    def _close(self, connection: Connection) -> None:
        task = asyncio.get_running_loop().create_task(connection.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
