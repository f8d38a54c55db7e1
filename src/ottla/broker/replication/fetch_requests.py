"""A follower's side of an incremental fetch session: names each partition once, then only what changed. No I/O."""

from collections.abc import Iterable
from uuid import UUID

from ottla.broker.replication.partition import Partition
from ottla.config.broker import BrokerSettings
from ottla.model.sentinels import NO_FETCH_SESSION
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState

Key = tuple[UUID, int]

INITIAL_EPOCH = 0
_INT32_MAX = 2**31 - 1


class Followed:
    """One partition as one fetcher follows it, in one epoch of its leader."""

    __slots__ = ("epoch", "failures", "has_caught_up", "key", "lag", "partition")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.key: Key = (partition.topic_id, partition.tp.partition)
        self.epoch = partition.leader_epoch
        self.failures = 0
        self.has_caught_up = False
        self.lag = 0
        """How many records it was behind when the leader answered last."""
        """Whether it had everything that is committed when the leader answered last: then no throttle holds it up."""

    @property
    def is_current(self) -> bool:
        return self.partition.is_follower and self.partition.leader_epoch == self.epoch

    def asks(self, max_bytes: int) -> FetchPartition:
        log = self.partition.log
        return FetchPartition(
            partition=self.key[1],
            current_leader_epoch=self.epoch,
            fetch_offset=log.end_offset,
            last_fetched_epoch=log.leader_epochs.latest,
            log_start_offset=log.start_offset,
            partition_max_bytes=max_bytes,
        )


class SessionRequests:
    """What the next fetch has to say. `followed` are the partitions that take part in it."""

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self.followed: dict[Key, Followed] = {}
        self._news: dict[Key, Followed] = {}
        self._named: dict[Key, Followed] = {}
        self._gone: dict[Key, None] = {}
        self._session_id = NO_FETCH_SESSION
        self._epoch = INITIAL_EPOCH

    def add(self, followed: Followed) -> None:
        self.followed[followed.key] = followed
        self._news[followed.key] = followed

    def remove(self, key: Key) -> Followed | None:
        self._news.pop(key, None)
        if key in self._named:
            self._gone[key] = None
        return self.followed.pop(key, None)

    def moved(self, followed: Followed) -> None:
        """Its offset, log start or epoch is another than the leader was told."""
        self._news[followed.key] = followed

    def was_asked(self, key: Key) -> Followed | None:
        """The partition that an answer belongs to, unless it is followed in another way by now."""
        followed = self.followed.get(key)
        return followed if followed is not None and self._named.get(key) is followed else None

    def reset(self) -> None:
        """The leader does not know the session, or the connection broke: name everything again."""
        self._session_id, self._epoch = NO_FETCH_SESSION, INITIAL_EPOCH
        self._named = {}

    def answered(self, session_id: int) -> None:
        if session_id == NO_FETCH_SESSION:
            self.reset()
            return
        self._session_id = session_id
        self._epoch = 1 if self._epoch == _INT32_MAX else self._epoch + 1

    def next(self, settings: BrokerSettings, broker_epoch: int) -> FetchRequest:
        if self._epoch == INITIAL_EPOCH:
            told, forgotten = self.followed, []
            self._named = dict(told)
        else:
            told, forgotten = self._news, [key for key in self._gone if key not in self.followed]
            self._named.update(told)
            for key in forgotten:
                del self._named[key]
        self._news, self._gone = {}, {}
        return FetchRequest(
            replica_id=self._node_id,
            replica_state=ReplicaState(replica_id=self._node_id, replica_epoch=broker_epoch),
            max_wait_ms=settings.replica_fetch_wait_max_ms,
            min_bytes=settings.replica_fetch_min_bytes,
            max_bytes=settings.replica_fetch_response_max_bytes,
            session_id=self._session_id,
            session_epoch=self._epoch,
            topics=_by_topic(told.values(), settings.replica_fetch_max_bytes),
            forgotten_topics_data=[
                ForgottenTopic(topic_id=topic_id, partitions=indexes) for topic_id, indexes in _indexes(forgotten)
            ],
        )


def _by_topic(told: Iterable[Followed], max_bytes: int) -> list[FetchTopic]:
    topics: dict[UUID, FetchTopic] = {}
    for followed in told:
        topic = topics.get(followed.key[0])
        if topic is None:
            topic = topics[followed.key[0]] = FetchTopic(topic_id=followed.key[0])
        topic.partitions.append(followed.asks(max_bytes))
    return list(topics.values())


def _indexes(keys: Iterable[Key]) -> Iterable[tuple[UUID, list[int]]]:
    topics: dict[UUID, list[int]] = {}
    for topic_id, index in keys:
        topics.setdefault(topic_id, []).append(index)
    return topics.items()
