"""What must hold whatever fails, each a class with the name of the promise. Checked while a run goes on and at its end.

A machine's crash may take data with it that was not forced to disk. That breaks a promise unless every in-sync replica
of the partition lost its data before another was in sync again: such partitions are *excused* (observer.py), and
nothing is asked of what was acknowledged in them before.
"""

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from tests.simulation.clients import Mark
from tests.simulation.observer import StateWrite
from tests.transactions.checker import Anomaly, LostWrite, check

from ottla.broker.replication.partition import Partition
from ottla.broker.storage.log import Log
from ottla.model.names import INTERNAL_TOPICS, TopicPartition
from ottla.protocol.records import iterate_batches

if TYPE_CHECKING:
    from tests.simulation.world import World

READ_BYTES_MAX = 1 << 24


class Violation(NamedTuple):
    invariant: str
    what: str
    at: float

    def __str__(self) -> str:
        return f"{self.at:10.4f} {self.invariant}: {self.what}"


class Invariant:
    """Overrides what it needs. Reports a broken promise once per kind of evidence."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self._reported: set[object] = set()

    def on_write(self, write: StateWrite) -> None:
        """The state of a partition was written in ZooKeeper."""

    def on_commit(self) -> None:
        """Something was written in ZooKeeper, and all of it is in force."""

    def on_sample(self) -> None:
        """Some time has passed."""

    def on_end(self) -> None:
        """Everything has healed, and the clients have read all there is."""

    def report(self, key: object, what: str) -> None:
        if key not in self._reported:
            self._reported.add(key)
            self.world.violated(type(self).__name__, what)


class OneLeaderPerEpoch(Invariant):
    """In one epoch one broker at most leads a partition: in ZooKeeper, and by its own belief."""

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._leaders: dict[tuple[object, int, int], int] = {}

    def on_write(self, write: StateWrite) -> None:
        if write.after is not None and write.after.leader >= 0:
            topic_id = self.world.observer.topic_ids.get(write.partition.topic)
            self._note(topic_id, write.partition, write.after.leader_epoch, write.after.leader, "ZooKeeper says")

    def on_sample(self) -> None:
        for broker in self.world.brokers:
            for partition in broker.node.partitions if broker.node is not None else ():
                if partition.is_leader:
                    self._note(partition.topic_id, partition.tp, partition.leader_epoch, broker.id, "believes")

    def _note(self, topic_id: object, tp: TopicPartition, epoch: int, leader: int, how: str) -> None:
        known = self._leaders.setdefault((topic_id, tp.partition, epoch), leader)
        if known != leader:
            self.report((tp, epoch), f"{tp} has two leaders in epoch {epoch}: {known}, and {how} {leader}")


class EpochsRise(Invariant):
    """A partition's leader epoch never falls, and rises with every change of its leader."""

    def on_write(self, write: StateWrite) -> None:
        before, after = write.before, write.after
        if before is None or after is None:
            return
        if after.leader_epoch < before.leader_epoch:
            self.report(write.partition, f"{write.partition}: from {before} to {after} by {write.writer}")
        elif before.isr and after.leader != before.leader and after.leader_epoch == before.leader_epoch:
            self.report(write.partition, f"{write.partition}: another leader, the same epoch: {before} to {after}")


class IsrIsSubsetOfReplicas(Invariant):
    """Who counts as in sync holds the partition, and who leads it counts as in sync."""

    def on_commit(self) -> None:
        observer = self.world.observer
        for partition, state in observer.states.items():
            replicas = observer.replicas.get(partition)
            if replicas is None:
                continue
            if not set(state.isr) <= set(replicas):
                self.report(partition, f"{partition}: in sync are {state.isr}, it is held by {replicas}")
            if state.leader >= 0 and state.leader not in state.isr:
                self.report(partition, f"{partition} is led by {state.leader}, in sync are {state.isr}")


class ElectedFromInSync(Invariant):
    """A new leader was in sync before: elections never lose what was committed (none of the topics is unclean)."""

    def on_write(self, write: StateWrite) -> None:
        before, after = write.before, write.after
        if before is None or after is None or not before.isr or after.leader in (-1, before.leader):
            return
        if after.leader not in before.isr:
            self.report(write.partition, f"{write.partition}: {after.leader} was elected, in sync were {before.isr}")


class WhoHasEverythingCounts(Invariant):
    """Never do only replicas count as in sync that lost data, while another one has all that was committed."""

    def on_commit(self) -> None:
        for partition in self.world.observer.avoidable:
            self.report(partition, f"{partition}: all that is in sync lost data, and another replica has everything")


