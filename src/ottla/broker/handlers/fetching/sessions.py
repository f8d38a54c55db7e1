"""Incremental fetch sessions: a reader of many partitions names them once, then only what changes.

The same holds for the broker's side: a session costs what has changed since the last fetch, not what it holds.
Partitions tell the sessions that look at them when there is something new, and only those are read.

No I/O, `now` comes in. The cache has a fixed number of slots; when they are taken, a session unused for two minutes
gives way, and if there is none the client simply goes on without a session. Followers always get one: there are few.
"""

import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.sentinels import NO_FETCH_SESSION
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EVICTION_AGE_SECONDS = 120.0
CONSUMER = -1
_INT32_MAX = 2**31 - 1

TopicKey = tuple[str, uuid.UUID]
"""Name and id of a topic as the client gave them: one of them is empty, by version."""


class Watched(Protocol):
    """A partition, as far as sessions are concerned: it tells those that look at it what happens."""

    readers: dict[Any, None]
    followers: dict[Any, None]

    def unfollowed(self, replica: int, session: Any) -> None: ...


class Counted(Protocol):
    """A topic's traffic, as far as fetches add to it."""

    bytes_out: int
    replication_bytes_out: int
    reassignment_bytes_out: int

    def read_refused(self, code: int) -> None: ...


class Waiting(Protocol):
    """A parked fetch."""

    def arrived(self, size: int) -> None: ...

    def finish_soon(self) -> None: ...

    def finish(self) -> None: ...


class Wanted:
    """One partition that a fetch or a session looks at, with what the client was last told of it."""

    __slots__ = ("high_watermark", "key", "log_start_offset", "request", "topic", "traffic", "view", "watched")

    def __init__(self, view: "View", topic: TopicKey, request: FetchPartition) -> None:
        self.view = view
        self.topic = topic
        self.request = request
        self.key = (topic, request.partition)
        self.high_watermark = -1
        self.log_start_offset = -1
        self.watched: Watched | None = None
        self.traffic: Counted | None = None

    @property
    def committed_only(self) -> bool:
        return self.view.committed_only

    def watch(self, partition: Watched) -> None:
        """Be told of what happens to the partition from now on."""
        if self.watched is not partition:
            self.unwatch()
            self.watched = partition
        (partition.readers if self.view.replica_id < 0 else partition.followers)[self] = None

    def rest(self) -> None:
        """Be told nothing until the next read: that something happened is known."""
        if self.watched is not None:
            (self.watched.readers if self.view.replica_id < 0 else self.watched.followers).pop(self, None)

    def unwatch(self) -> None:
        if self.watched is not None:
            self.rest()
            if self.view.replica_id >= 0:
                self.watched.unfollowed(self.view.replica_id, self.view)
            self.watched = None

    def arrived(self, size: int) -> None:
        view = self.view
        view.dirty[self.key] = self
        if view.wait is None:
            self.rest()
        else:
            view.wait.arrived(size)

    def changed(self) -> None:
        view = self.view
        view.dirty[self.key] = self
        if view.wait is not None:
            view.wait.finish_soon()


