"""What is to be told to other brokers goes out in few requests: one is under way to each, the next has all the rest.

Whatever waits for an answer is failed when the broker cannot be asked; whoever submitted it decides whether, and to
which broker, it is sent again.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from ottla.broker.replication.peers import Peers
from ottla.cluster.store import MetadataStore
from ottla.config.broker import BrokerSettings
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.schema import TopLevel

Item = TypeVar("Item")
R = TypeVar("R")
Response = TypeVar("Response", bound=TopLevel)

Send = Callable[[int, list[Item]], Awaitable[Sequence[R | ApiError]]]
"""Asks a broker about some items: one result, or the reason why there is none, for each of them."""

ITEMS_PER_REQUEST_MAX = 1000


class InterBroker(NamedTuple):
    """Who this broker is, which others there are, and how they are asked."""

    node_id: int
    metadata: MetadataStore
    peers: Peers
    settings: Callable[[], BrokerSettings]

    async def call(self, broker_id: int, request: TopLevel, answer: type[Response], *, lane: str) -> Response:
        timeout_s = self.settings().request_timeout_ms / 1000.0
        return await self.peers.call(broker_id, request, answer, timeout_s=timeout_s, lane=lane)


def watched(pending: Awaitable[R]) -> "asyncio.Future[R]":
    """A future of something that nobody may be waiting for any more when it fails."""
    future = asyncio.ensure_future(pending)
    future.add_done_callback(lambda done: done.cancelled() or done.exception())
    return future


class Sender(Generic[Item, R]):
    def __init__(self, send: "Send[Item, R]") -> None:
        self._send = send
        self._queues: dict[int, deque[tuple[Item, asyncio.Future[R]]]] = {}
        self._under_way: dict[int, asyncio.Task[None]] = {}

    def submit(self, broker_id: int, item: Item) -> "asyncio.Future[R]":
        answer: asyncio.Future[R] = watched(asyncio.get_running_loop().create_future())
        self._queues.setdefault(broker_id, deque()).append((item, answer))
        if broker_id not in self._under_way:
            self._under_way[broker_id] = asyncio.get_running_loop().create_task(self._send_all(broker_id))
        return answer

    def close(self) -> None:
        for task in self._under_way.values():
            task.cancel()

    async def _send_all(self, broker_id: int) -> None:
        queue = self._queues[broker_id]
        batch: list[tuple[Item, asyncio.Future[R]]] = []
        try:
            while queue:
                batch = [queue.popleft() for _ in range(min(len(queue), ITEMS_PER_REQUEST_MAX))]
                try:
                    results = await self._send(broker_id, [item for item, _ in batch])
                except ApiError as error:
                    results = [error] * len(batch)
                for (_, answer), result in zip(batch, results, strict=True):
                    _resolve(answer, result)
        finally:
            # Nothing is left behind, whatever ended this.
            for _, answer in (*batch, *queue):
                _resolve(answer, ApiError(ErrorCode.NETWORK_EXCEPTION, "it was not sent"))
            queue.clear()
            del self._queues[broker_id], self._under_way[broker_id]


def _resolve(answer: "asyncio.Future[R]", result: R | ApiError) -> None:
    if answer.done():
        return
    if isinstance(result, ApiError):
        answer.set_exception(result)
    else:
        answer.set_result(result)
