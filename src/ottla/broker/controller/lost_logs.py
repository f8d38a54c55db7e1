"""A log directory failed, and with it replicas of this broker: others that are in sync go on without them."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from uuid import UUID

from ottla.broker.controller import elections
from ottla.broker.controller.holders import Place
from ottla.broker.controller.partition_changes import PartitionChanges, Tally
from ottla.cluster.image import ClusterImage, PartitionImage
from ottla.cluster.store import MetadataStore, Session, StoreError
from ottla.model.clock import Clock
from ottla.model.names import TopicPartition

logger = logging.getLogger(__name__)

RETRY_SECONDS = 1.0


def missing_logs(image: ClusterImage, node_id: int, has_log: Callable[[TopicPartition, UUID], bool]) -> set[Place]:
    """Partitions that count this broker as in sync although it has no log of them.

    Whoever is in sync was there when the partition was created, so there was a log: a directory was taken out of
    log.dirs, or emptied.
    """
    return {
        (topic.name, number)
        for topic in image.topics.values()
        for number, partition in enumerate(topic.partitions)
        if node_id in partition.isr and not has_log(TopicPartition(topic.name, number), topic.topic_id)
    }


async def leave_to_others(store: MetadataStore, node_id: int, clock: Clock, places: Iterable[Place]) -> None:
    """Let other in-sync replicas lead these partitions, and leave the in-sync replicas.

    Where there is no other nothing changes: the records are here and nowhere else, and perhaps the disk comes back.
    """

    def decide(_place: Place, partition: PartitionImage, image: ClusterImage) -> PartitionImage | None:
        return elections.hand_over(partition, node_id, image.brokers)

    work, tally = PartitionChanges(store, clock, decide), Tally()
    work.due.update(dict.fromkeys(places))
    while store.session is not Session.LOST:  # then this broker counts as dead, and others have been elected
        try:
            await work.work_off(tally)
            break
        except StoreError as error:
            logger.warning(
                "Cannot give up leadership and ISR membership of the offline replicas yet, trying again: %s", error
            )
            await asyncio.sleep(RETRY_SECONDS)
    if tally.changed:
        logger.warning(
            "Left leadership and ISR of %d partitions, whose log directory is offline, to other replicas, %s",
            tally.changed,
            tally,
        )
