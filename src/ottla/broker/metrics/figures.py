"""Figures that nobody counts: what they say stands in the broker's state, and is read when somebody asks.

Partitions are gone through once for all that is said of them, and so is the cluster's image.
"""

from collections.abc import Callable, Iterator

from ottla.broker.replication.fetchers import ReplicaFetchers
from ottla.broker.replication.isr import IsrWriter
from ottla.broker.replication.partition import Partition
from ottla.broker.replication.partitions import Partitions
from ottla.broker.storage.manager import LogManager
from ottla.cluster.image import NO_LEADER, ClusterImage
from ottla.telemetry import catalogue
from ottla.telemetry.declared import controller, replicas
from ottla.telemetry.metric import PAUSE, Row
from ottla.telemetry.registry import Telemetry

REPLICA_CLIENT = "Replica"
PARTITIONS_AT_ONCE = 100

_LED = (
    catalogue.PARTITION_UNDER_REPLICATED,
    catalogue.PARTITION_UNDER_MIN_ISR,
    catalogue.PARTITION_AT_MIN_ISR,
    catalogue.PARTITION_REPLICAS,
    catalogue.PARTITION_IN_SYNC,
)
_LOGS = (catalogue.LOG_SIZE, catalogue.LOG_START_OFFSET, catalogue.LOG_END_OFFSET, catalogue.LOG_SEGMENTS)
_COUNTS = (
    catalogue.PARTITION_COUNT,
    catalogue.LEADER_COUNT,
    catalogue.UNDER_REPLICATED,
    catalogue.UNDER_MIN_ISR,
    catalogue.AT_MIN_ISR,
    catalogue.OFFLINE_REPLICAS,
    replicas.REASSIGNING,
    replicas.PRODUCER_IDS,
)
_CONTROLLER = (
    catalogue.ACTIVE_CONTROLLER,
    catalogue.GLOBAL_TOPICS,
    catalogue.GLOBAL_PARTITIONS,
    catalogue.ACTIVE_BROKERS,
    catalogue.OFFLINE_PARTITIONS,
    catalogue.PREFERRED_IMBALANCE,
    controller.FENCED_BROKERS,
)


class ImageFigures:
    """What an image comes to. It never changes, so it is gone through once."""

    __slots__ = ("fenced", "imbalanced", "offline", "own", "own_moving", "partitions")

    def __init__(self, image: ClusterImage, node_id: int) -> None:
        self.partitions = self.offline = self.imbalanced = self.own = self.own_moving = 0
        holders: set[int] = set()
        for topic in image.topics.values():
            for state in topic.partitions:
                self.partitions += 1
                self.offline += state.leader == NO_LEADER
                self.imbalanced += state.leader != state.replicas[0]
                self.own += node_id in state.replicas
                self.own_moving += state.leader == node_id and bool(state.adding or state.removing)
                holders.update(state.replicas)
        self.fenced = len(holders - image.brokers.keys())


class Figures:
    def __init__(
        self, node_id: int, image: Callable[[], ClusterImage], partitions: Partitions, logs: LogManager
    ) -> None:
        self._node_id = node_id
        self._image = image
        self._partitions = partitions
        self._logs = logs
        self._seen: tuple[ClusterImage, ImageFigures] | None = None

    def show(self, telemetry: Telemetry) -> None:
        telemetry.observe_together(_COUNTS, self._read_counts)
        telemetry.observe_together(_CONTROLLER, self._read_controller)
        telemetry.observe_together(_LED, self._read_led)
        telemetry.observe_together(_LOGS, self._read_logs)
        telemetry.observe_one(
            catalogue.OFFLINE_LOG_DIRECTORIES,
            lambda: sum(directory.failure is not None for directory in self._logs.dirs),
        )

    def of_image(self) -> ImageFigures:
        image = self._image()
        if self._seen is None or self._seen[0] is not image:
            self._seen = (image, ImageFigures(image, self._node_id))
        return self._seen[1]

    def led(self) -> Iterator[Partition]:
        return (partition for partition in tuple(self._partitions) if partition.is_leader)

    @property
    def is_controller(self) -> bool:
        return self._image().controller_id == self._node_id

    def _read_counts(self) -> Iterator[Row]:
        led = under_replicated = under_min = at_min = producers = 0
        for number, partition in enumerate(tuple(self._partitions)):
            if number % PARTITIONS_AT_ONCE == PARTITIONS_AT_ONCE - 1:
                yield PAUSE
            producers += len(partition.log.producers.entries)
            if partition.is_leader:
                states = isr_states(partition)
                led += 1
                under_replicated += states[0]
                under_min += states[1]
                at_min += states[2]
        image, count = self.of_image(), len(self._partitions)
        offline, moving = image.own - count, image.own_moving
        yield (), (count, led, under_replicated, under_min, at_min, offline, moving, producers)

    def _read_controller(self) -> Iterator[Row]:
        image = self._image()
        if not self.is_controller:
            yield (), (0,) * len(_CONTROLLER)
            return
        figures = self.of_image()
        yield (
            (),
            (
                1, len(image.topics), figures.partitions, len(image.brokers), figures.offline, figures.imbalanced,
                figures.fenced,
            ),
        )  # fmt: skip

    def _read_led(self) -> Iterator[Row]:
        for partition in self.led():
            topic, number = partition.tp
            states = isr_states(partition)
            yield (topic, str(number)), (*states, len(partition.replicas), len(partition.isr))

    def _read_logs(self) -> Iterator[Row]:
        for partition in tuple(self._partitions):
            topic, number = partition.tp
            log = partition.log
            yield (topic, str(number)), (log.size_bytes, log.start_offset, log.end_offset, len(log.segments))


def isr_states(partition: Partition) -> tuple[int, int, int]:
    """Whether it is under-replicated, under min ISR, at min ISR, as 0 and 1."""
    replicas = len(partition.replicas)
    if replicas == 1:  # it is its only replica, and leads
        return 0, 0, 1
    usable = partition.usable_isr
    return int(usable < replicas), int(not partition.enough_replicas), int(usable == partition.least_in_sync)


def show_replication(telemetry: Telemetry, writer: IsrWriter, fetchers: ReplicaFetchers) -> None:
    telemetry.observe_one(catalogue.ISR_SHRINKS, lambda: writer.shrinks)
    telemetry.observe_one(catalogue.ISR_EXPANDS, lambda: writer.expands)
    telemetry.observe_one(replicas.FAILED_ISR_UPDATES, lambda: writer.failures)

    def read_lags() -> Iterator[tuple[tuple[str, str, str], int]]:
        for followed in fetchers.followed():
            topic, number = followed.partition.tp
            yield (REPLICA_CLIENT, topic, str(number)), followed.lag

    def read_worst() -> Iterator[Row]:
        worst = max((followed.lag for followed in fetchers.followed()), default=0)
        yield (REPLICA_CLIENT,), (worst, fetchers.failing)

    telemetry.observe(replicas.FOLLOWER_LAG, read_lags)
    telemetry.observe_together((replicas.MAX_LAG, replicas.FAILED_PARTITIONS), read_worst)