class ControllerWritesAreFenced(Invariant):
    """Another broker's leadership is given away by the controller only; a deposed one cannot write any more.

    An election that somebody asked for is carried out by whichever broker was asked.
    """

    def on_write(self, write: StateWrite) -> None:
        before, after = write.before, write.after
        if before is None or after is None or after.leader == before.leader:
            return
        by_itself = write.writer == f"broker-{before.leader}"
        asked_for = write.partition in self.world.faults.elections
        if write.writer != write.controller and not by_itself and not asked_for:
            self.report(
                (write.partition, after.leader_epoch),
                f"{write.partition}: {write.writer} moved the leadership from {before.leader} to {after.leader}, "
                f"the controller was {write.controller}",
            )


class HighWatermarkNeverGoesBack(Invariant):
    """Not while a broker leads; nor for clients, who are never told a smaller end than anybody was told before them."""

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._seen: dict[tuple[object, int, int, int, int], int] = {}

    def on_sample(self) -> None:
        for broker in self.world.brokers:
            for partition in broker.node.partitions if broker.node is not None else ():
                if partition.is_leader:
                    self._look(broker.id, broker.lives, partition)

    def _look(self, broker: int, life: int, partition: Partition) -> None:
        # A leader that is killed and comes back leads on in the same epoch, and has to learn where it was.
        key = (partition.topic_id, partition.tp.partition, partition.leader_epoch, broker, life)
        mark, known = partition.high_watermark, self._seen.get(key, 0)
        if mark < known:
            self.report(key, f"{partition.tp}: on leader {broker} it fell from {known} to {mark}")
        if mark > partition.log.end_offset:
            self.report(key, f"{partition.tp}: {mark} on leader {broker}, whose log ends at {partition.log.end_offset}")
        self._seen[key] = max(mark, known)

    def on_end(self) -> None:
        told: dict[TopicPartition, list[Mark]] = defaultdict(list)
        for mark in self.world.history.marks:
            if mark.partition not in self.world.observer.excused:
                self._compare(mark, told[mark.partition])
        for tp, marks in told.items():
            leader, highest = self.world.leader_of(tp), max(mark.offset for mark in marks)
            if leader is not None and leader.high_watermark < highest:
                self.report(tp, f"{tp}: clients were told {highest}, in the end it is {leader.high_watermark}")

    def _compare(self, mark: Mark, before: list[Mark]) -> None:
        """A leader that was replaced and does not know it yet tells the past; its epoch gives it away."""
        if mark.is_end:
            known = (
                each.offset for each in before if each.answered < mark.asked and each.leader_epoch <= mark.leader_epoch
            )
            highest = max(known, default=0)
            if mark.offset < highest:
                words = f"clients were told {highest}, later that {mark.offset} is the end"
                self.report(mark.partition, f"{mark.partition}: {words} (epoch {mark.leader_epoch})")
        last = before[-1] if before else None
        if last is None or (mark.offset, mark.leader_epoch) != (last.offset, last.leader_epoch):
            before.append(mark)


class Batch(NamedTuple):
    """One committed batch, as it must lie in every log. The checksum covers everything but offset and epoch."""

    next_offset: int
    crc: int
    leader_epoch: int


class LogsAgreeBelowHighWatermark(Invariant):
    """What a leader once called committed is the same in every later leader's log, and in the end in every log."""

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._committed: dict[tuple[object, int], dict[int, Batch]] = defaultdict(dict)
        self._known_to: dict[tuple[object, int], int] = defaultdict(int)
        self._checked: dict[tuple[object, int], tuple[int, int]] = {}

    def on_sample(self) -> None:
        for broker in self.world.brokers:
            for partition in broker.node.partitions if broker.node is not None else ():
                if not partition.is_leader or partition.tp in self.world.observer.excused:
                    continue
                key = (partition.topic_id, partition.tp.partition)
                if self._checked.get(key) != (broker.id, partition.leader_epoch):
                    self._checked[key] = (broker.id, partition.leader_epoch)
                    state = self.world.observer.states.get(partition.tp)
                    if state is not None and state.leader_epoch == partition.leader_epoch:
                        self._compare(key, partition.tp, partition.log, f"leader {broker.id}")
                self._extend(key, partition.log, partition.high_watermark, partition.tp)

    def _extend(self, key: tuple[object, int], log: Log, to: int, tp: TopicPartition) -> None:
        ledger = self._committed[key]
        for offset, batch in _batches(log, max(self._known_to[key], log.start_offset), to):
            known = ledger.setdefault(offset, batch)
            if known != batch:
                self.report(key, f"{tp}: two batches are committed at offset {offset}: {known} and {batch}")
            self._known_to[key] = max(self._known_to[key], batch.next_offset)

    def _compare(self, key: tuple[object, int], tp: TopicPartition, log: Log, whose: str) -> None:
        ledger = self._committed[key]
        mine = dict(_batches(log, log.start_offset, log.end_offset))
        for offset, batch in ledger.items():
            if offset >= log.start_offset and mine.get(offset) != batch:
                self.report(key, f"{tp}: {whose} has {mine.get(offset)} at offset {offset}, committed was {batch}")
                return

    def on_end(self) -> None:
        self.on_sample()
        for broker in self.world.brokers:
            for partition in broker.node.partitions if broker.node is not None else ():
                state = self.world.observer.states.get(partition.tp)
                in_sync = state is not None and broker.id in state.isr
                if in_sync and partition.tp not in self.world.observer.excused:
                    key = (partition.topic_id, partition.tp.partition)
                    self._compare(key, partition.tp, partition.log, f"broker {broker.id}")


