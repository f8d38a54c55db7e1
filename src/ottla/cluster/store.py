"""Where the cluster's metadata is kept: documents with versions, changed together or not at all.

StoreError (ApiError)         the store could not be written; nothing changed
CommitUncertain (StoreError)  the connection broke on the way: it may or may not have been written
VersionConflict (OttlaError)  someone else changed a document first; read again and decide again
NotController (OttlaError)    another broker is the controller by now
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from ottla.cluster.image import BrokerImage, ClusterImage, ImageChange
from ottla.model.errors import ApiError, ErrorCode, OttlaError

ABSENT = -1
"""The version of a document that does not exist."""

Subscriber = Callable[[ImageChange], None]


class StoreError(ApiError):
    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, message)


class CommitUncertain(StoreError):
    """Whoever decided this looks at the next picture and decides again."""


class VersionConflict(OttlaError):
    def __init__(self, path: str, expected: int, found: int) -> None:
        super().__init__(f"{path} has version {found}, not {expected}")
        self.path = path


class NotController(OttlaError):
    def __init__(self) -> None:
        super().__init__("another broker is the controller now")


class Session(Enum):
    """How a broker stands with the store."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    """The store does not answer. It may declare this broker dead any moment, and this broker would not know."""
    LOST = "lost"
    """The store has declared this broker dead. What it led belongs to others."""


SessionObserver = Callable[[Session], None]


class Write(NamedTuple):
    """One document to write, or with `data` None to delete, if it still has the version `expected`."""

    path: str
    data: bytes | None
    expected: int


class Document(NamedTuple):
    data: bytes
    version: int


class MetadataStore(Protocol):
    """Who needs state reads `image`; who wants a change commits documents. All on the event loop's thread."""

    @property
    def image(self) -> ClusterImage:
        """The newest picture."""

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        """Call back with what differs after every change; the result ends it.

        Callbacks run in the order of subscription and before the commit returns, so whoever made the change finds
        it in force. They must not raise.
        """

    def read(self, path: str) -> Document | None:
        """A document as it is in the newest picture, or None. Partition states are read from the image instead."""

    def version(self, path: str) -> int:
        """The version of any document, ABSENT if there is none."""

    async def commit(self, writes: Sequence[Write], *, as_controller: bool = False) -> None:
        """Make these changes durable, all or none, then update the image. VersionConflict, StoreError.

        In ZooKeeper a commit of more than about 500 documents is made in pieces, each all or none, in an order that
        can be cut short anywhere: topics before the states of their partitions. A conflict leaves the pieces before.

        `as_controller` makes it fail with NotController unless this broker is the controller of the image's epoch at
        the moment of writing.
        """

    async def connected(self, within_s: float) -> None:
        """Returns when the store can be asked, or after so long: what is away for a moment is waited for."""

    async def refresh(self) -> None:
        """Returns when the image has all that was committed, through any broker, before this was called.

        A store that cannot be asked, or does not answer soon, leaves the image as it is: it never raises.
        """

    async def register_broker(self, broker: BrokerImage) -> None:
        """Make a running broker known, for as long as it runs and its session lasts.

        Returns when the image shows it with its epoch. From then on this broker stands for election as controller
        whenever there is none; that it was elected shows in the image. After a lost session the store makes it
        known again by itself, with a new epoch, before it reports CONNECTED. OttlaError if another broker has its id.
        """

    @property
    def session(self) -> Session: ...

    @property
    def session_timeout_ms(self) -> int:
        """How long the store waits for a silent broker before it declares it dead."""

    def on_session(self, observer: SessionObserver) -> None:
        """Call back at every change of the session.

        At CONNECTED the image is as new as the store was when it could be reached again, and this broker is
        registered, if it was before. Commits are refused (StoreError) at all other times.
        """

    async def close(self) -> None:
        """Finish what is under way and leave; a registered broker is known as gone at once."""
