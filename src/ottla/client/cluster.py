"""A cluster seen from outside: finds its brokers, leaders and coordinators, and sends each request where it belongs."""

import asyncio
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Self, TypeVar

from ottla.client.connection import CONNECT_TIMEOUT_S, REQUEST_TIMEOUT_S, Connection
from ottla.client.errors import ClientError, ConnectionLost, RequestTimeout, Unreachable
from ottla.client.security import PLAINTEXT, Security
from ottla.model.defaults import DEFAULT_PORT
from ottla.model.errors import ApiError, ErrorCode, OttlaError
from ottla.model.names import TopicPartition
from ottla.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.protocol.schema import TopLevel

R = TypeVar("R", bound=TopLevel)
T = TypeVar("T")

TOTAL_TIMEOUT_S = 60.0
BACKOFF_FIRST_S = 0.05
BACKOFF_MAX_S = 1.0

# Errors that pass on their own: somebody has just moved, started or not yet loaded. An unknown topic is not among them,
# although Kafka calls it retriable: whoever mistypes a name wants to hear of it now, not in a minute.
PASSING = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    }
)


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Broker(NamedTuple):
    node_id: int
    address: Address
    rack: str | None


class Leader(NamedTuple):
    """Who leads a partition. The topic's id is zero where the broker is too old to have one."""

    node: int
    epoch: int
    topic_id: uuid.UUID


def parse_bootstrap(bootstrap: str) -> list[Address]:
    """`host:port,host:port`; a missing port is 9092, a scheme such as PLAINTEXT:// is dropped, IPv6 wants brackets."""
    addresses: list[Address] = []
    for entry in bootstrap.split(","):
        text = entry.strip().partition("://")[2] or entry.strip()
        if not text:
            continue
        host, colon, port = text.rpartition(":")
        if not colon or text.endswith("]"):
            host, port = text, str(DEFAULT_PORT)
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise ClientError(f"`{entry.strip()}` is not an address: write host:port")
        addresses.append(Address(host.strip("[]"), int(port)))
    if not addresses:
        raise ClientError("no broker address was given: write host:port,host:port")
    return addresses


def raise_for(code: int, message: str | None = None) -> None:
    """Turn an error code from an answer into an exception."""
    if code:
        raise ApiError(error_code(code), message or None)


