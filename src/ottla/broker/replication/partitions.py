"""The replicas this broker has, kept in step with the cluster's image."""

import logging
import uuid
from collections.abc import Iterator, Mapping
from typing import Protocol

from ottla.broker.replication.leader_state import ReplicaContext
from ottla.broker.replication.partition import Partition
from ottla.broker.replication.suspension import SuspensionState
from ottla.broker.storage.log import Log
from ottla.broker.storage.manager import LogManager
from ottla.cluster.image import NO_BROKER_EPOCH, BrokerImage, ClusterImage, ImageChange, TopicImage
from ottla.cluster.store import Session
from ottla.config.live import LiveConfig
from ottla.config.topic import TopicSettings
from ottla.model.clock import Clock
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import NO_TOPIC_ID, TopicPartition
from ottla.protocol.compression import Buffer

logger = logging.getLogger(__name__)


class RoleObserver(Protocol):
    """Who acts on the parts that this broker's replicas play."""

    def role_changed(self, partition: Partition) -> None:
        """The replica has another leader, another epoch, or is gone (then it neither leads nor follows)."""


class Partitions:
    def __init__(self, node_id: int, logs: LogManager, config: LiveConfig, clock: Clock) -> None:
        self._node_id = node_id
        self._logs = logs
        self._config = config
        self._clock = clock
        self._image = ClusterImage()
        self._by_name: dict[tuple[str, int], Partition] = {}
        self._without_log: set[str] = set()
        """Topics of which partitions should be here and could not be created."""
        self._loading = False
        """Whether replicas are taken up that were here before: one without a log must not begin with an empty one."""
        self._names_by_id: dict[uuid.UUID, str] = {}
        self._fenced_epoch: int | None = None
        self._suspension = SuspensionState()
        self.context = ReplicaContext(node_id, config, clock)
        self.observers: list[RoleObserver] = []
        logs.high_watermark = self._high_watermark_of

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    # -- finding

    def find(self, topic: str, partition: int) -> Partition | None:
        """This broker's replica, whether it leads or follows."""
        return self._by_name.get((topic, partition))

    def get(self, tp: tuple[str, int]) -> Partition:
        """The partition if this broker leads it; else ApiError."""
        found = self._by_name.get(tp)
        if found is None or not found.is_leader:
            raise self._not_here(tp)
        if self._suspension.is_watching:
            self._check_may_serve(found)
        return found

    def get_for(self, tp: tuple[str, int], records: Buffer | None) -> Partition:
        """As `get`, for a batch to append. If it is refused, what was sent behind it must not overtake it."""
        try:
            return self.get(tp)
        except ApiError:
            found = self._by_name.get(tp)
            if found is not None and records:
                found.note_refused(records)
            raise

    def get_led(self, tp: tuple[str, int]) -> Partition:
        """As `get`, for followers: that they fetch is what tells a leader in doubt that it still leads."""
        found = self._by_name.get(tp)
        if found is None or not found.is_leader:
            raise self._not_here(tp)
        return found

    def get_readable(self, tp: tuple[str, int]) -> Partition:
        """The partition if this broker leads or follows it, for consumers that may read from either; else ApiError."""
        found = self._by_name.get(tp)
        return found if found is not None and found.is_follower else self.get(tp)

    def _not_here(self, tp: tuple[str, int]) -> ApiError:
        topic = self._image.topics.get(tp[0])
        if topic is None or not 0 <= tp[1] < len(topic.partitions):
            return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{tp[0]}-{tp[1]} does not exist")
        state = topic.partitions[tp[1]]
        found = self._by_name.get(tp)
        if found is not None and found.log.failure is not None:
            return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, found.log.failure)
        if self._node_id in state.replicas and found is None:
            return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{tp[0]}-{tp[1]} has no log on this broker")
        return ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker is not the leader of {tp[0]}-{tp[1]}")

    def name_of(self, topic_id: uuid.UUID) -> str:
        name = self._names_by_id.get(topic_id)
        if name is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
        return name

    # -- following the image

    def load(self, image: ClusterImage) -> None:
        """Take up everything that an image gives to this broker, and let go what it does not."""
        self._image = image
        self._loading = True
        self.context.brokers = image.brokers
        for name, index in tuple(self._by_name):
            topic = image.topics.get(name)
            if topic is None or index >= len(topic.partitions) or topic.topic_id != self._by_name[name, index].topic_id:
                # It was deleted while nobody told. Should the metadata themselves have been lost, the records are not.
                self._drop((name, index), set_aside=True)
        for topic in image.topics.values():
            self._apply_topic(topic)
        self._loading = False

    def leave_failed(self) -> list[tuple[str, int]]:
        """Stop leading and following where the log has failed; returns every partition that should have one here."""
        lost = []
        for topic in self._image.topics.values():
            for index, state in enumerate(topic.partitions):
                partition = self._by_name.get((topic.name, index))
                if self._node_id not in state.replicas or (partition is not None and partition.log.failure is None):
                    continue
                lost.append((topic.name, index))
                if partition is not None and partition.apply(state):
                    self._tell(partition)
        return lost

    def apply(self, change: ImageChange) -> None:
        """Create, reconfigure, promote, demote and delete what changed between two images."""
        if self._fenced_epoch is not None and self._epoch_in(change.new) > self._fenced_epoch:
            logger.info(
                "Broker unfenced: registered again with broker epoch %d, taking up its leader and follower replicas",
                self._epoch_in(change.new),
            )
            self._fenced_epoch = None
            self.load(change.new)
            return
        self._image = change.new
        self.context.brokers = change.new.brokers
        for topic in change.removed:
            self._remove(topic)
        for topic in change.written:
            self._apply_topic(topic)
        if change.broker_configs:
            self._reconfigure_all()
        if change.brokers:
            self._follow_brokers(change)

    def _apply_topic(self, topic: TopicImage) -> None:
        self._names_by_id[topic.topic_id] = topic.name
        settings = self._config.topic(topic.name)
        for index, state in enumerate(topic.partitions):
            key = (topic.name, index)
            if self._node_id not in state.replicas:
                if key in self._by_name:
                    self._drop(key)
                continue
            partition = self._by_name.get(key)
            if partition is None:
                partition = self._open(topic, index, settings)
                if partition is None:
                    continue
            partition.reconfigure(settings)
            if self._fenced_epoch is None and partition.apply(state):
                self._tell(partition)

    def _open(self, topic: TopicImage, index: int, settings: TopicSettings) -> Partition | None:
        tp = TopicPartition(topic.name, index)
        try:
            stored = self._own_log(tp, topic)
            high_watermark = self._logs.stored_high_watermark(tp) if stored is not None else 0
            if stored is None and self._loading:
                self._logs.check_all_online(tp)
            stored = stored or self._logs.create(tp, topic.topic_id, settings)
        except (OSError, ApiError):
            # The topic exists; this partition answers with an error until the disk is well again.
            if topic.name not in self._without_log:
                logger.exception("%s: Cannot create or open the log; the replica stays offline until that succeeds", tp)
            self._without_log.add(topic.name)
            return None
        partition = self._by_name[tp] = Partition(stored, self.context, high_watermark)
        return partition

    async def retry_missing(self) -> None:
        """A periodic job: partitions that got no log, because the disk was full perhaps, may get one now."""
        if not self._without_log or self._logs.any_offline:  # what lies in a failed directory does not begin anew
            return
        names, before = self._without_log, len(self._by_name)
        self._without_log = set()
        for name in names:
            topic = self._image.topics.get(name)
            if topic is not None:
                self._apply_topic(topic)
        if len(self._by_name) > before:
            logger.info(
                "Created the logs of %d partitions which could not be created before", len(self._by_name) - before
            )

    def _own_log(self, tp: TopicPartition, topic: TopicImage) -> Log | None:
        """The log on this broker's disks, unless it is that of a former topic of the same name.

        One that does not say whose it is lost that in a crash, before it was ever flushed. It may be a former topic's
        too, whose epochs would pass for this one's: only where nobody else has the records it is better than nothing.
        """
        stored = self._logs.get(tp)
        if stored is None or topic.topic_id in (stored.topic_id, NO_TOPIC_ID):
            return stored
        if stored.topic_id == NO_TOPIC_ID and self._node_id in topic.partitions[tp.partition].isr:
            self._logs.identify(stored, topic.topic_id)
            return stored
        logger.warning(
            "%s: Renaming the log to -stray: it has another topic id, of a deleted topic of the same name", tp
        )
        self._logs.mark_stray(tp)
        return None

    def _remove(self, topic: TopicImage) -> None:
        self._names_by_id.pop(topic.topic_id, None)
        for index in range(len(topic.partitions)):
            self._drop((topic.name, index))
        self.context.traffic.forget(topic.name)

    def _drop(self, key: tuple[str, int], *, set_aside: bool = False) -> None:
        """Stop a replica that is not this broker's any more, and delete its log or put it out of the way."""
        partition = self._by_name.pop(key, None)
        if partition is None:
            return
        partition.stop()
        self._tell(partition)
        try:
            if set_aside:
                logger.warning(
                    "%s: Renaming the log to -stray: the metadata has no such topic or partition", partition.tp
                )
                self._logs.mark_stray(partition.tp)
            else:
                self._logs.delete(partition.tp)
        except ApiError:
            logger.exception("%s: Cannot delete the log", partition.tp)

    def _tell(self, partition: Partition) -> None:
        for observer in self.observers:
            observer.role_changed(partition)

    def _reconfigure_all(self) -> None:
        for (name, _), partition in self._by_name.items():
            partition.reconfigure(self._config.topic(name))

    def _follow_brokers(self, change: ImageChange) -> None:
        old, new = change.old.brokers, change.new.brokers
        ended = {
            broker: known.epoch
            for broker, known in old.items()
            if broker != self._node_id and known.epoch != _epoch(new, broker)
        }
        for partition in self._by_name.values() if ended else ():
            if partition.is_leader:
                for broker in ended.keys() & partition.replicas:
                    partition.broker_epoch_ended(broker, ended[broker])

    # -- the session with the metadata store

    def on_session(self, session: Session, timeout_ms: int) -> None:
        """Told at every change of the session: a lost one ends every role, a silent store puts them in doubt."""
        if session is Session.LOST:
            self.fence()
        self._suspension.timeout_s = timeout_ms / 1000.0
        if session is Session.SUSPENDED:
            self._suspension.begin(self._clock.monotonic())
        elif session is Session.CONNECTED:
            self._suspension.end()

    async def note_awake(self) -> None:
        """A periodic job, several times in a session timeout: a broker that slept must notice it."""
        self._suspension.tick(self._clock.monotonic())

    def fence(self) -> None:
        """Lead and follow nothing until this broker is registered anew."""
        if self._fenced_epoch is not None:
            return
        logger.warning(
            "Broker fenced: the session with the metadata store expired; nothing is led or followed until it is back"
        )
        self._fenced_epoch = self._epoch_in(self._image)
        for partition in self._by_name.values():
            partition.fence()
            self._tell(partition)

    @property
    def fenced(self) -> bool:
        return self._fenced_epoch is not None

    def _epoch_in(self, image: ClusterImage) -> int:
        return _epoch(image.brokers, self._node_id)

    def _check_may_serve(self, partition: Partition) -> None:
        now_s = self._clock.monotonic()
        if self._suspension.is_due(now_s) and not partition.may_serve(now_s, self._suspension.timeout_s):
            raise ApiError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"this broker may have been declared dead and not every in-sync replica follows it: {partition.tp} may "
                "have another leader by now",
            )

    # -- for the logs

    def _high_watermark_of(self, tp: TopicPartition) -> int | None:
        """Called in any thread."""
        partition = self._by_name.get(tp)
        return partition.high_watermark if partition is not None else self._logs.stored_high_watermark(tp)


def _epoch(brokers: Mapping[int, BrokerImage], broker: int) -> int:
    known = brokers.get(broker)
    return NO_BROKER_EPOCH if known is None else known.epoch
