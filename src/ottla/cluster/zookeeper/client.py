"""What the store needs of ZooKeeper, no more: the seam that kazoo fills in a broker and a model fills in simulations.

Everything happens on the event loop's thread. What an implementation promises:

Order     Requests of one client are answered in the order in which they were made, and take effect in that order. A
          client never sees older state than it has seen before, not even through another server after a reconnect; it
          may see older state than another client has seen. `sync` brings it up to what was committed when it was sent.
Watches   A watch is called at most once, when what was read has changed: `get` and `exists` when the node is created,
          written or deleted, `children` when a child comes or goes or the node itself is deleted. It is called
          before the answer of any request of this client that shows the change. It says that something changed, not
          what: read again, with a new watch. A read that raises leaves no watch behind; `exists` of a node that is
          not there does.
Break     When the connection breaks, SUSPENDED is reported, every watch is forgotten without being called, and then
          every request under way raises ConnectionLost: it may have taken effect or may not, or may never have been
          sent. Until CONNECTED is reported, requests raise ConnectionLost at once.
Return    CONNECTED is reported when the server has taken the session up again. All watches have to be left anew.
Expiry    If it was too late, EXPIRED is reported, requests under way raise SessionExpired, and the session's ephemeral
          nodes are gone. The client begins a new session by itself: CONNECTED is reported with another `session_id`.
          The expiry of a session is only learnt from the server: a client that cannot reach any stays SUSPENDED.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from ottla.model.errors import OttlaError
from ottla.telemetry.histogram import Histogram

ANY_VERSION = -1


class ZooKeeperError(OttlaError):
    """Something ZooKeeper refused, or that did not reach it."""


class ConnectionLost(ZooKeeperError):
    """No answer came: what was asked for may have happened or not."""


class SessionExpired(ZooKeeperError):
    """The session is over, and with it its ephemeral nodes."""


class AuthenticationFailed(ConnectionLost):
    """The server does not take the credentials."""


class RequestRefused(ZooKeeperError):
    """Nothing happened. In a `multi`, `index` is the operation that could not be done."""

    def __init__(self, path: str, index: int = 0) -> None:
        super().__init__(f"{path}: {self._reason}")
        self.path = path
        self.index = index

    _reason = "refused"


class NoNode(RequestRefused):
    _reason = "there is no such node, or a node above it is missing"


class NodeExists(RequestRefused):
    _reason = "the node exists"


class BadVersion(RequestRefused):
    _reason = "the node has another version"


class NotEmpty(RequestRefused):
    _reason = "the node has children"


class NotAllowed(RequestRefused):
    _reason = "the node's access list does not allow it"


class Stat(NamedTuple):
    """What ZooKeeper knows about a node. A zxid counts all changes of the whole ensemble, so it orders them."""

    version: int
    """How often its data was written since it was created."""
    created: int
    """The zxid that created it."""
    modified: int
    """The zxid that wrote its data last."""
    owner: int
    """The session that an ephemeral node lives and dies with, else 0."""
    children: int
    """How many nodes lie directly below it."""


class NodeDetails(NamedTuple):
    """All of a node, for people who look at it; brokers need no more than Stat."""

    data: bytes
    created: int
    created_ms: int
    modified: int
    modified_ms: int
    children_modified: int
    """The zxid at which a child came or went last."""
    children_version: int
    version: int
    acl_version: int
    owner: int
    children: int


class Create(NamedTuple):
    """A sequential node's name gets ten digits behind it, greater than those of all its elder siblings."""

    path: str
    data: bytes
    ephemeral: bool = False
    sequential: bool = False


class Set(NamedTuple):
    path: str
    data: bytes
    version: int = ANY_VERSION


class Delete(NamedTuple):
    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    path: str
    version: int


Operation = Create | Set | Delete | Check
Result = str | Stat | None
"""Of a Create the path with its digits, of a Set the new Stat, else None."""


class SessionCounts:
    """What happened to the session with ZooKeeper; the latency in microseconds."""

    __slots__ = ("auth_failures", "connects", "disconnects", "expires", "is_connected", "latency")

    def __init__(self) -> None:
        self.connects = self.disconnects = self.expires = self.auth_failures = 0
        self.is_connected = False
        self.latency = Histogram(1 / 1000)

    def note(self, *, connected: bool, lost: bool) -> None:
        self.is_connected = connected
        self.connects += connected
        self.expires += lost
        self.disconnects += not connected and not lost


class SessionEvent(Enum):
    CONNECTED = "connected"
    SUSPENDED = "suspended"
    EXPIRED = "expired"


Watch = Callable[[], None]
SessionListener = Callable[[SessionEvent], None]


class ZooKeeperClient(Protocol):
    """One session after the other with a ZooKeeper ensemble, below a chroot if there is one."""

    async def start(self, listener: SessionListener, timeout_s: float) -> None:
        """Begin the first session and create the chroot; ConnectionLost, in words, when that takes too long.

        `listener` hears of every event from then on, but not of this first CONNECTED.
        """

    @property
    def session_id(self) -> int:
        """The session, or the last one while there is none."""

    @property
    def session_timeout_ms(self) -> int:
        """What the server agreed to: after this long without a sign of life it ends the session."""

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        """NoNode if there is none."""

    async def get_many(self, paths: Sequence[str]) -> list[tuple[bytes, Stat] | None]:
        """Several nodes in one request, None for those that are not there; not necessarily as of one moment.

        The answer should not have much more than a megabyte: ask for a few hundred small nodes at a time.
        """

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None: ...

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """The names, in no order. NoNode if there is no such node."""

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """All of it with one zxid, or nothing: then the error of the first operation that cannot be done."""

    async def sync(self) -> None:
        """Returns when the server has caught up with everything committed before."""

    async def close(self) -> None:
        """End the session; its ephemeral nodes vanish at once. Requests under way raise ConnectionLost."""
