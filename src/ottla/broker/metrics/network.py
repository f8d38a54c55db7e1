"""What happens at the connections: who waits, how much the loop has to do."""

from collections import Counter
from collections.abc import Callable, Iterator

from ottla.broker.handlers.context import Parked
from ottla.broker.handlers.fetching.sessions import FetchSessions
from ottla.broker.server.listener import Server
from ottla.protocol.apis import ApiKey
from ottla.telemetry.declared import network
from ottla.telemetry.metric import Row
from ottla.telemetry.registry import Telemetry

_PURGATORIES = {
    int(ApiKey.PRODUCE): "Produce",
    int(ApiKey.FETCH): "Fetch",
    int(ApiKey.JOIN_GROUP): "Rebalance",
    int(ApiKey.SYNC_GROUP): "Rebalance",
    int(ApiKey.DELETE_RECORDS): "DeleteRecords",
    int(ApiKey.ELECT_LEADERS): "ElectLeader",
}
"""Kafka's names for those who wait, by what they asked for."""
_QUEUES = (
    network.REQUEST_QUEUE_SIZE,
    network.RESPONSE_QUEUE_SIZE,
    network.MEMORY_POOL_USED,
    network.EXPIRED_CONNECTIONS,
)
_SESSIONS = (network.FETCH_SESSIONS, network.FETCH_SESSION_PARTITIONS, network.FETCH_SESSION_EVICTIONS)


def show(telemetry: Telemetry, server: Callable[[], Server | None], sessions: FetchSessions) -> None:
    def read_queues() -> Iterator[Row]:
        found = server()
        if found is None:
            return
        waiting = blocked = 0
        for connection in tuple(found.connections):
            has_requests, is_blocked, _ = connection.backlog
            waiting += has_requests
            blocked += is_blocked
        yield (), (waiting, blocked, found.memory.held, found.expired_connections)

    def read_purgatories() -> Iterator[Row]:
        found = server()
        if found is None:
            return
        parked: Counter[str] = Counter(dict.fromkeys(_PURGATORIES.values(), 0))
        for connection in tuple(found.connections):
            for slot in connection.backlog[2]:
                name = _PURGATORIES.get(slot.answer.call.api_key)
                if name is not None and isinstance(slot.answer.outcome, Parked) and not slot.answer.outcome.resolved:
                    parked[name] += 1
        for name, count in parked.items():
            yield (name,), (count, count)

    def read_sessions() -> Iterator[Row]:
        yield (), (len(sessions), sum(len(each.wanted) for each in sessions.all()), sessions.evictions)

    telemetry.observe_together(_QUEUES, read_queues)
    telemetry.observe_together((network.PURGATORY, network.DELAYED_OPERATIONS), read_purgatories)
    telemetry.observe_together(_SESSIONS, read_sessions)
