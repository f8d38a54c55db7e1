"""MetadataStore over ZooKeeper, shared by all brokers of a cluster.

A commit is one `multi`: the documents, each checked by version, and one node in the change log that tells them all.
Every broker follows the log and applies changes in order, so all see the same pictures in the same order. Three
watches are enough, however many partitions there are: on the log, on the brokers, on the controller.

The session: SUSPENDED when the connection breaks, LOST when ZooKeeper has declared this broker dead. CONNECTED is
reported when the picture is as new as ZooKeeper's again, and after LOST when this broker is registered again as well:
the store does that itself, with what `register_broker` was given. Whoever hears CONNECTED finds everything in the
image. Commits are accepted while CONNECTED only.

Following, registering again, standing for election and tidying up run in one task, `_follow`, one thing after the
other. It never gives up.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from msgspec.structs import replace

from ottla.cluster.documents import (
    CLUSTER_ID_PATH,
    cluster_id_document,
    partition_of,
    partition_path,
    topic_config_path,
    topic_path,
)
from ottla.cluster.image import NO_CONTROLLER, BrokerImage, ClusterImage, ImageChange
from ottla.cluster.store import (
    ABSENT,
    CommitUncertain,
    Document,
    NotController,
    Session,
    SessionObserver,
    StoreError,
    Subscriber,
    VersionConflict,
    Write,
)
from ottla.cluster.zookeeper import layout, membership
from ottla.cluster.zookeeper.acl_notices import AclNotices
from ottla.cluster.zookeeper.client import (
    Check,
    ConnectionLost,
    Create,
    Delete,
    NodeExists,
    NoNode,
    Operation,
    RequestRefused,
    SessionCounts,
    SessionEvent,
    SessionExpired,
    ZooKeeperClient,
    ZooKeeperError,
)
from ottla.cluster.zookeeper.following import ChangeLog, Watched
from ottla.cluster.zookeeper.importing import LocalMetadata, check_complete, import_metadata
from ottla.model.errors import OttlaError
from ottla.model.names import format_topic_id, new_topic_id

logger = logging.getLogger(__name__)

CHANGES_KEPT = 400
CHANGES_TRIMMED_AT_ONCE = 200
RETRY_SECONDS = 1.0
BREATH_SECONDS = 0.05
REFRESH_SECONDS = 1.0


class ZooKeeperStore:
    """Open it with `ZooKeeperStore.open`, close it when done."""

    def __init__(self, client: ZooKeeperClient) -> None:
        self._client = client
        self.session_counts: SessionCounts | None = getattr(client, "counts", None)
        """Where the client counts what happens to its session."""
        self._image = ClusterImage()
        self._subscribers: list[Subscriber] = []
        self._observers: list[SessionObserver] = []
        self._session = Session.CONNECTED
        self._reachable = asyncio.Event()
        self._in_session = asyncio.Event()
        self._wake = asyncio.Event()
        self._next_refresh: asyncio.Task[None] | None = None
        """The one that has not begun yet: whoever asks meanwhile is served by it too."""
        self._refreshes: set[asyncio.Task[None]] = set()
        self._refreshing = asyncio.Lock()
        self._changes = ChangeLog(client, self._wake.set, lambda: self._image, self._publish)
        self._acl_notices = AclNotices(client, self._wake.set)
        self._brokers = Watched(self._wake.set)
        self._controller = Watched(self._wake.set)
        self._leadership = membership.NOBODY
        self._own_broker: BrokerImage | None = None
        self._commits: set[asyncio.Task[None]] = set()
        self._follower: asyncio.Task[None] | None = None
        self._connections = 0
        """How often the connection came or went: who waits for an answer can tell whether it did so meanwhile."""
        self._reading_brokers = asyncio.Lock()
        self._holders = set(layout.HOLDERS)

    @classmethod
    async def open(
        cls, client: ZooKeeperClient, timeout_s: float, *, local: LocalMetadata | None = None, where: str = ""
    ) -> "ZooKeeperStore":
        """Connect and load everything; what has to be in ZooKeeper and is not there is created, or brought in.

        `where` is what messages call this ZooKeeper.
        """
        store = cls(client)
        await client.start(store._on_session, timeout_s)
        store._reachable.set()
        store._in_session.set()
        try:
            await store._begin(local, where, timeout_s)
        except (Exception, asyncio.CancelledError):  # and not a coroutine that is thrown away: it cannot wait any more
            await client.close()
            raise
        store._follower = asyncio.create_task(store._follow())
        store._wake.set()
        return store

    @property
    def image(self) -> ClusterImage:
        return self._image

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback)

    def read(self, path: str) -> Document | None:
        return self._changes.known.read(path)

    def version(self, path: str) -> int:
        return self._changes.known.version(path)

    @property
    def session(self) -> Session:
        return self._session

    @property
    def session_timeout_ms(self) -> int:
        return self._client.session_timeout_ms

    def on_session(self, observer: SessionObserver) -> None:
        self._observers.append(observer)

    async def close(self) -> None:
        if self._commits:
            await asyncio.wait(self._commits, timeout=self.session_timeout_ms / 1000)
        if self._follower is not None:
            self._follower.cancel()
            await asyncio.wait([self._follower])
        for refresh in self._refreshes:
            refresh.cancel()
        await self._client.close()

    async def connected(self, within_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._in_session.wait()

    async def refresh(self) -> None:
        if self._session is not Session.CONNECTED:
            return
        if self._next_refresh is None:
            self._next_refresh = asyncio.create_task(self._refresh())
            self._refreshes.add(self._next_refresh)
            self._next_refresh.add_done_callback(self._refreshes.discard)
        await asyncio.wait([self._next_refresh], timeout=REFRESH_SECONDS)

    async def _refresh(self) -> None:
        async with self._refreshing:
            self._next_refresh = None
            with contextlib.suppress(OttlaError):  # `_follow` meets it too, and says it
                await self._client.sync()
                await self._changes.catch_up()

    # -- commits

    async def commit(self, writes: Sequence[Write], *, as_controller: bool = False) -> None:
        # What was begun is carried to its end even if the caller goes away: ZooKeeper and image must not part.
        # The ids are those of the picture in which it was decided, not of one that comes before the task has its turn.
        ids = layout.topic_ids(writes, self._image)
        task = asyncio.ensure_future(self._commit(tuple(writes), ids, as_controller=as_controller))
        self._commits.add(task)
        task.add_done_callback(self._commit_ended)
        await asyncio.shield(task)

    def _commit_ended(self, task: "asyncio.Task[None]") -> None:
        self._commits.discard(task)
        if not task.cancelled():
            task.exception()  # marks it as seen: its caller may have gone

    async def _commit(self, writes: tuple[Write, ...], ids: Mapping[str, UUID], *, as_controller: bool) -> None:
        if self._session is not Session.CONNECTED:
            raise StoreError("there is no connection to ZooKeeper")
        self._changes.known.check(writes)
        for write in writes:
            if layout.too_large(write):
                raise StoreError(f"{write.path} would be larger than ZooKeeper takes ({len(write.data or b'')} bytes)")
        for piece in layout.pieces(writes, self._image):
            await self._commit_piece(piece, ids, as_controller=as_controller)

    async def _commit_piece(self, writes: list[Write], ids: Mapping[str, UUID], *, as_controller: bool) -> None:
        steps = [*self._guard(as_controller=as_controller), *layout.operations(writes, ids)]
        try:
            await self._create_holders(writes)
            results = await self._client.multi([*(step for step, _ in steps), layout.change_operation(writes)])
        except (ConnectionLost, SessionExpired) as error:
            raise CommitUncertain(f"the change may have been made or not: {error}") from error
        except RequestRefused as error:
            if error.index >= len(steps):
                raise StoreError(f"there is no change log in ZooKeeper: {error}") from error
            raise await self._conflict(writes, *steps[error.index]) from error
        except ZooKeeperError as error:
            raise StoreError(str(error)) from error
        made = results[-1]
        assert isinstance(made, str)
        try:
            await self._changes.applied_ours(layout.change_numbers([made])[0], layout.change_of(writes))
        except (ConnectionLost, SessionExpired) as error:
            raise CommitUncertain(
                f"the change was made, but what others did before is not known yet: {error}"
            ) from error

    def _guard(self, *, as_controller: bool) -> list[tuple[Check, str]]:
        if not as_controller:
            return []
        if not self._is_controller():
            raise NotController
        return [(Check(layout.CONTROLLER_EPOCH, self._leadership.guard), layout.CONTROLLER_EPOCH)]

    async def _create_holders(self, writes: Sequence[Write]) -> None:
        """Nodes above a document of a kind that there was none of so far. They harm nobody if nothing follows."""
        for path, data, expected in writes:
            if data is None or expected != ABSENT or partition_of(path) is not None:
                continue
            for holder in layout.holders_of(path):
                if holder not in self._holders:
                    await self._create_if_missing(holder, b"")
                    self._holders.add(holder)

    async def _conflict(self, writes: Sequence[Write], failed: Operation, path: str) -> Exception:
        """Somebody was faster. Whoever decides again finds what they wrote."""
        if path == layout.CONTROLLER_EPOCH:
            self._controller.touch()
            return NotController()
        expected = next((write.expected for write in writes if write.path == path), ABSENT)
        with contextlib.suppress(OttlaError):
            await self._client.sync()
            await self._changes.catch_up()
            if self.version(path) == expected and not isinstance(failed, Check):
                logger.warning(
                    "%s in ZooKeeper was changed by something other than a broker: reloading all metadata", path
                )
                await self._changes.reload()
        return VersionConflict(path, expected, self.version(path))

    # -- being known

    async def register_broker(self, broker: BrokerImage) -> None:
        while True:
            await self._reachable.wait()
            with contextlib.suppress(ConnectionLost, SessionExpired):
                await self._register(broker)
                await self._read_brokers()
                break
            await asyncio.sleep(BREATH_SECONDS)  # the event that tells of the break comes right behind it
        self._own_broker = broker
        self._controller.touch()

    async def _register(self, broker: BrokerImage) -> None:
        epoch = await membership.register(self._client, broker, patience_s=self.session_timeout_ms / 1000)
        logger.info("Registered broker %d with broker epoch %d", broker.id, epoch)

    def _is_controller(self) -> bool:
        own, leader = self._own_broker, self._leadership
        return own is not None and leader.controller_id == own.id and leader.session == self._client.session_id

    # -- following

    async def _begin(self, local: LocalMetadata | None, where: str, timeout_s: float) -> None:
        """The first load. A connection that breaks meanwhile is waited for, if nothing is brought in by halves."""
        ends = asyncio.get_running_loop().time() + timeout_s
        while True:
            try:
                await self._load(local, where)
            except (ConnectionLost, SessionExpired, CommitUncertain) as error:
                if local is not None or asyncio.get_running_loop().time() > ends:
                    raise
                logger.warning("Disconnected from ZooKeeper while loading the metadata, loading it again: %s", error)
                await asyncio.sleep(BREATH_SECONDS)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(ends):
                        await self._reachable.wait()
            else:
                return

    async def _load(self, local: LocalMetadata | None, where: str) -> None:
        """Everything that is there, before anybody follows."""
        for holder in layout.HOLDERS:
            await self._create_if_missing(holder, b"")
        await self._create_if_missing(layout.CONTROLLER_EPOCH, b"0")
        await self._acl_notices.came()
        await self._changes.reload()
        if local is not None:
            await import_metadata(self, local, where)
        check_complete(self, where)
        if not self._image.cluster_id:
            made = Write(CLUSTER_ID_PATH, cluster_id_document(format_topic_id(new_topic_id())), ABSENT)
            with contextlib.suppress(VersionConflict):  # another broker of this new cluster was faster
                await self._commit((made,), {}, as_controller=False)
        await self._read_brokers()
        await self._read_controller()

    async def _create_if_missing(self, path: str, data: bytes) -> None:
        if await self._client.exists(path) is None:
            with contextlib.suppress(NodeExists):
                await self._client.multi([Create(path, data)])

    async def _follow(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            if not self._reachable.is_set():
                continue  # when it is again, that wakes us
            try:
                await self._keep_up()
            except (ConnectionLost, SessionExpired):
                continue
            except OttlaError as error:
                logger.error("Cannot read metadata changes from ZooKeeper, trying again: %s", error)  # noqa: TRY400 (says it all)
                self._try_again()
            except Exception:
                logger.exception("Cannot read metadata changes from ZooKeeper, trying again")
                self._try_again()

    def _try_again(self) -> None:
        for watched in (self._changes.watched, self._acl_notices, self._brokers, self._controller):
            watched.forget()
        self._wake.clear()  # not at once: it would fail again
        asyncio.get_running_loop().call_later(RETRY_SECONDS, self._wake.set)

    async def _keep_up(self) -> None:
        connection = self._connections
        if self._session is Session.LOST and self._own_broker is not None:
            await self._changes.catch_up()  # is this still the ZooKeeper that we know?
            await self._register(self._own_broker)
            # What others were given while this broker was taken for dead must be known by the time the image shows it
            # as alive: so the log is read again, and the brokers after it.
            self._changes.watched.stale = True
        if self._changes.watched.stale:
            await self._changes.catch_up()
        if await self._acl_notices.came():
            await self._changes.reload()
        if self._brokers.stale:
            await self._read_brokers()
        if self._controller.stale:
            await self._read_controller()
        if connection == self._connections and self._reachable.is_set():
            self._announce(Session.CONNECTED)
        await self._do_duties()

    async def _do_duties(self) -> None:
        own = self._own_broker
        if own is None or self._session is not Session.CONNECTED:
            return
        if self._leadership.controller_id == NO_CONTROLLER:
            await membership.stand_for_election(self._client, own.id, self._leadership)
            self._controller.touch()
        elif self._is_controller():
            await self._finish_deletions()
            await self._trim()
            await self._acl_notices.trim()

    async def _read_brokers(self) -> None:
        async with self._reading_brokers:  # else the older of two readings could be taken last
            brokers = await self._brokers.read(lambda watch: membership.read_brokers(self._client, watch))
            if brokers != self._image.brokers:
                self._publish(ImageChange(self._image, replace(self._image, brokers=brokers)))

    async def _read_controller(self) -> None:
        found = await self._controller.read(lambda watch: membership.read_leadership(self._client, watch))
        self._take_leadership(found)

    def _take_leadership(self, leadership: membership.Leadership) -> None:
        self._leadership = leadership
        controller_id, epoch = leadership.controller_id, leadership.epoch
        if self._own_broker is not None and controller_id == self._own_broker.id and not self._is_controller():
            controller_id = NO_CONTROLLER  # our former registration; it is not us
        if (controller_id, epoch) != (self._image.controller_id, self._image.controller_epoch):
            new = replace(self._image, controller_id=controller_id, controller_epoch=epoch)
            self._publish(ImageChange(self._image, new))

    # -- what falls to the controller

    async def _finish_deletions(self) -> None:
        """A deletion that was too big for one commit, and was cut short between its pieces."""
        for name, topic in tuple(self._image.deleting.items()):
            states = (partition_path(name, number) for number in range(len(topic.partitions)))
            paths = (topic_config_path(name), *states, topic_path(name))
            writes = [Write(path, None, self.version(path)) for path in paths]
            with contextlib.suppress(VersionConflict, NotController, StoreError):
                await self.commit([write for write in writes if write.expected != ABSENT], as_controller=True)
                logger.info("Deletion of topic %s successfully completed", name)

    async def _trim(self) -> None:
        """Drop old changes. A broker that has not seen them by then reads everything."""
        kept = self._changes.kept
        if len(kept) < CHANGES_KEPT + CHANGES_TRIMMED_AT_ONCE:
            return
        old = kept[: len(kept) - CHANGES_KEPT]
        self._changes.kept = kept[len(old) :]
        for start in range(0, len(old), CHANGES_TRIMMED_AT_ONCE):
            paths = [layout.change_path(number) for number in old[start : start + CHANGES_TRIMMED_AT_ONCE]]
            with contextlib.suppress(NoNode):  # a controller before us had begun with them
                await self._client.multi([Delete(path) for path in paths])

    # -- the session

    def _on_session(self, event: SessionEvent) -> None:
        self._connections += 1
        if event is SessionEvent.CONNECTED:
            self._reachable.set()
            self._wake.set()
            return
        self._reachable.clear()
        self._changes.watched.forget()
        self._acl_notices.forget()
        self._brokers.forget()
        self._controller.forget()
        if event is SessionEvent.EXPIRED:
            was_controller = self._is_controller()
            self._announce(Session.LOST)
            if was_controller:
                self._take_leadership(membership.NOBODY._replace(epoch=self._leadership.epoch))
        elif self._session is Session.CONNECTED:
            self._announce(Session.SUSPENDED)

    def _announce(self, session: Session) -> None:
        if session is not self._session:
            self._session = session
            if session is Session.CONNECTED:
                self._in_session.set()
            else:
                self._in_session.clear()
            logger.log(
                logging.INFO if session is Session.CONNECTED else logging.WARNING, "ZooKeeper: %s", session.value
            )
            for observer in tuple(self._observers):
                observer(session)

    def _publish(self, change: ImageChange) -> None:
        self._image = change.new
        for callback in tuple(self._subscribers):
            callback(change)
