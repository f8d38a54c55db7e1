"""What a broker decides about its own partitions when it leaves and when it comes back.

It writes these decisions itself, as any broker may: leaving is orderly only while it is still there, and coming back
after a crash of its machine must be decided before anybody counts on it, so before it is registered.
"""

import asyncio
import logging
from collections.abc import Callable, Collection

from ottla.broker.controller import elections
from ottla.broker.controller.holders import Place
from ottla.broker.controller.partition_changes import Decide, PartitionChanges, Tally
from ottla.broker.controller.waiting import until
from ottla.cluster.image import ClusterImage, PartitionImage
from ottla.cluster.store import MetadataStore, Session, StoreError
from ottla.model.clock import Clock
from ottla.model.errors import OttlaError

logger = logging.getLogger(__name__)

HAND_OVER_SECONDS_MAX = 10.0
RETRY_SECONDS = 0.5
OTHER_INCARNATION_WAIT_MS_MAX = 60_000


async def hand_over(
    store: MetadataStore,
    node_id: int,
    clock: Clock,
    *,
    only_led: bool = False,
    floor: Callable[[str], int],
) -> None:
    """Give what this broker leads to others in sync, and leave the in-sync replicas. Not worth waiting for long.

    `floor` tells how many in-sync replicas a topic keeps at least (min.insync.replicas).

    With `only_led` the partitions that it follows stay as they are. Whoever goes on fetching is soon taken in again,
    and whoever does not is waited for as long as it is registered: so leave the rest last of all.
    """
    if store.session is not Session.CONNECTED:
        logger.warning("Controlled shutdown skipped: no connection to the metadata store, leadership is not moved")
        return

    def decide(place: Place, partition: PartitionImage, image: ClusterImage) -> PartitionImage | None:
        if only_led and partition.leader != node_id:
            return None
        return elections.hand_over(partition, node_id, image.brokers, floor=floor(place[0]))

    tally = Tally()
    try:
        async with asyncio.timeout(HAND_OVER_SECONDS_MAX):
            await _change_all(store, node_id, clock, decide, tally)
    except TimeoutError:
        logger.warning(
            "Controlled shutdown not complete after %g s: leaders are elected when the session of this broker ends",
            HAND_OVER_SECONDS_MAX,
        )
    if tally.changed:
        what = "moved leadership of" if only_led else "left the ISR of"
        logger.info("Controlled shutdown: %s %d partitions, %s", what, tally.changed, tally)


async def rejoin(
    store: MetadataStore, node_id: int, incarnation: str, clock: Clock, only: Collection[Place] | None = None
) -> None:
    """Take back every claim to be complete: this broker's machine crashed. Returns when that is written.

    With `only` those of some partitions: their logs are not where they were.

    A broker that was given the id of another by mistake must not speak for it: as long as one runs under this id that
    is not this one's former registration, nothing is written. OttlaError if that does not change.
    """

    def is_ours(image: ClusterImage) -> bool:
        known = image.brokers.get(node_id)
        return known is None or known.incarnation == incarnation

    if not await until(store, is_ours, min(2 * store.session_timeout_ms, OTHER_INCARNATION_WAIT_MS_MAX)):
        raise OttlaError(f"another broker runs with id {node_id}; every broker needs a node.id of its own")

    def decide(place: Place, partition: PartitionImage, _image: ClusterImage) -> PartitionImage | None:
        return elections.rejoin(partition, node_id) if only is None or place in only else None

    tally = Tally()
    await _change_all(store, node_id, clock, decide, tally)
    if tally.changed:
        logger.warning(
            "Unclean shutdown of the machine, or a lost disk: records may be missing. Left the ISR of %d partitions "
            "(stays where it is the only one), with a new leader epoch; %s", tally.changed, tally,
        )  # fmt: skip


async def _change_all(store: MetadataStore, node_id: int, clock: Clock, decide: Decide, tally: Tally) -> None:
    work = PartitionChanges(store, clock, decide)
    leading: list[Place] = []
    following: list[Place] = []
    for name in sorted(store.image.topics):
        for number, partition in enumerate(store.image.topics[name].partitions):
            if node_id in partition.replicas:
                (leading if partition.leader == node_id else following).append((name, number))
    work.due.update(dict.fromkeys(leading + following))
    while True:
        try:
            return await work.work_off(tally)
        except StoreError as error:
            logger.warning("Cannot write partition states, trying again: %s", error)
            await asyncio.sleep(RETRY_SECONDS)
