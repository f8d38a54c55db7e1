"""A replica of a partition on this broker: its log, its part in the replication, and who waits for it.

As leader it appends, answers followers and clients, and knows up to where everything is committed. As follower it
appends what the leader sends. With one replica everything appended is committed at once: the high watermark is the end
of the log, and nothing of the rest costs anything.
"""

import logging

from ottla.broker.replication.followed import FollowedReplica
from ottla.broker.replication.leader_state import LeaderState, ReplicaContext
from ottla.broker.replication.progress import Progress
from ottla.broker.replication.refused_batches import RefusedBatches
from ottla.broker.replication.replica import tell
from ottla.broker.storage.log import AppendResult, Log
from ottla.broker.storage.markers import Marker
from ottla.broker.storage.validation import AppendOrigin
from ottla.cluster.image import NO_LEADER, PartitionImage
from ottla.config.topic import TopicSettings
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.compression import Buffer

logger = logging.getLogger(__name__)

ACKS_ALL = -1


class Partition(FollowedReplica):
    __slots__ = ("_refused", "traffic")

    def __init__(self, log: Log, context: ReplicaContext, high_watermark: int | None = None) -> None:
        super().__init__(log, context, high_watermark)
        self._refused: RefusedBatches | None = None
        self.traffic = context.traffic.of(log.tp.topic)

    # -- roles

    def apply(self, state: PartitionImage) -> bool:
        """Take the part that the metadata gives to this replica; says whether its leader or epoch changed."""
        before = (self.leader, self.leader_epoch, self.is_leader, self.is_follower)
        if self.log.failure is not None:
            return self._stay_out(state)
        self.replicas, self.isr, self.late, self.adding = state.replicas, state.isr, state.late, state.adding
        self.leader, self.leader_epoch = state.leader, state.leader_epoch
        me = self._context.node_id
        changed = before != (state.leader, state.leader_epoch, state.leader == me, state.leader not in (me, NO_LEADER))
        if state.leader != me:
            if changed:
                self._leave(ErrorCode.NOT_LEADER_OR_FOLLOWER)
                self.is_follower = state.leader != NO_LEADER
        elif changed:
            self._lead()
        elif self._leadership is not None:
            now_s = self._context.clock.monotonic()
            if self._leadership.progress.adopt(state.replicas, state.isr, now_s):
                # It may have been left out by mistake: a controller that was cut off took it for dead.
                tell(self.followers, 0)
            self._after_isr_change()
        if changed:  # of every partition at a start or a failover, so not for everyday logs
            logger.debug("%s: Leadership change: leader %d, leader epoch %d", self.tp, self.leader, self.leader_epoch)
        return changed

    def _stay_out(self, state: PartitionImage) -> bool:
        """Without a working log there is no part to play, whatever the metadata says."""
        had_part = self.is_leader or self.is_follower
        self._leave(ErrorCode.KAFKA_STORAGE_ERROR)
        self.replicas, self.isr, self.late = state.replicas, state.isr, state.late
        self.leader, self.leader_epoch = state.leader, state.leader_epoch
        return had_part

    def fence(self) -> None:
        """The broker lost its session: whatever it led belongs to others until the metadata says otherwise."""
        self._leave(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.leader = NO_LEADER

    def stop(self) -> None:
        """The partition is going away: whoever waits for it is answered now."""
        self._leave(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _lead(self) -> None:
        """Begin a leader epoch. It is noted even before the first record: followers compare their history with it.

        Whoever waited for this leader in the epoch before goes on waiting: what it appended is all there.
        """
        before = self._leadership if self.is_leader else None
        self._leadership = None
        self._leave(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        try:
            self.log.begin_epoch(self.leader_epoch)
        except ApiError as error:
            logger.error("%s: Cannot start leader epoch %d: %s", self.tp, self.leader_epoch, error)  # noqa: TRY400  # appending meets the same error and answers it
        context = self._context
        self._leadership = LeaderState(
            Progress(
                context.node_id,
                self.replicas,
                self.isr,
                epoch_start=self.log.end_offset,
                lag_max_s=context.lag_max_s,
                now_s=context.clock.monotonic(),
            ),
            before,
        )
        self.is_leader = True
        self._after_isr_change()

    def _leave(self, code: ErrorCode) -> None:
        leadership, self._leadership = self._leadership, None
        self._count_alone(alone=False)
        self.log.producers.replicated = True
        self.is_leader = self.is_follower = False
        if leadership is not None:
            error = ApiError(code, f"this broker is no longer the leader of {self.tp}")
            leadership.commits.fail(error)
            leadership.deletions.fail(error)
        self._wake_waiters()

    def reconfigure(self, settings: TopicSettings) -> None:
        self.log.reconfigure(settings)
        if self._leadership is not None:
            self._after_isr_change()

    # -- appending as leader

    def append(self, records: bytearray | memoryview, now_ms: int, *, acks: int = ACKS_ALL) -> AppendResult:
        """Append a producer's batch. With acks=all enough replicas must be in sync before anything is written."""
        log = self.log
        if not self.is_leader or (acks == ACKS_ALL and log.config.min_insync_replicas > 1 and not self.enough_replicas):
            self.note_refused(records)
            self.check_leader()
            raise self._too_few(ErrorCode.NOT_ENOUGH_REPLICAS)
        if self._refused is not None:
            self._check_order(records)
        result = log.append_as_leader(records, self.leader_epoch, now_ms)
        traffic = self.traffic  # written out: this is the hot path
        traffic.appends += 1
        traffic.messages_in += result.record_count
        traffic.bytes_in += result.byte_count
        if self.readers or self.followers:
            self.tell_appended(result.byte_count)
        return result

    def note_refused(self, records: Buffer) -> None:
        """This batch is refused for a reason that passes: what was sent behind it must not overtake it."""
        if self._refused is None:
            self._refused = RefusedBatches()
        self._refused.note(records, self.log.producers.entries, self._context.clock.monotonic())

    def _check_order(self, records: bytearray | memoryview) -> None:
        """Refuse what was sent behind a batch that was refused and has not come again."""
        assert self._refused is not None
        known, now_s = self.log.producers.entries, self._context.clock.monotonic()
        if self._refused.overtakes(records, known, now_s):
            raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, "a batch before this one was refused: send both again")
        if not self._refused:
            self._refused = None

    def append_internal(self, records: bytearray, now_ms: int) -> AppendResult:
        """Append a batch that this broker's own coordinator wrote."""
        self.check_leader()
        self.check_enough_replicas()
        result = self.log.append_as_leader(records, self.leader_epoch, now_ms, origin=AppendOrigin.COORDINATOR)
        self.traffic.count_append(result.record_count, result.byte_count)
        if self.readers or self.followers:
            self.tell_appended(result.byte_count)
        return result

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int,
        now_ms: int,
        transaction_version: int = 1,
    ) -> AppendResult:
        """Write how the producer's transaction ended here, and let those read on who waited for it.

        Refuses a marker of an older producer epoch (INVALID_PRODUCER_EPOCH; from transaction version 2 on the epoch
        must be above that of the records) or of an older coordinator (TRANSACTION_COORDINATOR_FENCED).
        """
        self.check_leader()
        self.check_enough_replicas()
        stable_before = self.last_stable_offset
        result = self.log.append_marker(
            producer_id, producer_epoch, Marker(commit, coordinator_epoch), self.leader_epoch, now_ms,
            transaction_version=transaction_version,
        )  # fmt: skip
        if self.readers or self.followers:
            self.tell_appended(result.byte_count, stable_before)
        return result

    def tell_appended(self, size: int, stable_before: int | None = None) -> None:
        tell(self.followers, size)
        if self._alone and self.readers:
            if stable_before is not None:
                decided = self._bytes_between(stable_before, self.last_stable_offset)
            else:
                # New data is undecided as long as any transaction is open: what is behind it is not readable either.
                decided = size if self.log.producers.first_unstable_offset() is None else 0
            self._tell_readers(size, decided)
