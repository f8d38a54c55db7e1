"""Following the change log: every change once, in order, from whomever it came."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from msgspec.structs import replace

from ottla.cluster.documents import apply_documents, change_of_documents
from ottla.cluster.image import ClusterImage, ImageChange, changes_between
from ottla.cluster.known import KnownDocuments
from ottla.cluster.zookeeper.client import Watch, ZooKeeperClient
from ottla.cluster.zookeeper.layout import CHANGES, Change, change_numbers
from ottla.cluster.zookeeper.loading import NO_CHANGE, Loaded, Trimmed, load, numbers_after, read_changes
from ottla.model.errors import OttlaError

logger = logging.getLogger(__name__)

T = TypeVar("T")


class MetadataLost(OttlaError):
    """A broker that took over such a picture would delete what it holds."""

    def __init__(self, seen: int) -> None:
        super().__init__(
            f"ZooKeeper does not know change {seen}, which this broker has seen: it has lost data, or was replaced. "
            "The broker keeps the metadata it has. Bring ZooKeeper's data back, or restart the broker to take over "
            "what ZooKeeper has now"
        )


class Watched:
    """Something that is watched: whether it has to be read again, and whether a watch is out there."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self.stale = True
        self._mark: object | None = None

    def touch(self) -> None:
        self.stale = True
        self._wake()

    async def read(self, request: Callable[[Watch | None], Coroutine[Any, Any, T]]) -> T:
        """Read it anew. The request is given a watch to leave, unless one is out there already."""
        self.stale = False
        watch = None
        if self._mark is None:
            self._mark = mark = object()
            watch = partial(self._called, mark)
        try:
            return await request(watch)
        except BaseException:
            self.forget()  # whether the watch was left nobody knows
            self._wake()
            raise

    def _called(self, mark: object) -> None:
        if self._mark is mark:
            self._mark = None
            self.touch()

    def forget(self) -> None:
        """The connection broke: the watch is lost, and anything may have happened."""
        self.stale, self._mark = True, None


class ChangeLog:
    """The documents as they are after the change `applied`.

    `image` gives the newest picture and `publish` takes what a change makes of it.
    """

    def __init__(
        self,
        client: ZooKeeperClient,
        wake: Callable[[], None],
        image: Callable[[], ClusterImage],
        publish: Callable[[ImageChange], None],
    ) -> None:
        self._client = client
        self._image = image
        self._publish = publish
        self.watched = Watched(wake)
        self.known = KnownDocuments()
        self.applied = NO_CHANGE
        self.kept: list[int] = []
        """Which changes the log held when it was looked at last."""
        self._one_at_a_time = asyncio.Lock()
        self._loading = False
        self._own: dict[int, Change] = {}
        """Changes that we made ourselves and need not read."""

    async def catch_up(self) -> None:
        """Apply what was committed before this was called, and leave a watch for what comes."""
        async with self._one_at_a_time:
            await self._catch_up()

    async def reload(self) -> None:
        """Read everything again and publish what differs."""
        async with self._one_at_a_time:
            await self._reload()

    async def applied_ours(self, number: int, change: Change) -> None:
        """Returns when our own change, and all before it, are in the image."""
        if number == self.applied + 1 and not self._loading:
            self._apply(number, change)
            return
        self._own[number] = change
        async with self._one_at_a_time:
            if self.applied < number:
                await self._catch_up()

    async def _catch_up(self) -> None:
        seen = self.applied
        names = await self.watched.read(lambda watch: self._client.children(CHANGES, watch))
        self.kept = change_numbers(names)
        if max(self.kept, default=NO_CHANGE) < seen:
            raise MetadataLost(seen)
        try:
            newer = numbers_after(seen, self.kept)
            missing = await read_changes(self._client, [number for number in newer if number not in self._own])
        except Trimmed:
            logger.warning(
                "Metadata changes after %d are no longer in the change log in ZooKeeper: reloading all metadata", seen
            )
            await self._reload()
            return
        read = {number: change for number, change, _ in missing}
        for number in newer:
            if number > self.applied:  # else it was ours, and was applied while we read
                self._apply(number, read[number] if number in read else self._own[number])

    def _apply(self, number: int, change: Change) -> None:
        for path, data, version in change.writes:
            self.known.remember(path, data, version)
        self.applied = number
        self._own.pop(number, None)
        self._publish(change_of_documents(self._image(), ((path, data) for path, data, _ in change.writes)))

    async def _reload(self) -> None:
        self._loading = True
        try:
            loaded = await self.watched.read(lambda watch: load(self._client, watch))
        finally:
            self._loading = False
        if loaded.last_change < self.applied:
            raise MetadataLost(self.applied)
        old = self._image()
        new = _rebuilt(old, self._remember(loaded))
        self.applied = loaded.last_change
        self._own = {number: change for number, change in self._own.items() if number > self.applied}
        self._publish(changes_between(old, new))

    def _remember(self, loaded: Loaded) -> ClusterImage:
        """Take over everything; returns the picture of the documents alone."""
        self.known = KnownDocuments()
        for path, found in loaded.documents.items():
            self.known.remember(path, found.data, found.version)
        return apply_documents(ClusterImage(), ((path, found.data) for path, found in loaded.documents.items()))


def _rebuilt(old: ClusterImage, documents: ClusterImage) -> ClusterImage:
    """The new picture, with the old one's objects wherever they are equal: that is how a difference is found."""
    topics = [_same_if_equal(old.topics.get(name), topic) for name, topic in documents.topics.items()]
    gone = [name for name in old.topics if name not in documents.topics]
    return replace(
        old.with_topics(topics, gone),
        cluster_id=documents.cluster_id,
        broker_configs=_same_if_equal(old.broker_configs, documents.broker_configs),
        group_configs=_same_if_equal(old.group_configs, documents.group_configs),
        client_metrics=_same_if_equal(old.client_metrics, documents.client_metrics),
        entity_configs=_same_if_equal(old.entity_configs, documents.entity_configs),
        acls=_same_if_equal(old.acls, documents.acls),
        tokens=_same_if_equal(old.tokens, documents.tokens),
        deleting=_same_if_equal(old.deleting, documents.deleting),
    )


def _same_if_equal(old: T | None, new: T) -> T:
    return old if old is not None and old == new else new