def _batches(log: Log, start: int, end: int) -> list[tuple[int, Batch]]:
    found: list[tuple[int, Batch]] = []
    offset = start
    while offset < end:
        data = log.read(offset, READ_BYTES_MAX, end, min_one_batch=True).read()
        if not data:
            break
        for _, header in iterate_batches(data):
            found.append((header.base_offset, Batch(header.next_offset, header.crc, header.leader_epoch)))
            offset = header.next_offset
    return found


class AcknowledgedIsNeverLost(Invariant):
    """A record acknowledged with acks=all is read in the end, where it was said to be; producers are remembered too."""

    def on_end(self) -> None:
        world = self.world
        if not world.everything_read:
            return
        for record in world.history.acknowledged:
            if record.at <= world.observer.excused.get(record.partition, -1):
                continue
            found = world.final_values.get(record.partition, {}).get(record.value)
            if found is None:
                self.report(record.partition, f"{record.partition}: {record.value} at {record.offset} is gone")
            elif record.offset >= 0 and found != record.offset:
                self.report(
                    record.partition, f"{record.partition}: {record.value} was at {record.offset}, is at {found}"
                )
        if not world.observer.excused:
            for words in world.history.broken_sequences:
                self.report(words, f"an idempotent producer was forgotten: {words}")


class CommittedOffsetsNeverGoBack(Invariant):
    """A group is never told an older position than one whose commit was acknowledged before it asked."""

    def on_end(self) -> None:
        if not any(partition.topic in INTERNAL_TOPICS for partition in self.world.observer.excused):
            for words in self.world.history.lost_positions:
                self.report(words, words)


class TransactionsAreAtomic(Invariant):
    """All of a transaction or none of it, nothing twice, nothing out of order: the checker of tests/transactions."""

    def on_end(self) -> None:
        excused = self.world.observer.excused
        if not self.world.everything_read or any(partition.topic in INTERNAL_TOPICS for partition in excused):
            return
        copied = {} if excused else self.world.copied
        for anomaly in check(self.world.history.operations, copied=copied):
            if not _touches(anomaly, set(excused)):
                self.report(type(anomaly), str(anomaly))


def _touches(anomaly: Anomaly, partitions: set[TopicPartition]) -> bool:
    if not partitions:
        return False
    if isinstance(anomaly, LostWrite):
        return anomaly.partition in partitions
    places = getattr(anomaly, "places", None)
    if places is not None:
        return any(place[0] in partitions for place in places)
    return getattr(anomaly, "partition", None) in partitions


class TransactionsGoOn(Invariant):
    """A producer with an id for itself, which is in time and leaves nothing out, is never refused for good."""

    def on_end(self) -> None:
        if not self.world.observer.excused:
            for words in self.world.history.refused_transactions:
                self.report(words, words)


class EverythingHeals(Invariant):
    """After the last fault every partition gets a leader and all its replicas in sync, and clients go on, in time."""

    def not_healed(self, what: str) -> None:
        self.report("healing", what)


class NothingUnexpected(Invariant):
    """No task fails without anybody knowing, and no handler has to say that it does not know what happened."""

    def on_end(self) -> None:
        for context in self.world.loop.failures:
            error = context.get("exception")
            self.report(str(context.get("message")) + repr(error), f"{context.get('message')}: {error!r}")
        for words in self.world.logged_errors:
            self.report(words, words)


ALL = (
    OneLeaderPerEpoch,
    EpochsRise,
    IsrIsSubsetOfReplicas,
    ElectedFromInSync,
    WhoHasEverythingCounts,
    ControllerWritesAreFenced,
    HighWatermarkNeverGoesBack,
    LogsAgreeBelowHighWatermark,
    AcknowledgedIsNeverLost,
    CommittedOffsetsNeverGoBack,
    TransactionsAreAtomic,
    TransactionsGoOn,
    EverythingHeals,
    NothingUnexpected,
)
