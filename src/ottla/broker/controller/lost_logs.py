"""A log directory failed, and with it replicas of this broker: others that are in sync go on without them."""

import asyncio
import logging
from collections.abc import Iterable

from ottla.broker.controller import elections
from ottla.broker.controller.holders import Place
from ottla.broker.controller.partition_changes import PartitionChanges, Tally
from ottla.cluster.image import ClusterImage, PartitionImage
from ottla.cluster.store import MetadataStore, Session, StoreError
from ottla.model.clock import Clock

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0


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
            log.warning("partitions without a log cannot be left to others yet: %s", error)
            await asyncio.sleep(RETRY_SECONDS)
    if tally.changed:
        log.warning("%d partitions whose logs failed here are left to other replicas, %s", tally.changed, tally)
