"""A store in memory with several brokers, which a test makes come, go and fail."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from ottla.cluster.documents import apply_documents
from ottla.cluster.image import NO_CONTROLLER, BrokerImage, ClusterImage, changes_between
from ottla.cluster.store import (
    ABSENT,
    Document,
    NotController,
    Session,
    SessionObserver,
    Subscriber,
    VersionConflict,
    Write,
)


class MemoryStore:
    def __init__(self, *brokers: int, controller: int = NO_CONTROLLER) -> None:
        self.image = ClusterImage(
            cluster_id="test",
            controller_id=controller,
            controller_epoch=1,
            brokers={broker: BrokerImage(broker, None, (), epoch=1) for broker in brokers},
        )
        self.documents: dict[str, Document] = {}
        self.subscribers: list[Subscriber] = []
        self.commits: list[tuple[Write, ...]] = []
        self.before_commit: list[Callable[[], None]] = []
        """Called once each, one for each commit, before it is looked at; what they raise is what it raises."""
        self.session = Session.CONNECTED
        self.session_timeout_ms = 6_000
        self.acting = controller

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        self.subscribers.append(callback)
        return lambda: self.subscribers.remove(callback)

    def read(self, path: str) -> Document | None:
        return self.documents.get(path)

    def version(self, path: str) -> int:
        document = self.documents.get(path)
        return ABSENT if document is None else document.version

    async def commit(self, writes: Sequence[Write], *, as_controller: bool = False) -> None:
        if self.before_commit:
            self.before_commit.pop(0)()
        if as_controller and self.image.controller_id != self.acting:
            raise NotController
        for path, _, expected in writes:
            if self.version(path) != expected:
                raise VersionConflict(path, expected, self.version(path))
        self.commits.append(tuple(writes))
        self.write(writes)

    def write(self, writes: Sequence[Write]) -> None:
        for path, data, expected in writes:
            if data is None:
                self.documents.pop(path, None)
            else:
                self.documents[path] = Document(data, expected + 1)
        self.publish(apply_documents(self.image, ((path, data) for path, data, _ in writes)))

    def publish(self, image: ClusterImage) -> None:
        change = changes_between(self.image, image)
        self.image = image
        for callback in tuple(self.subscribers):
            callback(change)

    async def connected(self, within_s: float) -> None:
        """Always."""

    async def refresh(self) -> None:
        """Everybody sees it at once."""

    async def register_broker(self, broker: BrokerImage) -> None:
        self.publish(replace(self.image, brokers={**self.image.brokers, broker.id: broker}))

    def lose(self, broker: int) -> None:
        self.publish(
            replace(
                self.image, brokers={number: each for number, each in self.image.brokers.items() if number != broker}
            )
        )

    def back(self, broker: int, epoch: int = 9) -> None:
        again = BrokerImage(broker, None, (), epoch=epoch)
        self.publish(replace(self.image, brokers={**self.image.brokers, broker: again}))

    def elect_controller(self, broker: int) -> None:
        self.publish(replace(self.image, controller_id=broker, controller_epoch=self.image.controller_epoch + 1))

    def on_session(self, observer: SessionObserver) -> None:
        """It never changes by itself."""

    async def close(self) -> None: ...
