"""What a leader knows of its followers: how far each has got, who is in sync, up to where everything is committed.

Pure: offsets and `now_s` come in, decisions go out. The in-sync replicas (ISR) are those of the cluster's metadata. A
change of them takes a moment to be written, and until it is known how that ended the careful side counts: who is being
taken in must have a record before it is committed, who is being left out must still have it.
"""

from collections.abc import Iterable
from math import inf

from ottla.cluster.image import NO_BROKER_EPOCH

UNKNOWN_OFFSET = -1


class Follower:
    """One other replica, as its fetches show it."""

    __slots__ = ("broker_epoch", "caught_up_s", "end_offset", "fetched_s", "leader_end_then", "start_offset")

    def __init__(self, caught_up_s: float = -inf) -> None:
        self.end_offset = UNKNOWN_OFFSET
        self.start_offset = UNKNOWN_OFFSET
        self.caught_up_s = caught_up_s
        """The last moment at which it had everything the leader had then."""
        self.fetched_s = -inf
        self.leader_end_then = UNKNOWN_OFFSET
        """Where the leader's log ended at its last fetch."""
        self.broker_epoch = NO_BROKER_EPOCH

    def fetched(self, offset: int, start_offset: int, leader_end: int, now_s: float, broker_epoch: int) -> None:
        if offset >= leader_end:
            self.caught_up_s = now_s
        elif offset >= self.leader_end_then >= 0:
            # It has now what the leader had when it asked before: at that time, then, it was on the way to the end.
            self.caught_up_s = max(self.caught_up_s, self.fetched_s)
        self.end_offset = offset
        self.start_offset = start_offset
        self.leader_end_then = leader_end
        self.fetched_s = now_s
        self.broker_epoch = broker_epoch

    def is_caught_up(self, leader_end: int, now_s: float, lag_max_s: float) -> bool:
        return self.end_offset >= leader_end or now_s - self.caught_up_s <= lag_max_s


class Progress:
    """The followers of one partition in one leader epoch."""

    __slots__ = ("_followers", "_in_sync", "_pending", "epoch_start", "isr", "lag_max_s", "me")

    def __init__(
        self,
        me: int,
        replicas: Iterable[int],
        isr: tuple[int, ...],
        *,
        epoch_start: int,
        lag_max_s: float,
        now_s: float,
    ) -> None:
        self.me = me
        self.epoch_start = epoch_start
        """Where the log ended when this leader took over: who has not got there may miss committed records."""
        self.lag_max_s = lag_max_s
        self.isr = isr
        self._pending: tuple[int, ...] | None = None
        self._followers: dict[int, Follower] = {}
        self._in_sync: frozenset[int] = frozenset()
        self.adopt(replicas, isr, now_s)

    # -- what is written in the metadata

    def adopt(self, replicas: Iterable[int], isr: tuple[int, ...], now_s: float) -> bool:
        """Take what the metadata says now; whatever change was under way, this is how it ended.

        Says whether a follower has to tell anew how far it is.
        """
        # Whoever left without this leader's doing is stopping or has lost its disk. What it had does not count until
        # it fetches again: else every record would wait for it, or it would be taken in again.
        own_change = set(self._pending or ()) == set(isr)
        gone = frozenset() if own_change else frozenset(self.isr).difference(isr)
        self.isr = isr
        self._pending = None
        before = {replica: known for replica, known in self._followers.items() if replica not in gone}
        self._followers = {}
        for replica in replicas:
            if replica != self.me:
                # Who is in sync when a leader epoch begins gets the usual time to show it.
                known = before.get(replica) or Follower(now_s if replica in isr else -inf)
                self._followers[replica] = known
        self._count()
        return bool(gone)

    @property
    def pending(self) -> tuple[int, ...] | None:
        """The in-sync replicas that were asked for, while it is not known whether they are written."""
        return self._pending

    def begin_change(self, isr: tuple[int, ...]) -> None:
        self._pending = isr
        self._count()

    def drop_change(self) -> None:
        """The change under way was certainly not written."""
        self._pending = None
        self._count()

    def _count(self) -> None:
        counted = set(self.isr)
        counted.update(self._pending or ())
        counted.discard(self.me)
        self._in_sync = frozenset(counted)

    # -- what followers do

    def fetched(
        self, replica: int, offset: int, start_offset: int, leader_end: int, now_s: float, broker_epoch: int
    ) -> Follower | None:
        """Note that a follower asked for `offset`, so has everything before it. None if it is no replica of ours."""
        follower = self._followers.get(replica)
        if follower is not None:
            follower.fetched(offset, start_offset, leader_end, now_s, broker_epoch)
        return follower

    def forget(self, replica: int) -> None:
        """The broker died or has a new broker epoch: what it had before says nothing about what it has now."""
        if replica in self._followers:
            kept_s = self._followers[replica].caught_up_s if replica in self.isr else -inf
            self._followers[replica] = Follower(kept_s)

    def follower(self, replica: int) -> Follower | None:
        return self._followers.get(replica)

    # -- decisions

    def committed_to(self, leader_end: int, now_s: float) -> int | None:
        """Up to where every replica that counts has the log; None if only the leader counts.

        Beside the in-sync ones those count that keep up but are not in sync yet: without waiting for them the end of
        the committed part would run ahead of them as long as records keep coming, and they could never join.
        """
        lowest: int | None = None
        for replica, follower in self._followers.items():
            if replica in self._in_sync or (
                follower.end_offset >= self.epoch_start and now_s - follower.caught_up_s <= self.lag_max_s
            ):
                end = min(follower.end_offset, leader_end)
                lowest = end if lowest is None else min(lowest, end)
        return lowest

    def joiner(self, replica: int, high_watermark: int) -> bool:
        """Whether this follower has everything that is committed and may be taken in now."""
        if self._pending is not None or replica in self.isr:
            return False
        follower = self._followers.get(replica)
        return follower is not None and follower.end_offset >= max(high_watermark, self.epoch_start)

    def joiners(self, high_watermark: int) -> list[int]:
        return [replica for replica in self._followers if self.joiner(replica, high_watermark)]

    def laggards(self, leader_end: int, now_s: float) -> list[int]:
        """In-sync followers that have not caught up for too long. None while a change is under way.

        Called at intervals of half the allowed lag: who has everything counts as caught up at that moment, so that a
        partition which was silent for an hour does not find its followers an hour behind at the next record.
        """
        laggards = []
        for replica, follower in self._followers.items():
            if follower.end_offset >= leader_end:
                follower.caught_up_s = max(follower.caught_up_s, now_s)
            elif replica in self.isr and now_s - follower.caught_up_s > self.lag_max_s:
                laggards.append(replica)
        return laggards if self._pending is None else []

    def latest_first(self, replicas: Iterable[int]) -> list[int]:
        """These followers, those that have not caught up for the longest time first."""
        return sorted(replicas, key=lambda replica: self._followers[replica].caught_up_s)

    def low_watermark(self, leader_start: int, alive: Iterable[int]) -> int:
        """The lowest first offset over this and the other living replicas."""
        starts = [self._followers[replica].start_offset for replica in alive if replica in self._followers]
        return min([leader_start, *starts])
