"""Writes changes of the in-sync replicas: the leader decides, the metadata store has the last word.

Many partitions can change at once, so decisions are collected and committed together, each only if nobody changed the
partition's state meanwhile. While it is not known how a commit ended, the leader counts as in sync whoever might be.
"""

import asyncio
import logging
from typing import NamedTuple

from ottla.broker.replication.followed import FollowedReplica
from ottla.broker.replication.partitions import Partitions
from ottla.cluster.documents import partition_document, partition_path
from ottla.cluster.image import PartitionImage
from ottla.cluster.store import CommitUncertain, MetadataStore, StoreError, VersionConflict, Write

logger = logging.getLogger(__name__)

BATCH_MAX = 200
RETRY_PAUSE_S = 0.1
UNCERTAIN_PAUSE_S = 1.0


class _Change(NamedTuple):
    partition: FollowedReplica
    epoch: int
    before: tuple[int, ...]
    isr: tuple[int, ...]
    late: tuple[int, ...]
    write: Write


def _describe(change: _Change) -> str:
    """In the words of Kafka's own line, which operators look for."""
    verb = "Expanding" if set(change.isr) - set(change.before) else "Shrinking"
    lagging = f", kept in it although lagging: {_ids(change.late)}" if change.late else ""
    if change.isr == change.before:
        return f"ISR stays {_ids(change.isr)}{lagging or ', nobody lags any more'}"
    return f"{verb} ISR from {_ids(change.before)} to {_ids(change.isr)}{lagging}"


def _ids(replicas: tuple[int, ...]) -> str:
    return ",".join(map(str, replicas))


class IsrWriter:
    def __init__(self, store: MetadataStore, partitions: Partitions) -> None:
        self._store = store
        self._partitions = partitions
        self._queue: dict[FollowedReplica, None] = {}
        self._uncertain: dict[FollowedReplica, _Change] = {}
        self._task: asyncio.Task[None] | None = None
        self._stopped = False
        self.shrinks = 0
        self.expands = 0
        """How often it was written that replicas left, and that they came back."""
        self.failures = 0
        partitions.context.isr_wanted = self.look_at

    def look_at(self, partition: FollowedReplica) -> None:
        """Perhaps its in-sync replicas should change: decide soon, together with others."""
        self._queue[partition] = None
        if self._task is None and not self._stopped:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="in-sync replicas")

    async def check_all(self) -> None:
        """The periodic job: time alone can put a follower out of sync."""
        for number, partition in enumerate(tuple(self._partitions)):
            if partition.is_leader and len(partition.replicas) > 1:
                partition.check_progress()
                if partition.wanted_isr() is not None:
                    self.look_at(partition)
            if number % 1000 == 999:
                await asyncio.sleep(0)

    async def stop(self) -> None:
        self._stopped = True
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _run(self) -> None:
        try:
            while self._queue:
                taken = list(self._queue)[:BATCH_MAX]
                for partition in taken:
                    del self._queue[partition]
                changes = [change for partition in taken if (change := self._decide(partition)) is not None]
                if changes:
                    await self._commit(changes)
        except Exception:
            logger.exception("ISR changes could not be written; they are tried again at the next check")
        finally:
            self._task = None

    def _decide(self, partition: FollowedReplica) -> _Change | None:
        path = partition_path(*partition.tp)
        version = self._store.version(path)
        doubtful = self._uncertain.pop(partition, None)
        if not partition.is_leader or not self._agrees(partition):
            return None
        if doubtful is not None and doubtful.epoch == partition.leader_epoch and partition.isr_changes:
            if doubtful.write.expected == version:
                self._uncertain[partition] = doubtful
                return doubtful
            partition.isr_change_failed()  # the state was written since, and not by that commit
        isr = partition.wanted_isr()
        if isr is None:
            return None
        partition.isr_change_begins(isr)
        late = partition.lagging
        state = PartitionImage(partition.leader, partition.leader_epoch, partition.replicas, isr, late=late)
        document = partition_document(state, self._store.image.controller_epoch)
        return _Change(partition, partition.leader_epoch, partition.isr, isr, late, Write(path, document, version))

    def _agrees(self, partition: FollowedReplica) -> bool:
        """Whether the partition is what the newest image says, which the version belongs to."""
        topic = self._store.image.topics.get(partition.tp.topic)
        if topic is None or topic.topic_id != partition.topic_id or partition.tp.partition >= len(topic.partitions):
            return False
        state = topic.partitions[partition.tp.partition]
        return (state.leader, state.leader_epoch, state.isr, state.late) == (
            partition.leader,
            partition.leader_epoch,
            partition.isr,
            partition.late,
        )

    async def _commit(self, changes: list[_Change]) -> None:
        try:
            await self._store.commit([change.write for change in changes])
        except VersionConflict:
            self._failed(changes)
            await asyncio.sleep(RETRY_PAUSE_S)
        except CommitUncertain as error:
            logger.warning("ISR change of %d partitions may or may not be written: %s", len(changes), error)
            for change in changes:
                self._uncertain[change.partition] = change
            await asyncio.sleep(UNCERTAIN_PAUSE_S)
        except StoreError as error:
            logger.warning("Failed to write the ISR of %d partitions, trying again: %s", len(changes), error)
            self._failed(changes)
            await asyncio.sleep(UNCERTAIN_PAUSE_S)
        else:
            for change in changes:
                self._uncertain.pop(change.partition, None)
                self.shrinks += bool(set(change.before) - set(change.isr))
                self.expands += bool(set(change.isr) - set(change.before))
                logger.info("%s: %s", change.partition.tp, _describe(change))
        for change in changes:
            self._queue[change.partition] = None

    def _failed(self, changes: list[_Change]) -> None:
        """Nothing of this commit was written. One that was in doubt before stays so until the image tells."""
        self.failures += len(changes)
        for change in changes:
            partition = change.partition
            if partition in self._uncertain:
                continue
            if partition.is_leader and partition.leader_epoch == change.epoch and partition.isr == change.before:
                partition.isr_change_failed()