class View:
    """The partitions that one reader looks at: of a single fetch, or of a session.

    `dirty` are those which may have something to tell. One leaves it when it was read, had nothing, and the client
    knows its offsets; from then on the partition tells when that changes.
    """

    __slots__ = ("answered_s", "committed_only", "dirty", "fetched_s", "replica_id", "wait", "wanted")

    def __init__(self, replica_id: int = CONSUMER) -> None:
        self.replica_id = replica_id
        self.committed_only = False
        self.fetched_s = self.answered_s = float("-inf")
        """When a follower certainly was alive and following: when it was given the answer that it went on from. The
        fetch itself may have lain in a socket while this broker stood still."""
        self.wanted: dict[tuple[TopicKey, int], Wanted] = {}
        self.dirty: dict[tuple[TopicKey, int], Wanted] = {}
        self.wait: Waiting | None = None

    def want(self, request: FetchRequest) -> None:
        """Look at what the request names, besides what is looked at already."""
        wanted, dirty = self.wanted, self.dirty
        for topic in request.topics:
            topic_key = (topic.topic, topic.topic_id)
            for partition in topic.partitions:
                key = (topic_key, partition.partition)
                known = wanted.get(key)
                if known is None:
                    known = wanted[key] = Wanted(self, topic_key, partition)
                else:
                    known.request = partition
                dirty[key] = known

    def forget(self, keys: Iterable[tuple[TopicKey, int]]) -> None:
        for key in keys:
            gone = self.wanted.pop(key, None)
            if gone is not None:
                gone.unwatch()
                self.dirty.pop(key, None)

    def mark_up_to_date(self, wanted: Wanted) -> None:
        """It had nothing and the client knows its offsets."""
        self.dirty.pop(wanted.key, None)

    def to_the_back(self, wanted: Wanted) -> None:
        """It got data, and may have more: the others go first next time, so that none starves."""
        if self.dirty.pop(wanted.key, None) is not None:
            self.dirty[wanted.key] = wanted

    def close(self) -> None:
        for wanted in self.wanted.values():
            wanted.unwatch()
        self.wanted.clear()
        self.dirty.clear()


class FetchSession(View):
    __slots__ = ("epoch", "id", "last_used", "rules_version", "uses_topic_ids")

    def __init__(self, id: int, uses_topic_ids: bool, last_used: float, replica_id: int = CONSUMER) -> None:  # noqa: A002
        super().__init__(replica_id)
        self.id = id
        self.uses_topic_ids = uses_topic_ids
        self.last_used = last_used
        self.epoch = 1
        self.rules_version = -1

    def look_again_under(self, rules_version: int) -> None:
        """Who may read what has changed since the last fetch: all is looked at, whether it has something new or not."""
        if rules_version != self.rules_version:
            self.rules_version = rules_version
            for key, wanted in self.wanted.items():
                self.dirty.setdefault(key, wanted)

    def update(self, request: FetchRequest) -> None:
        self.want(request)
        for forgotten in request.forgotten_topics_data:
            topic_key = (forgotten.topic, forgotten.topic_id)
            self.forget((topic_key, index) for index in forgotten.partitions)


class FetchSessions:
    def __init__(self, slots: Callable[[], int], new_id: Callable[[], int]) -> None:
        self._slots = slots
        self._new_id = new_id
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()  # least recently used first
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def all(self) -> Iterable[FetchSession]:
        return tuple(self._sessions.values())

    def session_for(
        self, request: FetchRequest, *, uses_topic_ids: bool, now: float, replica_id: int = CONSUMER
    ) -> FetchSession | None:
        """The session this request runs in, updated by it; None for a fetch without one. ApiError if it is gone."""
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if request.session_id != NO_FETCH_SESSION:
                self.end(request.session_id)
            if request.session_epoch == FINAL_EPOCH:
                return None
            return self._create(request, uses_topic_ids=uses_topic_ids, now=now, replica_id=replica_id)
        session = self._sessions.get(request.session_id)
        if session is None or session.replica_id != replica_id:
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            raise ApiError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            raise ApiError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        if session.wait is not None:
            session.wait.finish()  # its client has gone on without the answer
        session.epoch = 1 if session.epoch == _INT32_MAX else session.epoch + 1
        session.last_used = now
        self._sessions.move_to_end(session.id)
        session.update(request)
        return session

    def _create(
        self, request: FetchRequest, *, uses_topic_ids: bool, now: float, replica_id: int
    ) -> FetchSession | None:
        if len(self._sessions) >= self._slots() and not self._evict(now) and replica_id == CONSUMER:
            return None
        session_id = self._new_id()
        while session_id in self._sessions or session_id == NO_FETCH_SESSION:
            session_id = self._new_id()
        session = FetchSession(session_id, uses_topic_ids, now, replica_id)
        session.update(request)
        self._sessions[session_id] = session
        return session

    def _evict(self, now: float) -> bool:
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now - oldest.last_used < EVICTION_AGE_SECONDS:
            return False
        self.end(oldest.id)
        self.evictions += 1
        return True

    def end(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()
