"""A replica that others may follow: how far they are, who of them is in sync, and so what is committed.

All of it is known to a leader alone; on a follower there is nothing to know, and nobody waits.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection

from ottla.broker.replication.leader_state import FollowerSession, LeaderState, ReplicaContext
from ottla.broker.replication.progress import Progress
from ottla.broker.replication.replica import Replica, tell
from ottla.broker.replication.suspension import may_go_on
from ottla.broker.replication.waiters import CommitWait
from ottla.broker.storage.log import Log
from ottla.cluster.image import NO_LEADER
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.sentinels import NO_EPOCH


class FollowedReplica(Replica):
    __slots__ = (
        "_context", "_leadership", "adding",
        "is_follower", "is_leader", "isr", "late", "leader", "leader_epoch", "replicas",
    )  # fmt: skip

    def __init__(self, log: Log, context: ReplicaContext, high_watermark: int | None = None) -> None:
        super().__init__(log, high_watermark)
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.replicas: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        self.late: tuple[int, ...] = ()
        self.adding: tuple[int, ...] = ()
        self.is_leader = False
        self.is_follower = False
        self._context = context
        self._leadership: LeaderState | None = None

    # -- facts

    @property
    def low_watermark(self) -> int:
        """The lowest first offset over the living replicas."""
        if self._leadership is None:
            return self.log.start_offset
        return self._leadership.progress.low_watermark(self.log.start_offset, self._context.brokers)

    @property
    def catching_up(self) -> bool:
        """Whether a new leader does not know yet how much of what it found in its log is committed."""
        return self._leadership is not None and self.high_watermark < self._leadership.progress.epoch_start

    @property
    def progress(self) -> Progress | None:
        """How far the followers are, while this broker leads."""
        return self._leadership.progress if self._leadership is not None else None

    def may_serve(self, now_s: float, timeout_s: float) -> bool:
        """Whether this leader may go on although the metadata store has not answered for `timeout_s`."""
        leadership = self._leadership
        if leadership is None:
            return False
        in_sync = {*self.isr, *(leadership.progress.pending or ())}
        return may_go_on(self._context.node_id, in_sync, leadership.last_fetches(), now_s, timeout_s)

    def check_leader(self) -> None:
        if not self.is_leader:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker is not the leader of {self.tp}")

    def check_epoch(self, known_by_client: int) -> None:
        """Refuse a client that knows an older or a newer leader than this one."""
        if known_by_client in (NO_EPOCH, self.leader_epoch):
            return
        if known_by_client < self.leader_epoch:
            raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
        raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    @property
    def enough_replicas(self) -> bool:
        """Whether min.insync.replicas are in sync and alive; a partition cannot be asked for more than it has.

        The in-sync replicas do not become fewer than that: dead ones are kept for what they have (elections.py).
        """
        needed = self.least_in_sync
        return len(self.isr) >= needed and (needed == 1 or self.usable_isr >= needed)

    @property
    def least_in_sync(self) -> int:
        return min(self.log.config.min_insync_replicas, len(self.replicas))

    @property
    def usable_isr(self) -> int:
        """How many of the in-sync replicas are there and keep up."""
        brokers, me = self._context.brokers, self._context.node_id
        lagging: Collection[int] = self._leadership.lagging if self._leadership is not None else ()
        return sum(replica == me or (replica in brokers and replica not in lagging) for replica in self.isr)

    def check_enough_replicas(self) -> None:
        if not self.enough_replicas:
            raise self._too_few(ErrorCode.NOT_ENOUGH_REPLICAS)

    def _too_few(self, code: ErrorCode) -> ApiError:
        needed = self.log.config.min_insync_replicas
        return ApiError(
            code, f"{self.tp} is under min ISR: {self.usable_isr} in-sync replica(s), min.insync.replicas is {needed}"
        )  # fmt: skip

    # -- waiting for the replicas

    def on_committed(self, offset: int, done: Callable[[ApiError | None], None]) -> CommitWait | None:
        """Call `done` when everything before `offset` is committed, or will not be; None if it is already."""
        if self.high_watermark >= offset:
            return None
        self.check_leader()
        assert self._leadership is not None
        if not self.enough_replicas:
            raise self._too_few(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        return self._leadership.commits.add(offset, done)

    def when_committed(self, offset: int) -> Awaitable[None] | None:
        """None when everything before `offset` is committed, and flushed where flush.messages asks; else wait for it.

        Raises NOT_LEADER_OR_FOLLOWER when this broker stops leading meanwhile, and NOT_ENOUGH_REPLICAS_AFTER_APPEND
        when too few replicas are left in sync.
        """
        replicated: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(error: ApiError | None) -> None:
            if replicated.done():
                return
            if error is None:
                replicated.set_result(None)
            else:
                replicated.set_exception(error)
                replicated.exception()  # marks it as seen: who asked may have gone

        if self.on_committed(offset, done) is None:
            return self.flush_to(offset) if self.flush_due else None
        return self._replicated_and_flushed(replicated, offset) if self.flush_due else replicated

    async def _replicated_and_flushed(self, replicated: "asyncio.Future[None]", offset: int) -> None:
        await replicated
        await self.flush_to(offset)

    # -- followers of this leader

    def fetched_by(
        self, replica: int, offset: int, start_offset: int, broker_epoch: int = NO_EPOCH,
        session: FollowerSession | None = None,
    ) -> None:  # fmt: skip
        """A follower asks for `offset`, so it has everything before. Perhaps more is committed now."""
        leadership, log, context = self._leadership, self.log, self._context
        if leadership is None:
            self.check_leader()
            return
        if not log.start_offset <= offset <= log.end_offset:
            raise log.out_of_range(offset)
        progress = leadership.progress
        follower = progress.follower(replica)
        if follower is None:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {replica} holds no replica of {self.tp}")
        has_moved = follower.end_offset != offset
        if leadership.lagging and offset == log.end_offset:
            leadership.lagging.discard(replica)
            has_moved = True
            context.isr_wanted(self)
        progress.fetched(replica, offset, start_offset, log.end_offset, context.clock.monotonic(), broker_epoch)
        if session is not None:
            leadership.sessions[replica] = session
        if leadership.deletions:
            leadership.deletions.reached(self.low_watermark)
        is_in_sync = replica in self.isr
        if has_moved or not is_in_sync:
            self._update_high_watermark()
        if not is_in_sync and progress.joiner(replica, self.high_watermark):
            context.isr_wanted(self)

    def unfollowed(self, replica: int, session: FollowerSession) -> None:
        """This follower's stream of fetches does not ask for the partition any more."""
        if self._leadership is not None and self._leadership.sessions.get(replica) is session:
            del self._leadership.sessions[replica]

    def broker_epoch_ended(self, replica: int, epoch: int) -> None:
        """The broker of a replica died, or registered again with a new broker epoch.

        In its next epoch it may have fetched before the news of that arrived here; what it told then stays true, and if
        nothing happens in the partition it will not tell it again.
        """
        follower = self._leadership.progress.follower(replica) if self._leadership is not None else None
        if self._leadership is not None and follower is not None and follower.broker_epoch <= epoch:
            self._leadership.progress.forget(replica)
            self._leadership.sessions.pop(replica, None)
            tell(self.followers, 0)  # a session in which nothing moves has to be asked again how far it is
            self._update_high_watermark()
            self._leadership.deletions.reached(self.low_watermark)
        self._fail_waiting_if_too_few()
        self._look_for_joiners()

    def wanted_isr(self) -> tuple[int, ...] | None:
        """The in-sync replicas as they should be, if they or `lagging` are not what is written.

        None while a change is under way.
        """
        leadership, context = self._leadership, self._context
        if leadership is None or leadership.progress.pending is not None:
            return None
        progress, now_s = leadership.progress, context.clock.monotonic()
        removed = self._dispensable(leadership, progress.laggards(self.log.end_offset, now_s))
        joining = [
            replica
            for replica in progress.joiners(self.high_watermark)
            if (follower := progress.follower(replica))
            and context.is_current(replica, follower.broker_epoch)
            and now_s - leadership.last_fetch(replica) <= progress.lag_max_s
        ]
        if not removed and not joining and self.lagging == self.late:
            return None
        return (*(replica for replica in self.isr if replica not in removed), *joining)

    @property
    def lagging(self) -> tuple[int, ...]:
        """In-sync replicas that are behind, and are kept so that enough are left to lead if need be."""
        behind: Collection[int] = self._leadership.lagging if self._leadership is not None else ()
        return tuple(replica for replica in self.isr if replica in behind)

    def _dispensable(self, leadership: LeaderState, laggards: list[int]) -> list[int]:
        """Those that can be left out: the latest first, and so many stay that min.insync.replicas are in sync.

        Who stays because of that has everything that is committed, but is no help to commit more.
        """
        spare = max(len(self.isr) - self.least_in_sync, 0)
        laggards = leadership.progress.latest_first(laggards)
        lagging = set(laggards[spare:])
        if lagging != leadership.lagging:
            leadership.lagging = lagging
            self._fail_waiting_if_too_few()
            self._update_high_watermark()
        return laggards[:spare]

    @property
    def isr_changes(self) -> bool:
        """Whether a change of the in-sync replicas is under way."""
        return self._leadership is not None and self._leadership.progress.pending is not None

    def isr_change_begins(self, isr: tuple[int, ...]) -> None:
        if self._leadership is not None:
            self._leadership.progress.begin_change(isr)
            self._update_high_watermark()

    def isr_change_failed(self) -> None:
        """What was asked for is certainly not written."""
        if self._leadership is not None:
            self._leadership.progress.drop_change()
            self._update_high_watermark()

    def _after_isr_change(self) -> None:
        self._fail_waiting_if_too_few()
        self._update_high_watermark()
        self._look_for_joiners()

    def _fail_waiting_if_too_few(self) -> None:
        """Who counts has changed: with too few of them nobody waits for what cannot be committed."""
        if self._leadership is not None and not self.enough_replicas:
            self._leadership.commits.fail(self._too_few(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND))

    def _on_committed_to(self, high_watermark: int) -> None:
        if self._leadership is not None:
            self._leadership.commits.reached(high_watermark)

    def _look_for_joiners(self) -> None:
        """Followers of idle partitions do not fetch anew only because the metadata changed."""
        if self._leadership is not None and self._leadership.progress.joiners(self.high_watermark):
            self._context.isr_wanted(self)

    def check_progress(self) -> None:
        """Look again although nobody fetched: time alone can change who counts."""
        if self._leadership is not None:
            self._update_high_watermark()

    def _update_high_watermark(self) -> None:
        """Find out anew up to where everything is committed. It never goes back while this broker leads."""
        assert self._leadership is not None
        if not self.enough_replicas:
            # Too few have it to call anything committed: a reader must not see what a single failure can take away.
            self._count_alone(alone=False)
            return
        reached = self._leadership.progress.committed_to(self.log.end_offset, self._context.clock.monotonic())
        before = self.high_watermark
        if reached is None:
            stable_before = self.last_stable_offset
            self._count_alone(alone=True)
            self._moved(before, self.log.end_offset, stable_before)
        else:
            self._count_alone(alone=False)
            self._advance(max(before, reached))

    # -- deleting

    def delete_records_before(self, offset: int) -> None:
        """Make `offset` the first of the log. Followers hear of it in answer to the fetches they have waiting."""
        self.check_leader()
        if not 0 <= offset <= self.high_watermark:
            raise self.log.out_of_range(offset)
        if offset > self.log.start_offset:
            self.log.delete_records_before(offset)
            self._wake_waiters()

    def on_deleted(self, offset: int, done: Callable[[ApiError | None], None]) -> CommitWait | None:
        """Call `done` when every living replica has dropped what is before `offset`; None if they have."""
        if self.low_watermark >= offset:
            return None
        self.check_leader()
        assert self._leadership is not None
        return self._leadership.deletions.add(offset, done)
