"""The partitions this broker has, kept in step with the cluster's image."""

import logging
import uuid
from collections.abc import Iterator

from ottla.broker.replication.partition import Partition
from ottla.broker.storage.manager import LogManager
from ottla.cluster.image import ClusterImage, ImageChange, TopicImage
from ottla.config.live import LiveConfig
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition

log = logging.getLogger(__name__)


class Partitions:
    def __init__(self, node_id: int, logs: LogManager, config: LiveConfig) -> None:
        self._node_id = node_id
        self._logs = logs
        self._config = config
        self._by_name: dict[tuple[str, int], Partition] = {}
        self._names_by_id: dict[uuid.UUID, str] = {}

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def find(self, topic: str, partition: int) -> Partition | None:
        return self._by_name.get((topic, partition))

    def get(self, tp: tuple[str, int]) -> Partition:
        """The partition; ApiError if this broker does not have it."""
        found = self._by_name.get(tp)
        if found is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{tp[0]}-{tp[1]} is not on this broker")
        return found

    def name_of(self, topic_id: uuid.UUID) -> str:
        name = self._names_by_id.get(topic_id)
        if name is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
        return name

    def load(self, image: ClusterImage) -> None:
        """Take up everything that the first image gives to this broker."""
        for topic in image.topics.values():
            self._apply_topic(topic)
        self._reconfigure_all()

    def apply(self, change: ImageChange) -> None:
        """Create, reconfigure and delete what changed between two images."""
        for topic in change.removed:
            self._remove(topic)
        for topic in change.written:
            self._apply_topic(topic)
        if change.broker_configs:
            self._reconfigure_all()

    def _apply_topic(self, topic: TopicImage) -> None:
        self._names_by_id[topic.topic_id] = topic.name
        settings = self._config.topic(topic.name)
        for index, state in enumerate(topic.partitions):
            if self._node_id not in state.replicas:
                continue
            known = self._by_name.get((topic.name, index))
            if known is not None:
                known.log.reconfigure(settings)
                known.leader_epoch, known.isr = state.leader_epoch, state.isr
                continue
            tp = TopicPartition(topic.name, index)
            try:
                stored = self._logs.get(tp) or self._logs.create(tp, topic.topic_id, settings)
            except (OSError, ApiError):
                # The topic exists; this partition answers with an error until the disk is well again.
                log.exception("no log for %s", tp)
                continue
            stored.reconfigure(settings)
            self._by_name[topic.name, index] = Partition(stored, state)

    def _remove(self, topic: TopicImage) -> None:
        self._names_by_id.pop(topic.topic_id, None)
        for index in range(len(topic.partitions)):
            partition = self._by_name.pop((topic.name, index), None)
            if partition is not None:
                partition.stop()
                self._logs.delete(partition.tp)

    def _reconfigure_all(self) -> None:
        for (name, _), partition in self._by_name.items():
            partition.log.reconfigure(self._config.topic(name))
