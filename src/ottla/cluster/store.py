"""Where the cluster's metadata is kept: documents with versions, changed together or not at all.

StoreError (ApiError)         the store could not be written; nothing changed
VersionConflict (OttlaError)  someone else changed a document first; read again and decide again
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from ottla.cluster.image import BrokerImage, ClusterImage
from ottla.model.errors import ApiError, ErrorCode, OttlaError

ABSENT = -1
"""The version of a document that does not exist."""

Subscriber = Callable[[ClusterImage, ClusterImage], None]


class StoreError(ApiError):
    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, message)


class VersionConflict(OttlaError):
    def __init__(self, path: str, expected: int, found: int) -> None:
        super().__init__(f"{path} has version {found}, not {expected}")
        self.path = path


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
        """Call back with the old and the new picture after every change; the result ends it.

        Callbacks run in the order of subscription and before the commit returns, so whoever made the change finds
        it in force. They must not raise.
        """

    def read(self, path: str) -> Document | None:
        """A document as it is in the newest picture, or None. Partition states are read from the image instead."""

    def version(self, path: str) -> int:
        """The version of any document, ABSENT if there is none."""

    async def commit(self, writes: Sequence[Write]) -> None:
        """Make these changes durable, all or none, then update the image. VersionConflict, StoreError."""

    async def register_broker(self, broker: BrokerImage) -> None:
        """Make a running broker known, for as long as it runs."""
