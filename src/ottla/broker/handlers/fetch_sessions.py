"""Incremental fetch sessions: a consumer of many partitions names them once, then only what changes.

Pure: no I/O, `now` comes in. The cache has a fixed number of slots; when they are taken, a session unused for two
minutes gives way, and if there is none the client simply goes on without a session.
"""

import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable

import msgspec

from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EVICTION_AGE_SECONDS = 120.0
_INT32_MAX = 2**31 - 1

TopicKey = tuple[str, uuid.UUID]
"""Name and id of a topic as the client gave them: one of them is empty, by version."""


class Wanted(msgspec.Struct):
    """One partition in a session, with what the client was last told of it."""

    topic: TopicKey
    request: FetchPartition
    high_watermark: int = -1
    log_start_offset: int = -1


class FetchSession(msgspec.Struct, eq=False):
    id: int
    uses_topic_ids: bool
    last_used: float
    epoch: int = 1
    wanted: "OrderedDict[tuple[TopicKey, int], Wanted]" = msgspec.field(default_factory=OrderedDict)

    def update(self, request: FetchRequest) -> None:
        for topic in request.topics:
            key = (topic.topic, topic.topic_id)
            for partition in topic.partitions:
                known = self.wanted.get((key, partition.partition))
                if known is None:
                    self.wanted[key, partition.partition] = Wanted(key, partition)
                else:
                    known.request = partition
        for forgotten in request.forgotten_topics_data:
            for index in forgotten.partitions:
                self.wanted.pop(((forgotten.topic, forgotten.topic_id), index), None)

    def move_to_end(self, keys: Iterable[tuple[TopicKey, int]]) -> None:
        """Partitions that got data go to the back, so that none starves the others."""
        for key in keys:
            if key in self.wanted:
                self.wanted.move_to_end(key)


class FetchSessions:
    def __init__(self, slots: Callable[[], int], new_id: Callable[[], int]) -> None:
        self._slots = slots
        self._new_id = new_id
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()  # least recently used first

    def __len__(self) -> int:
        return len(self._sessions)

    def session_for(self, request: FetchRequest, *, uses_topic_ids: bool, now: float) -> FetchSession | None:
        """The session this request runs in, updated by it; None for a fetch without one. ApiError if it is gone."""
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if request.session_id != NO_SESSION:
                self._sessions.pop(request.session_id, None)
            if request.session_epoch == FINAL_EPOCH:
                return None
            return self._create(request, uses_topic_ids=uses_topic_ids, now=now)
        session = self._sessions.get(request.session_id)
        if session is None:
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            raise ApiError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            raise ApiError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.epoch = 1 if session.epoch == _INT32_MAX else session.epoch + 1
        session.last_used = now
        self._sessions.move_to_end(session.id)
        session.update(request)
        return session

    def _create(self, request: FetchRequest, *, uses_topic_ids: bool, now: float) -> FetchSession | None:
        if len(self._sessions) >= self._slots() and not self._evict(now):
            return None
        session_id = self._new_id()
        while session_id in self._sessions or session_id == NO_SESSION:
            session_id = self._new_id()
        session = FetchSession(session_id, uses_topic_ids, now)
        session.update(request)
        self._sessions[session_id] = session
        return session

    def _evict(self, now: float) -> bool:
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now - oldest.last_used < EVICTION_AGE_SECONDS:
            return False
        del self._sessions[oldest.id]
        return True