def error_code(code: int) -> ErrorCode:
    """The code of an answer; one that we do not know is as good as unknown."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


class Cluster:
    """Connections to a cluster, opened when first needed. Use it as an async context manager."""

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str = "ottla",
        request_timeout_s: float = REQUEST_TIMEOUT_S,
        total_timeout_s: float = TOTAL_TIMEOUT_S,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        security: Security = PLAINTEXT,
        patience_s: float = 0.0,
    ) -> None:
        """`patience_s` waits for brokers that were never reached; by default they fail at once, as a wrong address."""
        self.bootstrap = bootstrap
        self.brokers: dict[int, Broker] = {}
        """Who is in the cluster, as the last metadata said."""
        self.controller_id = -1
        self.cluster_id: str | None = None
        self._addresses = parse_bootstrap(bootstrap)
        self._client_id = client_id
        self._request_timeout_s = request_timeout_s
        self._total_timeout_s = total_timeout_s
        self._connect_timeout_s = connect_timeout_s
        self._security = security
        self._patience_s = patience_s
        self._connections: dict[Address, Connection] = {}
        self._closed = False
        self._opening: dict[Address, asyncio.Lock] = {}
        self._coordinators: dict[tuple[str, int], int] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        self._closed = True
        connections, self._connections = list(self._connections.values()), {}
        for connection in connections:
            await connection.close()

    # Where requests go.

    async def call(
        self,
        request: TopLevel,
        answer: type[R],
        *,
        node: int | None = None,
        min_version: int = 0,
        max_version: int | None = None,
        timeout_s: float | None = None,
    ) -> R:
        """Send a request once, to the broker `node` or, without it, to any broker."""
        connection = await (self._any() if node is None else self.connection(node))
        return await connection.call(
            request,
            answer,
            min_version=min_version,
            max_version=max_version,
            timeout_s=self._request_timeout_s if timeout_s is None else timeout_s,
        )

    async def connection(self, node: int) -> Connection:
        """The connection to a broker by its id."""
        if node not in self.brokers:
            await self.metadata([])
        broker = self.brokers.get(node)
        if broker is None:
            known = ", ".join(str(known) for known in sorted(self.brokers)) or "none"
            raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE, f"there is no broker {node} now; the brokers are: {known}")
        try:
            return await self._open(broker.address)
        except Unreachable as error:
            # It was there when the metadata came. It may have moved: whoever tries again will ask where to.
            self.brokers.pop(node, None)
            raise ConnectionLost(str(error)) from error

    async def controller(self) -> int:
        """The broker that decides about topics and settings."""
        if self.controller_id not in self.brokers:
            await self.metadata([])
        if self.controller_id not in self.brokers:
            raise ApiError(ErrorCode.NOT_CONTROLLER, "the cluster has no controller now")
        return self.controller_id

    async def coordinator(self, key: str, key_type: int = 0) -> int:
        """The broker that keeps a group (type 0) or a transactional id (type 1)."""
        known = self._coordinators.get((key, key_type))
        if known is not None and known in self.brokers:
            return known
        request = FindCoordinatorRequest(key=key, key_type=key_type, coordinator_keys=[key])
        response = await self.call(request, FindCoordinatorResponse, min_version=1)
        found = response.coordinators[0] if response.coordinators else _lone_coordinator(response)
        raise_for(found.error_code, found.error_message)
        known_as = self.brokers.get(found.node_id)
        rack = known_as.rack if known_as else None
        self.brokers[found.node_id] = Broker(found.node_id, Address(found.host, found.port), rack)
        self._coordinators[key, key_type] = found.node_id
        return found.node_id

    async def metadata(self, topics: Sequence[str] | None = None) -> MetadataResponse:
        """Brokers and these topics; no topics for an empty list, all for None. Never creates one."""
        wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        response = await self.call(request, MetadataResponse, min_version=4)
        raise_for(response.error_code)
        self.brokers = {
            broker.node_id: Broker(broker.node_id, Address(broker.host, broker.port), broker.rack)
            for broker in response.brokers
        }
        self.controller_id = response.controller_id
        self.cluster_id = response.cluster_id
        return response

    async def by_leader(
        self, partitions: Iterable[TopicPartition]
    ) -> tuple[dict[int, list[TopicPartition]], dict[TopicPartition, ErrorCode]]:
        """Partitions grouped by the broker that leads them, and those that have no leader with the reason."""
        wanted = list(dict.fromkeys(partitions))
        response = await self.metadata(sorted({partition.topic for partition in wanted}))
        leaders: dict[TopicPartition, int] = {}
        failed: dict[TopicPartition, ErrorCode] = {}
        topic_errors = {topic.name: topic.error_code for topic in response.topics if topic.error_code}
        for topic in response.topics:
            for found in topic.partitions:
                leaders[TopicPartition(topic.name or "", found.partition_index)] = found.leader_id
        groups: dict[int, list[TopicPartition]] = {}
        for partition in wanted:
            leader = leaders.get(partition)
            if leader is None:
                error = topic_errors.get(partition.topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                failed[partition] = error_code(error)
            elif leader not in self.brokers:
                failed[partition] = ErrorCode.LEADER_NOT_AVAILABLE
            else:
                groups.setdefault(leader, []).append(partition)
        return groups, failed

    async def leader(self, partition: TopicPartition) -> Leader:
        """The leader of one partition, asked anew. Raises if there is none, or no such partition."""
        response = await self.metadata([partition.topic])
        for topic in response.topics:
            raise_for(topic.error_code, f"topic `{partition.topic}`: {error_code(topic.error_code).name}")
            for found in topic.partitions:
                if found.partition_index == partition.partition:
                    if found.leader_id not in self.brokers:
                        raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader now")
                    return Leader(found.leader_id, found.leader_epoch, topic.topic_id)
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {partition}")

    def forget_coordinators(self) -> None:
        """They are asked for anew: one of them answered that it is none, or not at all."""
        self._coordinators.clear()

    # Trying again.

    async def retrying(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Run `attempt` until it succeeds, fails for good, or the total time is over.

        What passes: errors in PASSING, and connections that break. What is learnt again each time: who coordinates.
        """
        started = time.monotonic()
        deadline = started + self._total_timeout_s
        pause_s = BACKOFF_FIRST_S
        while True:
            try:
                return await attempt()
            except OttlaError as error:
                out_of_time = time.monotonic() + pause_s > deadline
                if out_of_time or not self._passes(error, time.monotonic() - started):
                    raise
                self._coordinators.clear()
                self.controller_id = -1
            await asyncio.sleep(pause_s * random.uniform(0.8, 1.2))  # noqa: S311 (spreads clients out, hides nothing)
            pause_s = min(pause_s * 2, BACKOFF_MAX_S)

    def _passes(self, error: OttlaError, waited_s: float) -> bool:
        if isinstance(error, ApiError):
            return error.code in PASSING
        if isinstance(error, Unreachable):
            was_there = self.cluster_id is not None  # then it may only be restarting
            return was_there or waited_s < self._patience_s
        return isinstance(error, ConnectionLost | RequestTimeout)

    async def each_leader(
        self,
        partitions: Iterable[TopicPartition],
        ask: Callable[[int, list[TopicPartition]], Awaitable[Mapping[TopicPartition, T | ErrorCode]]],
    ) -> dict[TopicPartition, T | ErrorCode]:
        """Ask the leaders of these partitions, and ask again about those that answered with a passing error."""
        results: dict[TopicPartition, T | ErrorCode] = {}
        left = list(partitions)

        async def attempt() -> None:
            groups, failed = await self.by_leader(left)
            answered = await asyncio.gather(*(ask(node, group) for node, group in groups.items()))
            results.update(failed)
            for answers in answered:
                results.update(answers)
            left[:] = [partition for partition in left if _passing_code(results.get(partition)) is not None]
            if left:
                raise ApiError(_passing_code(results[left[0]]) or ErrorCode.UNKNOWN_SERVER_ERROR)

        try:
            await self.retrying(attempt)
        except ApiError as error:
            if error.code not in PASSING:
                raise
            # Time is over: what is still failing says so in its own result.
        return results

    # Connections.

    async def _any(self) -> Connection:
        """A connection that is open, or else the first broker that answers."""
        for connection in self._connections.values():
            if connection.usable:
                return connection
        known = [broker.address for broker in self.brokers.values()]
        failures: list[str] = []
        for address in dict.fromkeys([*self._addresses, *known]):
            try:
                return await self._open(address)
            except (Unreachable, ConnectionLost) as error:
                failures.append(str(error))
        raise Unreachable("; ".join(failures))

    async def _open(self, address: Address) -> Connection:
        async with self._opening.setdefault(address, asyncio.Lock()):
            connection = self._connections.get(address)
            if connection is not None and connection.usable:
                return connection
            if connection is not None:
                del self._connections[address]
                await connection.close()
            connection = await Connection.open(
                *address, client_id=self._client_id, timeout_s=self._connect_timeout_s, security=self._security
            )
            if self._closed:  # while it was opened, because another of several requests at once had failed
                await connection.close()
                raise ConnectionLost(f"{address}: the client was closed")
            self._connections[address] = connection
            return connection


def _passing_code(result: object) -> ErrorCode | None:
    return result if isinstance(result, ErrorCode) and result in PASSING else None


def _lone_coordinator(response: FindCoordinatorResponse) -> Coordinator:
    """Before version 4 the answer is about one key and lies flat in the response."""
    return Coordinator(
        node_id=response.node_id,
        host=response.host,
        port=response.port,
        error_code=response.error_code,
        error_message=response.error_message,
    )
