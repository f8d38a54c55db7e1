"""Offsets and lag under the names of kafka_exporter, from what this broker knows by itself.

All or nothing: with more partitions, or more committed offsets, than `metrics.offsets.max` none of them is told, since
some of them would look like all. `ottla_metrics_left_out` says how many that are.
"""

from collections.abc import Callable, Iterator

from ottla.broker.coordination.runtime import GroupCoordinator
from ottla.broker.metrics.figures import Figures, isr_states
from ottla.broker.replication.partitions import Partitions
from ottla.cluster.image import ClusterImage
from ottla.telemetry.declared import exporter
from ottla.telemetry.metric import Row
from ottla.telemetry.registry import Telemetry

_PARTITIONS = (
    exporter.CURRENT_OFFSET,
    exporter.OLDEST_OFFSET,
    exporter.REPLICAS,
    exporter.IN_SYNC,
    exporter.PREFERRED,
    exporter.UNDER_REPLICATED,
)
PARTITIONS = "partitions"
OFFSETS = "committed offsets"


class Exporter:
    def __init__(
        self,
        figures: Figures,
        image: Callable[[], ClusterImage],
        partitions: Partitions,
        groups: GroupCoordinator,
        most: Callable[[], int],
    ) -> None:
        self._figures = figures
        self._image = image
        self._partitions = partitions
        self._groups = groups
        self._most = most

    def show(self, telemetry: Telemetry) -> None:
        telemetry.observe(exporter.BROKERS, self._read_brokers)
        telemetry.observe(exporter.BROKER_INFO, self._read_addresses)
        telemetry.observe(exporter.TOPIC_PARTITIONS, self._read_topics)
        telemetry.observe_together(_PARTITIONS, self._read_partitions)
        telemetry.observe(exporter.GROUP_OFFSET, lambda: ((labels, offset) for labels, offset, _ in self._offsets()))
        telemetry.observe(
            exporter.GROUP_LAG,
            lambda: ((labels, lag) for labels, _, lag in self._offsets() if lag is not None),
        )
        telemetry.observe(exporter.GROUP_OFFSET_SUM, self._read_offset_sums)
        telemetry.observe(exporter.GROUP_LAG_SUM, self._read_lag_sums)
        telemetry.observe(exporter.GROUP_MEMBERS, self._read_members)
        telemetry.observe(exporter.SERIES_LEFT_OUT, self._read_left_out)

    def _read_brokers(self) -> Iterator[tuple[tuple[()], int]]:
        if self._figures.is_controller:
            yield (), len(self._image().brokers)

    def _read_addresses(self) -> Iterator[tuple[tuple[str, str], int]]:
        for broker in self._image().brokers.values() if self._figures.is_controller else ():
            for endpoint in broker.endpoints[:1]:
                yield (str(broker.id), f"{endpoint.host}:{endpoint.port}"), 1

    def _read_topics(self) -> Iterator[tuple[tuple[str], int]]:
        topics = self._image().topics if self._figures.is_controller else {}
        if len(topics) <= self._most():
            for name, topic in topics.items():
                yield (name,), len(topic.partitions)

    def _read_partitions(self) -> Iterator[Row]:
        if len(self._partitions) > self._most():
            return
        for partition in self._figures.led():
            topic, number = partition.tp
            under = isr_states(partition)[0]
            preferred = int(partition.leader == partition.replicas[0])
            yield (
                (topic, str(number)),
                (
                    partition.high_watermark, partition.log.start_offset, len(partition.replicas), len(partition.isr),
                    preferred, under,
                ),
            )  # fmt: skip

    def _offsets(self) -> Iterator[tuple[tuple[str, str, str], int, int | None]]:
        """Group, topic, partition; what is committed; the lag where it is known."""
        if self._kept() > self._most():
            return
        for machine in self._groups.machines():
            for group in machine.all_groups():
                for topic, partitions in tuple(group.offsets.items()):
                    for number, value in tuple(partitions.items()):
                        known = self._partitions.find(topic, number)
                        lag = None if known is None else max(0, known.high_watermark - value.offset)
                        yield (group.group_id, topic, str(number)), value.offset, lag

    def _read_offset_sums(self) -> Iterator[tuple[tuple[str, str], int]]:
        sums: dict[tuple[str, str], int] = {}
        for (group, topic, _), offset, _ in self._offsets():
            sums[group, topic] = sums.get((group, topic), 0) + offset
        return iter(sums.items())

    def _read_lag_sums(self) -> Iterator[tuple[tuple[str, str], int]]:
        sums: dict[tuple[str, str], int] = {}
        for (group, topic, _), _, lag in self._offsets():
            if lag is not None:
                sums[group, topic] = sums.get((group, topic), 0) + lag
        return iter(sums.items())

    def _read_members(self) -> Iterator[tuple[tuple[str], int]]:
        groups = [group for machine in self._groups.machines() for group in machine.all_groups()]
        for group in groups if len(groups) <= self._most() else ():
            yield (group.group_id,), len(group.members)

    def _kept(self) -> int:
        return sum(
            len(partitions)
            for machine in self._groups.machines()
            for group in machine.all_groups()
            for partitions in group.offsets.values()
        )

    def _read_left_out(self) -> Iterator[tuple[tuple[str], int]]:
        most = self._most()
        for kind, count in ((PARTITIONS, len(self._partitions)), (OFFSETS, self._kept())):
            yield (kind,), count if count > most else 0
