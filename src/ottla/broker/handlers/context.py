"""What a handler is given, and what it may give back."""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, final

import msgspec

from ottla.broker.controller.loop import Controller
from ottla.broker.coordination.kinds import Coordinators
from ottla.broker.coordination.runtime import GroupCoordinator
from ottla.broker.coordination.transaction_partitions import TransactionPartitions
from ottla.broker.coordination.transaction_runtime import TransactionCoordinator
from ottla.broker.handlers.fetching.sessions import FetchSessions
from ottla.broker.handlers.producing.schema_ids import SchemaIds
from ottla.broker.quotas.clients import ClientQuotas
from ottla.broker.quotas.throttles import ReplicationThrottle
from ottla.broker.replication.moving import ReplicaMoves
from ottla.broker.replication.partitions import Partitions
from ottla.broker.replication.peers import Peers
from ottla.broker.security.acls.authorizer import Authorizer
from ottla.broker.security.authenticators import Authenticators
from ottla.broker.session import Session
from ottla.broker.storage.log import LogSlice
from ottla.broker.storage.manager import LogManager
from ottla.cluster.store import MetadataStore
from ottla.config.broker import BrokerSettings
from ottla.config.live import LiveConfig
from ottla.model.clock import Clock
from ottla.protocol.schema import TopLevel
from ottla.telemetry.pushed import ClientMetrics
from ottla.telemetry.registry import Telemetry

NO_THROTTLE_FIELD = -1
_INT32 = struct.Struct(">i")


class ServedApi(NamedTuple):
    """One line of what ApiVersions tells: an API and the versions it is offered in."""

    key: int
    min_version: int
    max_version: int


@dataclass(slots=True)
class Broker:
    """Everything a handler may reach. Built once, by node.py."""

    node_id: int
    config: LiveConfig
    clock: Clock
    metadata: MetadataStore
    controller: Controller
    partitions: Partitions
    logs: LogManager
    moves: ReplicaMoves
    leader_throttle: ReplicationThrottle
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    coordinators: Coordinators
    transaction_partitions: TransactionPartitions
    peers: Peers
    fetch_sessions: FetchSessions
    authenticators: Authenticators
    served_apis: Sequence[ServedApi]
    telemetry: Telemetry
    authorizer: Authorizer | None = None
    """Who decides what clients may do; None: everybody may do everything. Ask through handlers/common/access.py."""
    quotas: ClientQuotas = field(default_factory=ClientQuotas)
    schema_ids: SchemaIds = field(default_factory=SchemaIds)
    client_metrics: ClientMetrics | None = None
    """Where clients push their metrics; None: nobody would see them."""

    @property
    def settings(self) -> BrokerSettings:
        """The settings as they are now; dynamic ones may differ at the next request."""
        return self.config.broker


class Call(msgspec.Struct):
    """Who asks, how, and in which version."""

    api_key: int
    version: int
    client_id: str | None
    session: Session
    throttle_ms: int = 0
    """How long this client is to be left alone once it has its answer, which tells it so. Raised by whoever finds that
    a quota is exceeded; the longest counts."""
    exempt: bool = False
    """What brokers ask of each other is charged to nobody."""
    then_close: bool = False
    """Whether the connection ends with this answer."""

    def throttle(self, ms: int) -> None:
        self.throttle_ms = max(self.throttle_ms, ms)


class Raw(msgspec.Struct):
    """A response body packed by the handler itself: bytes, and slices of segments that leave by sendfile."""

    chunks: list[bytes | bytearray | LogSlice]
    size: int
    throttle_at: int = NO_THROTTLE_FIELD
    """Where in the first chunk, which is a bytearray then, the throttle time stands."""
    errors: Sequence[int] = ()
    """The error codes in the body that are not 0."""

    def tell_throttle(self, ms: int) -> None:
        """Put the throttle time into the packed body."""
        if self.throttle_at != NO_THROTTLE_FIELD:
            first = self.chunks[0]
            assert isinstance(first, bytearray)
            _INT32.pack_into(first, self.throttle_at, ms)


@final
class NoResponse:
    """Produce with acks=0 is not answered at all."""


@final
class CloseConnection:
    """The connection cannot go on: the client is to connect again."""


NO_RESPONSE = NoResponse()
CLOSE_CONNECTION = CloseConnection()

Response = TopLevel | Raw | NoResponse | CloseConnection


@final
class Parked:
    """A response that is not ready yet.

    `holds_connection` tells whether later requests of the same connection wait for it. A produce that waits for its
    replicas does not hold the connection, so the next append goes on meanwhile; everything else does.
    """

    __slots__ = ("_on_resolved", "_response", "abandon", "holds_connection", "hurry")

    def __init__(self, *, holds_connection: bool) -> None:
        self.holds_connection = holds_connection
        self._response: Response | None = None
        self._on_resolved: Callable[[Response], None] | None = None
        self.abandon: Callable[[], None] | None = None
        """Set by whoever waits for something that may never come: called when the client has gone."""
        self.hurry: Callable[[], None] | None = None
        """Set by whoever should wait no longer once the client has sent another request behind this one."""

    @property
    def resolved(self) -> bool:
        return self._response is not None

    def resolve(self, response: Response) -> None:
        """Answer, once; a second answer (a timer that raced with an event) is dropped.

        Whoever waited is let go of: they know this object too, and in a circle a request's bytes would stay in memory
        until the garbage collector comes by.
        """
        if self._response is not None:
            return
        self._response = response
        answered, self._on_resolved = self._on_resolved, None
        self.abandon = self.hurry = None
        if answered is not None:
            answered(response)

    def when_resolved(self, callback: Callable[[Response], None]) -> None:
        if self._response is not None:
            callback(self._response)
        else:
            self._on_resolved = callback
